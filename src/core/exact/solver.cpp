// The course of the exact solver: rounds, components, methods and bounds.
#include "solver.hpp"

#include "ascent.hpp"
#include "order.hpp"
#include "search.hpp"

namespace softmap::exact {

struct Solver::Sums { // sums of bounds over components, and labels of the searched variables
    Wide lower = 0, root = 0;
    std::vector<std::int64_t> labels;
};

struct Solver::Round {
    Work work;
    std::vector<std::vector<int>> parts;
    std::size_t next = 0;
    Sums sums;
    bool complete = true;
    std::unique_ptr<TreeLog> log;
    std::unique_ptr<TreeSearch> search;
    EliminationOrder order;
    std::int64_t last_work = INT64_MAX; // total work at which elimination replaces the search
};

namespace {

// The variables of each component, from the largest number of factors on: DAC moves costs to
// earlier variables, and bounds rise most where many costs meet.
std::vector<std::vector<int>> components(Work &w) {
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

// Calls body(f) for each factor of the component.
template <class Body> void each_factor(Work &w, const std::vector<int> &vars, Body &&body) {
    for (int v : vars)
        for (int f : w.alive_factors(v))
            if (w.factors[f]->scope[0] == v)
                body(*w.factors[f]);
}

// Cost of the incumbent on one component of the reduced model; HALF if one of its labels was
// removed.
Cost component_cost(Work &w, const std::vector<int> &vars, std::vector<int> &labels) {
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
    each_factor(w, vars, [&](const Factor &factor) {
        std::int64_t at = 0;
        for (int u : factor.scope)
            at = at * w.d(u) + index[u];
        total = sum(total, factor.table[at]);
    });
    return total;
}

// An upper bound on the cost of all labellings of the component that satisfy the hard constraints.
Cost highest_cost(Work &w, const std::vector<int> &vars) {
    Cost total = 0;
    const auto add = [&](const std::vector<Cost> &costs) {
        Cost most = 0;
        for (Cost c : costs)
            most = std::max(most, forbidden(c) ? 0 : c);
        total = std::min(total + most, HALF / 4);
    };
    for (int v : vars)
        add(w.unary[v]);
    each_factor(w, vars, [&](const Factor &factor) { add(factor.table); });
    return total;
}

// An elimination order within the limits, if one is found.
EliminationOrder find_order(Work &w, const std::vector<int> &vars, const Effort &effort,
                            Control &control) {
    if (effort.max_stored <= 0)
        return {};
    auto out = best_order(graph_of(w, vars), effort.max_entries, control);
    out.finite = out.finite && out.stored <= effort.max_stored;
    for (int &v : out.order)
        v = vars[v];
    return out;
}

} // namespace

Solver::Solver(const Input &in, const Options &options, Control &control)
    : in_(in), options_(options), control_(control) {
    if (!in.incumbent.empty())
        offer({in.incumbent.begin(), in.incumbent.end()});
    in_.incumbent = {};
}

Solver::~Solver() = default;

Result Solver::solve() {
    for (;; ++round_) {
        if (!now_ && !begin())
            break;
        solve_components();
        if (paused_ || control_.stopped || result_.infeasible)
            break;
        const double fine = options_.absolute_gap + tolerance();
        Input in = in_;
        in.incumbent = result_.labels;
        const double next = choose_scale(in, result_.energy, options_.threads).slack;
        const bool first = first_;
        now_.reset();
        if (result_.complete && (scale_.slack <= fine || next * 16 > scale_.slack))
            break;
        if (!first && !result_.complete)
            break;
    }
    if (!paused_)
        now_.reset();
    result_.nodes = control_.nodes;
    result_.backtracks = control_.backtracks;
    write_log();
    return result_;
}

double Solver::tolerance() const {
    return std::isfinite(result_.energy) ? options_.relative_gap * std::fabs(result_.energy) : 0.0;
}

void Solver::offer(std::vector<std::int64_t> labels) {
    const double e = energy(in_, labels);
    if (e < result_.energy) {
        result_.energy = e;
        result_.labels = std::move(labels);
    }
}

// Eliminates every variable of the component. Returns false if that takes too long; nothing is
// changed then.
bool Solver::eliminate(const std::vector<int> &order) {
    Work &w = now_->work;
    auto buckets = fill_buckets(w, order);
    bool complete = false;
    {
        const Control::ToTheEnd whole(control_, now_->order.entries); // it cannot be resumed
        complete = buckets.run(options_.threads, control_);
    }
    if (!complete)
        return false;
    if (now_->search != nullptr)
        forget_search();
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

// Raises the bound of the component by message passing. Returns false if there is no labelling.
bool Solver::raise_bound(const std::vector<int> &vars, double share) {
    Work &w = now_->work;
    const Effort &effort = options_.effort;
    const bool given = !in_.lam.empty();
    const Control::ToTheEnd whole(control_); // message passing is not resumed by later calls
    arc_consistency(w, vars, control_);      // then no message is forbidden
    if (w.infeasible)
        return false;
    Ascent ascent(w, vars);
    AscentLimits limits;
    const int part = given || first_ ? 10 : 1;
    limits.sweeps = effort.sweeps / part;
    limits.tolerance = given ? 1e-2 : 1e-3;
    std::vector<int> labels; // from a λ that is nearly optimal, the gap left says what pays
    if (const Cost gap = component_cost(w, vars, labels); given && !forbidden(gap))
        limits.least = gap >> 10;
    limits.work = effort.ascent_work;
    limits.seconds = effort.ascent_share / part * share * control_.seconds_left();
    ascent.run(limits, control_);
    if (w.log != nullptr)
        ascent.write(*w.log);
    if (!w.infeasible)
        normalise(w);
    return !w.infeasible;
}

// Adds the bound of the component to the sums. Returns true if it is solved.
bool Solver::solve_component(const std::vector<int> &vars, double share) {
    Work &w = now_->work;
    now_->search.reset();
    now_->last_work = INT64_MAX;
    now_->order = find_order(w, vars, options_.effort, control_);
    ComponentSize size{0, now_->order.finite, now_->order.entries};
    each_factor(w, vars, [&](const Factor &f) { size.tables += double(f.table.size()); });
    const ComponentPlan plan = plan_component(size, options_.effort, first_);
    if (plan.method == Method::ELIMINATE && eliminate(now_->order.order))
        return true;
    if (control_.stopped)
        return false;
    if (options_.ascent && !raise_bound(vars, share))
        return true;
    if (control_.end != nullptr && control_.end->passed()) {
        control_.stopped = true; // no later call needs the tables of a search
        return false;
    }
    set_up_search(vars);
    if (first_)
        now_->search->backtrack_budget = options_.effort.first_backtracks;
    if (plan.method == Method::SEARCH_FIRST)
        now_->last_work = control_.total + plan.work;
    return search_component(vars);
}

// Starts or resumes the search of a component. Returns true if it is solved.
bool Solver::search_component(const std::vector<int> &vars) {
    TreeSearch &search = *now_->search;
    for (;;) {
        const bool limited = now_->last_work < INT64_MAX;
        search.work_budget = INT64_MAX;
        if (limited)
            search.work_budget = std::max<std::int64_t>(0, now_->last_work - control_.total);
        search.run();
        result_.workers = std::max(result_.workers, search.workers());
        if (!search.complete && !first_ && control_.stopped) {
            paused_ = true;
            return false;
        }
        if (search.complete || !limited || control_.stopped)
            return collect(vars);
        if (eliminate(now_->order.order))
            return true;
        now_->last_work = INT64_MAX; // elimination would take too long: the search goes on
    }
}

void Solver::set_up_search(const std::vector<int> &vars) {
    Work &w = now_->work;
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
    now_->search =
        std::make_unique<TreeSearch>(control_, gap, options_.threads, options_.effort.split_work);
    TreeSearch &search = *now_->search;
    search.prepare(w, vars, std::max<Cost>(epsilon, 1), now_->log.get());
    if (!forbidden(upper))
        search.start_from(begin, upper);
    else
        search.start_below(highest_cost(w, vars) + 1);
    result_.searched += static_cast<int>(vars.size());
}

bool Solver::collect(const std::vector<int> &vars) {
    const TreeSearch &search = *now_->search;
    Work &w = now_->work;
    now_->sums.root += search.c0();
    if (log_ != nullptr)
        now_->log->op(Op::END);
    const auto &labels = search.known().labels;
    if (search.complete && labels.empty()) {
        w.infeasible = true;
        return true;
    }
    now_->sums.lower += search.lower;
    for (std::size_t k = 0; k < labels.size(); ++k)
        now_->sums.labels[vars[k]] = w.label[vars[k]][labels[k]];
    return search.complete;
}

// Begins a round. Returns false if the integer model is not made in time; a later call does it.
bool Solver::begin() {
    Input in = in_;
    in.incumbent = result_.labels;
    scale_ = choose_scale(in, result_.energy, options_.threads);
    if (!options_.log.empty()) {
        result_.log = options_.log + "." + std::to_string(logs_++);
        log_ = std::make_unique<Log>(result_.log);
    }
    first_ = round_ == 0 && result_.labels.empty() && scale_.slack > 0;
    auto round = std::make_unique<Round>();
    try {
        const Control::ToTheEnd whole(control_);
        round->work = build_work(in, scale_, options_.effort.split, options_.threads, log_.get(),
                                 control_.deadline);
    } catch (const OutOfTime &) {
        control_.stopped = true;
        result_.complete = false;
        if (log_ != nullptr) // it proves the bound of this round only
            result_.lower_bound = -INFINITY;
        return false;
    }
    now_ = std::move(round);
    Work &w = now_->work;
    if (!w.infeasible && options_.presolve)
        presolve(w, options_.effort, control_);
    now_->sums.labels.assign(in.n(), -1);
    if (!w.infeasible)
        now_->parts = components(w);
    result_.components = static_cast<int>(now_->parts.size());
    return true;
}

// Continues the proof in a new file without the records of the search. The file so far proves the
// bounds of earlier calls.
void Solver::forget_search() {
    now_->search.reset();
    if (log_ == nullptr)
        return;
    result_.log = options_.log + "." + std::to_string(logs_++);
    log_ = std::make_unique<Log>(result_.log, *log_, now_->log->begin());
    now_->work.log = log_.get();
}

void Solver::write_log() {
    if (log_ == nullptr)
        return;
    if (paused_)
        now_->log->write();
    result_.logged = log_->finish();
}

void Solver::solve_components() {
    Work &w = now_->work;
    while (now_->next < now_->parts.size() && !w.infeasible) {
        const auto &vars = now_->parts[now_->next];
        const bool resumed = paused_;
        paused_ = false;
        const double share = 1.0 / static_cast<double>(now_->parts.size() - now_->next);
        const bool solved = resumed ? search_component(vars) : solve_component(vars, share);
        if (paused_)
            return report_progress();
        now_->complete &= solved;
        ++now_->next;
    }
    if (!w.infeasible)
        offer_labels(now_->sums.labels);
    result_.root_bound = to_double(w.base + now_->sums.root, scale_, in_.constant);
    finish(w.base + now_->sums.lower, now_->complete, w.infeasible);
}

// Updates the result during a search. Components not yet searched contribute the bound 0.
void Solver::report_progress() {
    const Work &w = now_->work;
    auto labels = now_->sums.labels;
    for (std::size_t k = now_->next; k < now_->parts.size(); ++k)
        for (int v : now_->parts[k])
            if (!w.incumbent.empty())
                labels[v] = w.incumbent[v];
    const auto &vars = now_->parts[now_->next];
    const TreeSearch &search = *now_->search;
    const auto &found = search.known().labels;
    for (std::size_t k = 0; k < found.size(); ++k)
        labels[vars[k]] = w.label[vars[k]][found[k]];
    offer_labels(std::move(labels));
    result_.root_bound = to_double(w.base + now_->sums.root + search.c0(), scale_, in_.constant);
    finish(w.base + now_->sums.lower + search.lower, false, false);
}

void Solver::take(std::vector<std::int64_t> labels) {
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
void Solver::offer_labels(std::vector<std::int64_t> labels) {
    const Work &w = now_->work;
    for (const auto &e : w.eliminated)
        labels[e.variable] = 0;
    if (std::find(labels.begin(), labels.end(), -1) != labels.end())
        return;
    undo_eliminations(w, labels);
    offer(std::move(labels));
}

void Solver::finish(Wide lower, bool complete, bool infeasible) {
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
