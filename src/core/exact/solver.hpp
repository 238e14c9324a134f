// The exact solver: scale, presolve, components, dynamic programming or search, and the bound they
// prove.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ascent.hpp"
#include "build.hpp"
#include "cutset.hpp"
#include "order.hpp"
#include "roof.hpp"
#include "search.hpp"
#include "substitute.hpp"

namespace softmap::exact {

struct Options {
    double relative_gap = 1e-9;
    double absolute_gap = 0.0;
    bool presolve = true;        // remove variables and labels before the search
    bool ascent = true;          // raise the root bound by message passing
    int threads = 1;             // of a search (see Search) and of dynamic programming
    double max_dp_entries = 1e9; // limit on the table entries that dynamic programming stores
    double dp_rate = 1.5e8; // estimated table entries per second and thread of dynamic programming
    double ascent_rate = 4e8; // estimated table entries per second of message passing
    // Dynamic programming comes before a search up to `small_dp` table entries, or `per_entry`
    // times the entries of the component's own tables, which the set-up of a search reads.
    double small_dp = 4e6, per_entry = 200.0;
    // Work of a search before dynamic programming, relative to its table entries, and at most.
    double tried_first = 0.1, tried_most = 1.5e7;
    double cut_work = 0.7; // largest work of conditioning, relative to the time
    double seconds = 1e9;  // time for all calls; plans depend on it, not on the clock
    std::int64_t probe_backtracks = 20;
    std::int64_t split_work = 1 << 21; // 20 to 80 ms: a shorter search is not worth several threads
    std::size_t split = 4096;          // largest table of three or more variables that is split
    std::string log;                   // prefix of the proof files, one per round; empty: no proof
};

struct Result {
    std::vector<std::int64_t> labels; // empty if no labelling is known
    double energy = INFINITY;
    double lower_bound = -INFINITY;
    double slack = 0.0; // largest decrease of the bound by rounding costs down
    bool complete = false;
    bool infeasible = false;
    std::int64_t nodes = 0, backtracks = 0;
    int components = 0, eliminated = 0, searched = 0;
    int workers = 0; // largest number of threads of a search; 0 without a search
    double root_bound = -INFINITY;
    std::string log; // proof file; its first `logged` bytes prove the bound
    std::int64_t logged = 0;
};

class Solver {
  public:
    Solver(const Input &in, const Options &options, Control &control)
        : in_(in), options_(options), control_(control),
          seconds_(std::ceil(10 * std::max(0.0, options.seconds)) / 10) {
        if (!in.incumbent.empty())
            offer({in.incumbent.begin(), in.incumbent.end()});
        in_.incumbent = {};
    }

    // Runs until a limit, or to the end. Resumes a search that a limit stopped in the last call.
    Result solve() {
        for (; round_ < 4; ++round_) {
            if (!now_)
                begin();
            solve_components();
            if (paused_ || control_.stopped || result_.infeasible)
                break;
            const double fine = options_.absolute_gap + tolerance();
            Input in = in_;
            in.incumbent = result_.labels;
            const double next = choose_scale(in, result_.energy, options_.threads).slack;
            const bool probed = probing_;
            now_.reset();
            if (result_.complete && (scale_.slack <= fine || next * 16 > scale_.slack))
                break;
            if (!probed && !result_.complete)
                break;
        }
        if (!paused_)
            now_.reset();
        result_.nodes = control_.nodes;
        result_.backtracks = control_.backtracks;
        write_log();
        return result_;
    }

    // The best labelling; empty if none is known.
    const std::vector<std::int64_t> &known() const { return result_.labels; }
    // Takes a labelling found elsewhere, between two calls of `solve`.
    void hear(std::vector<std::int64_t> labels);

    // The search that the last call left unfinished, if other processes may share it, else null.
    // They may not if a limit of work will replace it by dynamic programming, or for a proof.
    Search *shareable() {
        const bool whole = paused_ && log_ == nullptr && now_->last_work == INT64_MAX;
        return whole && now_->search->begun() ? now_->search.get() : nullptr;
    }
    // Equal in processes whose searches may share their nodes.
    std::uint64_t fingerprint() {
        if (now_->fingerprint == 0)
            now_->fingerprint = exact::fingerprint(now_->work, now_->parts[now_->next], searches_);
        return now_->fingerprint;
    }

  private:
    Input in_;
    Options options_;
    Control &control_;
    std::unique_ptr<Log> log_;
    int logs_ = 0;     // number of proof files so far
    int searches_ = 0; // number of searches so far
    double seconds_;   // time for all calls; decisions depend on it, not on the clock
    Result result_;
    Scale scale_;
    int round_ = 0;
    bool paused_ = false;  // stopped in the middle of a search
    bool probing_ = false; // searching for a first labelling, whose cost determines the unit

    double tolerance() const {
        return std::isfinite(result_.energy) ? options_.relative_gap * std::fabs(result_.energy)
                                             : 0.0;
    }
    void offer(std::vector<std::int64_t> labels) {
        const double e = energy(in_, labels);
        if (e < result_.energy) {
            result_.energy = e;
            result_.labels = std::move(labels);
        }
    }
    // Repeats presolve as long as it eliminates variables, up to eight times.
    void presolve(Work &w) {
        for (std::size_t before = 0, rounds = 0; rounds < 8; ++rounds) {
            presolve_once(w);
            if (w.infeasible || control_.stopped || w.eliminated.size() == before)
                break;
            before = w.eliminated.size();
        }
        if (!w.infeasible)
            normalise(w);
    }
    void presolve_once(Work &w) {
        std::vector<int> every(w.n());
        std::iota(every.begin(), every.end(), 0);
        arc_consistency(w, std::move(every), control_);
        if (w.infeasible)
            return;
        split_factors(w, options_.split);
        substitute_all(w);
        eliminate_small(w, control_, 2, 1 << 14);
        if (!w.infeasible && remove_dominated(w, control_, 30'000'000) && !w.infeasible)
            eliminate_small(w, control_, 2, 1 << 14);
        if (!w.infeasible && fix_persistent(w, control_, 50'000'000))
            eliminate_small(w, control_, 2, 1 << 14);
        if (!w.infeasible)
            eliminate_small(w, control_, 3, 64);
    }
    struct Sums { // sums of bounds over components, and labels of the searched variables
        Wide lower = 0, root = 0;
        std::vector<std::int64_t> labels;
    };
    struct Underway { // the components of one round, and the search in progress
        Work work;
        std::vector<std::vector<int>> parts;
        std::size_t next = 0;
        Sums sums;
        bool complete = true;
        std::unique_ptr<TreeLog> log;
        std::unique_ptr<Search> search;
        EliminationOrder way;
        Cutset cutset; // variables to branch on if dynamic programming takes too much
        std::int64_t last_work = INT64_MAX; // total work at which elimination replaces the search
        std::uint64_t fingerprint = 0;      // of the search in progress; 0: not computed yet
    };
    std::optional<Underway> now_;

    std::vector<std::vector<int>> components(Work &w);
    bool program(Work &w, const std::vector<int> &order);
    bool condition(Work &w, const std::vector<int> &vars);
    bool finish_without_search(const std::vector<int> &vars);
    EliminationOrder plan(Work &w, const std::vector<int> &vars, double share);
    Cutset plan_cutset(Work &w, const std::vector<int> &vars, double share);
    bool raise(Work &w, const std::vector<int> &vars, double share);
    bool solve_component(Work &w, const std::vector<int> &vars, double share);
    void set_up(Work &w, const std::vector<int> &vars);
    bool collect(const Search &search, Work &w, const std::vector<int> &vars, Sums &sums);
    void begin();
    void write_log();
    void forget_search();
    void solve_components();
    bool go_on_searching(const std::vector<int> &vars);
    void report_progress();
    void offer_labels(const Work &w, std::vector<std::int64_t> labels);
    void finish(Wide lower, bool complete, bool infeasible);
};

// The variables of each component, from the largest number of factors on: DAC moves costs to
// earlier variables, and bounds rise most where many costs meet.
inline std::vector<std::vector<int>> Solver::components(Work &w) {
    std::vector<std::vector<int>> out;
    std::vector<char> seen(w.n(), 0);
    std::vector<std::size_t> degree(w.n(), 0);
    for (int s = 0; s < w.n(); ++s) {
        if (w.gone[s] || seen[s])
            continue;
        std::vector<int> part{s};
        seen[s] = 1;
        for (std::size_t k = 0; k < part.size(); ++k) {
            const auto &factors = w.alive_factors(part[k]);
            degree[part[k]] = factors.size();
            for (int f : factors)
                for (int u : w.factors[f]->scope)
                    if (!seen[u]) {
                        seen[u] = 1;
                        part.push_back(u);
                    }
        }
        std::stable_sort(part.begin(), part.end(),
                         [&](int a, int b) { return degree[a] > degree[b]; });
        out.push_back(std::move(part));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const auto &a, const auto &b) { return a.size() < b.size(); });
    return out;
}

// Cost of the incumbent on one component of the reduced model; HALF if one of its labels was
// removed.
inline Cost component_cost(Work &w, const std::vector<int> &vars, std::vector<int> &labels) {
    if (w.incumbent.empty())
        return HALF;
    std::vector<int> index(w.n(), -1);
    Cost total = 0;
    for (int v : vars) {
        const auto &kept = w.label[v];
        const auto place = std::find(kept.begin(), kept.end(), w.incumbent[v]);
        if (place == kept.end())
            return HALF;
        labels.push_back(index[v] = static_cast<int>(place - kept.begin()));
        total = sum(total, w.unary[v][index[v]]);
    }
    for (int v : vars)
        for (int f : w.alive_factors(v)) {
            if (w.factors[f]->scope[0] != v)
                continue;
            std::int64_t at = 0;
            for (int u : w.factors[f]->scope)
                at = at * w.d(u) + index[u];
            total = sum(total, w.factors[f]->table[at]);
        }
    return total;
}

// An upper bound on the cost of all labellings of the component that satisfy the hard constraints.
inline Cost highest_cost(Work &w, const std::vector<int> &vars) {
    Cost total = 0;
    const auto add = [&](const std::vector<Cost> &costs) {
        Cost most = 0;
        for (Cost c : costs)
            most = std::max(most, forbidden(c) ? 0 : c);
        total = std::min(total + most, HALF / 4);
    };
    for (int v : vars) {
        add(w.unary[v]);
        for (int f : w.alive_factors(v))
            if (w.factors[f]->scope[0] == v)
                add(w.factors[f]->table);
    }
    return total;
}

// Number of table entries of the component.
inline double table_entries(Work &w, const std::vector<int> &vars) {
    double total = 0;
    for (int v : vars)
        for (int f : w.alive_factors(v))
            if (w.factors[f]->scope[0] == v)
                total += static_cast<double>(w.factors[f]->table.size());
    return total;
}

// Eliminates every variable of the component. Returns false if time ran out.
inline bool Solver::program(Work &w, const std::vector<int> &order) {
    control_.to_the_end(); // unfinished dynamic programming cannot be resumed
    auto buckets = fill_buckets(w, order);
    if (!buckets.run(options_.threads, control_))
        return false;
    if (w.log != nullptr)
        for (const int v : order)
            w.log->note(Op::ELIMINATE, {v});
    result_.eliminated += static_cast<int>(order.size());
    if (forbidden(buckets.lowest)) {
        w.infeasible = true;
        return true;
    }
    w.base += buckets.lowest;
    const auto labels = buckets.best_labels();
    for (std::size_t k = 0; k < order.size(); ++k) {
        now_->sums.labels[order[k]] = w.label[order[k]][labels[k]];
        for (const int f : w.alive_factors(order[k]))
            w.drop_factor(f);
        w.gone[order[k]] = 1;
    }
    return true;
}

// Branches on the variables of the cutset only. Returns false if time ran out.
inline bool Solver::condition(Work &w, const std::vector<int> &vars) {
    control_.to_the_end(); // as dynamic programming, it is not resumed
    Conditioning tree(w, vars, now_->cutset, options_.threads);
    std::vector<int> begin;
    if (const Cost upper = component_cost(w, vars, begin); !forbidden(upper)) {
        tree.best = upper;
        tree.incumbent = begin;
    }
    if (now_->search != nullptr && now_->search->known().cost < tree.best) {
        tree.best = now_->search->known().cost;
        tree.incumbent = now_->search->known().labels;
    }
    const bool complete = tree.run(control_);
    control_.nodes += tree.nodes;
    if (complete && tree.incumbent.empty()) {
        w.infeasible = true;
        return true;
    }
    now_->sums.lower += tree.lower;
    for (std::size_t k = 0; k < tree.incumbent.size(); ++k)
        now_->sums.labels[vars[k]] = w.label[vars[k]][tree.incumbent[k]];
    return complete;
}

// The variables to branch on. No record of a proof describes conditioning, so there are none if a
// proof is written.
inline Cutset Solver::plan_cutset(Work &w, const std::vector<int> &vars, double share) {
    if (log_ != nullptr)
        return {};
    const double rate = options_.dp_rate * options_.threads;
    CutsetLimits limits;
    limits.stored = options_.max_dp_entries;
    limits.entries = options_.cut_work * std::min(seconds_ * share, 20.0) * rate;
    if (vars.size() > limits.variables)
        return {};
    auto out = find_cutset(graph_of(w, vars), limits);
    for (int &v : out.variables)
        v = vars[v];
    for (int &v : out.rest.order)
        v = vars[v];
    return out;
}

inline EliminationOrder Solver::plan(Work &w, const std::vector<int> &vars, double share) {
    const double rate = options_.dp_rate * options_.threads;
    const double most = std::min(seconds_ * share, 20.0) * 0.7 * rate;
    auto best = best_order(graph_of(w, vars), most);
    best.finite = best.finite && best.stored <= options_.max_dp_entries;
    for (int &v : best.order)
        v = vars[v];
    return best;
}

// Raises the bound of the component by message passing: up to 200 sweeps from zero, up to 20 if λ
// is given. Returns false if there is no labelling.
inline bool Solver::raise(Work &w, const std::vector<int> &vars, double share) {
    const bool given = !in_.lam.empty();
    const double seconds = std::min(2.0, (given ? 0.02 : 0.15) * seconds_ * share);
    const int sweeps = probing_ ? 5 : given ? 20 : 200;
    const auto turn = control_.deadline;
    control_.to_the_end();              // message passing is not resumed by later calls
    arc_consistency(w, vars, control_); // then no message is forbidden
    if (w.infeasible)
        return false;
    Ascent ascent(w, vars);
    ascent.run(sweeps, given ? 1e-2 : 1e-3, seconds * options_.ascent_rate, control_);
    if (w.log != nullptr)
        ascent.write(*w.log);
    control_.deadline = turn;
    if (!w.infeasible)
        normalise(w);
    return !w.infeasible;
}

// Adds the bound of the component to the sums. Returns true if it is solved.
inline bool Solver::solve_component(Work &w, const std::vector<int> &vars, double share) {
    const auto way = plan(w, vars, share);
    const double small = std::max(options_.small_dp, options_.per_entry * table_entries(w, vars));
    if (way.finite && way.entries < small)
        return program(w, way.order);
    if (options_.ascent && !raise(w, vars, share))
        return true;
    now_->search.reset();
    now_->way = way;
    now_->last_work = INT64_MAX;
    now_->cutset = way.finite || probing_ ? Cutset{} : plan_cutset(w, vars, share);
    const double entries =
        way.finite ? way.entries : now_->cutset.nodes * now_->cutset.rest.entries;
    const double first = std::min(options_.tried_first * entries, options_.tried_most);
    const bool replaced = (way.finite || now_->cutset.found) && !probing_;
    if (replaced && first <= 0)
        return finish_without_search(vars);
    set_up(w, vars);
    if (probing_)
        now_->search->backtrack_budget = options_.probe_backtracks;
    if (replaced)
        now_->last_work = control_.total + static_cast<std::int64_t>(first);
    return go_on_searching(vars);
}

// Solves a component by dynamic programming or conditioning, whichever is possible.
inline bool Solver::finish_without_search(const std::vector<int> &vars) {
    return now_->way.finite ? program(now_->work, now_->way.order) : condition(now_->work, vars);
}

// Starts or resumes the search of a component. Returns true if it is solved.
inline bool Solver::go_on_searching(const std::vector<int> &vars) {
    Search &search = *now_->search;
    if (now_->last_work < INT64_MAX)
        search.work_budget = std::max<std::int64_t>(0, now_->last_work - control_.total);
    search.run();
    result_.workers = std::max(result_.workers, search.workers());
    if (!search.complete && !probing_ && (control_.stopped || search.frontier().shared())) {
        paused_ = true;
        return false;
    }
    if (!search.complete && now_->last_work < INT64_MAX && !control_.stopped) {
        forget_search();
        return finish_without_search(vars);
    }
    return collect(search, now_->work, vars, now_->sums);
}

inline void Solver::set_up(Work &w, const std::vector<int> &vars) {
    std::vector<int> begin;
    const Cost upper = component_cost(w, vars, begin);
    // the gaps of all components add up to that of the model
    const auto parts = static_cast<double>(now_->parts.size());
    const auto allowed = std::clamp(scale_.units(options_.absolute_gap) / parts, 0.0, 0x1p45);
    // summed over all components, less than one step: `finish` rounds the bound up to a step
    const auto whole = (scale_.steps - 1) / static_cast<Cost>(now_->parts.size());
    Gap gap;
    gap.tolerance = std::max(static_cast<Cost>(allowed), scale_.integral ? whole : 0);
    gap.relative = options_.relative_gap / parts;
    gap.offset = static_cast<double>(w.base) + scale_.units(in_.constant);
    const auto spread = static_cast<Cost>(scale_.units(scale_.spread));
    const Cost epsilon = scale_.integral ? scale_.steps / 4 : std::min(spread >> 14, upper >> 10);
    if (log_ != nullptr) {
        now_->log = std::make_unique<TreeLog>(*log_);
        log_->op(Op::COMPONENT);
        log_->array(vars);
    }
    now_->search = std::make_unique<Search>(control_, gap, options_.threads, options_.split_work);
    Search &search = *now_->search;
    search.prepare(w, vars, std::max<Cost>(epsilon, 1), now_->log.get());
    if (!forbidden(upper))
        search.start_from(begin, upper);
    else
        search.start_below(highest_cost(w, vars) + 1);
    result_.searched += static_cast<int>(vars.size());
    now_->fingerprint = 0;
    ++searches_;
}

inline bool Solver::collect(const Search &search, Work &w, const std::vector<int> &vars,
                            Sums &sums) {
    sums.root += search.c0();
    if (log_ != nullptr)
        now_->log->op(Op::END);
    const auto &labels = search.known().labels;
    if (search.complete && labels.empty()) {
        w.infeasible = true;
        return true;
    }
    sums.lower += search.lower;
    for (std::size_t k = 0; k < labels.size(); ++k)
        sums.labels[vars[k]] = w.label[vars[k]][labels[k]];
    return search.complete;
}

inline void Solver::begin() {
    Input in = in_;
    in.incumbent = result_.labels;
    scale_ = choose_scale(in, result_.energy, options_.threads);
    if (!options_.log.empty()) {
        result_.log = options_.log + "." + std::to_string(logs_++);
        log_ = std::make_unique<Log>(result_.log);
    }
    probing_ = round_ == 0 && result_.labels.empty() && scale_.slack > 0;
    now_.emplace();
    now_->work = build_work(in, scale_, options_.split, options_.threads, log_.get());
    Work &w = now_->work;
    if (!w.infeasible && options_.presolve)
        presolve(w);
    now_->sums.labels.assign(in.n(), -1);
    if (!w.infeasible)
        now_->parts = components(w);
    result_.components = static_cast<int>(now_->parts.size());
}

// Continues the proof in a new file without the records of the search. The file so far proves the
// bounds of earlier calls.
inline void Solver::forget_search() {
    if (log_ == nullptr)
        return;
    result_.log = options_.log + "." + std::to_string(logs_++);
    log_ = std::make_unique<Log>(result_.log, *log_, now_->log->begin());
    now_->work.log = log_.get();
}

inline void Solver::write_log() {
    if (log_ == nullptr)
        return;
    if (paused_)
        now_->log->write();
    result_.logged = log_->finish();
}

inline void Solver::solve_components() {
    Work &w = now_->work;
    while (now_->next < now_->parts.size() && !w.infeasible) {
        const auto &vars = now_->parts[now_->next];
        const bool resumed = paused_;
        paused_ = false;
        const double share = 1.0 / static_cast<double>(now_->parts.size() - now_->next);
        const bool solved = resumed ? go_on_searching(vars) : solve_component(w, vars, share);
        if (paused_)
            return report_progress();
        now_->complete &= solved;
        ++now_->next;
    }
    if (!w.infeasible)
        offer_labels(w, now_->sums.labels);
    result_.root_bound = to_double(w.base + now_->sums.root, scale_, in_.constant);
    finish(w.base + now_->sums.lower, now_->complete, w.infeasible);
}

// Updates the result during a search. Components not yet searched contribute the bound 0.
inline void Solver::report_progress() {
    const Work &w = now_->work;
    auto labels = now_->sums.labels;
    for (std::size_t k = now_->next; k < now_->parts.size(); ++k)
        for (int v : now_->parts[k])
            if (!w.incumbent.empty())
                labels[v] = w.incumbent[v];
    const auto &vars = now_->parts[now_->next];
    const Search &search = *now_->search;
    const auto &found = search.known().labels;
    for (std::size_t k = 0; k < found.size(); ++k)
        labels[vars[k]] = w.label[vars[k]][found[k]];
    offer_labels(w, std::move(labels));
    result_.root_bound = to_double(w.base + now_->sums.root + search.c0(), scale_, in_.constant);
    finish(w.base + now_->sums.lower + search.lower, false, false);
}

inline void Solver::hear(std::vector<std::int64_t> labels) {
    offer(labels);
    if (!paused_ || result_.labels != labels)
        return;
    now_->work.incumbent = std::move(labels);
    std::vector<int> found;
    const Cost cost = component_cost(now_->work, now_->parts[now_->next], found);
    if (cost < now_->search->known().cost)
        now_->search->start_from(std::move(found), cost);
}

// Offers the full labelling, if every variable that was not eliminated has a label.
inline void Solver::offer_labels(const Work &w, std::vector<std::int64_t> labels) {
    for (const auto &e : w.eliminated)
        labels[e.variable] = 0;
    if (std::find(labels.begin(), labels.end(), -1) != labels.end())
        return;
    undo_eliminations(w, labels);
    offer(std::move(labels));
}

inline void Solver::finish(Wide lower, bool complete, bool infeasible) {
    result_.slack = scale_.slack;
    result_.complete = complete;
    if (infeasible) {
        result_.complete = true;
        result_.infeasible = result_.labels.empty();
        result_.lower_bound = INFINITY;
        if (!result_.infeasible) { // no labelling is better than the known one
            const double low = energy_from_below(in_, result_.labels) - scale_.slack;
            result_.lower_bound = scale_.integral ? result_.energy : std::nextafter(low, -INFINITY);
        }
        return;
    }
    if (scale_.integral) { // every energy minus the constant is a multiple of the granule
        const Wide rest = ((lower % scale_.steps) + scale_.steps) % scale_.steps;
        if (rest != 0)
            lower += scale_.steps - rest;
    }
    const double bound = std::min(to_double(lower, scale_, in_.constant), result_.energy);
    // the log proves the bound of this round only
    result_.lower_bound = log_ != nullptr ? bound : std::max(result_.lower_bound, bound);
}

} // namespace softmap::exact
