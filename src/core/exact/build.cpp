// Builds the integer model from the input.
#include "base/team.hpp"
#include "odometer.hpp"
#include "presolve.hpp"

#include <mutex>
#include <numeric>

namespace softmap::exact {

namespace {

// Largest finite excess of an entry over the smallest entry of its block, in units.
std::int64_t most_units(const Scale &scale) {
    return static_cast<std::int64_t>(scale.units(scale.spread)) + 2;
}

// Writes the integer costs of one block minus the smallest, which is added to `base`. Entries that
// exceed the smallest by more than `most_units` are forbidden; `hard` is set if there are any.
void to_units(std::span<const double> costs, const Scale &scale, Cost *out, Wide &base,
              bool &hard) {
    double lo = INFINITY;
    for (double c : costs)
        lo = std::min(lo, c);
    std::fill_n(out, costs.size(), INF);
    hard = hard || !std::isfinite(lo);
    if (!std::isfinite(lo))
        return;
    const double low = scale.units(lo);
    const std::int64_t most = most_units(scale);
    const bool small = std::fabs(low) < 0x1p52; // then differences up to `most` are exact
    for (std::size_t k = 0; k < costs.size(); ++k) {
        const double units = scale.units(costs[k]);
        if (small && units < 0x1p52) {
            if (const auto above = static_cast<Cost>(units - low); above <= most)
                out[k] = above;
        } else if (units - low < 0x1p62) // what is larger is forbidden, and may not fit 128 bits
            if (const Wide above = static_cast<Wide>(units) - static_cast<Wide>(low); above <= most)
                out[k] = static_cast<Cost>(above);
        hard = hard || forbidden(out[k]);
    }
    base += static_cast<Wide>(low);
}

// The factors of the input: where their costs are, and their numbers in the integer model.
struct InputFactors {
    const Input &in;
    std::vector<std::int64_t> table; // first entry of each table, and the end
    std::vector<std::int64_t> lam;   // first entry of each λ
    std::vector<int> number;
    std::vector<int> again; // factors whose scope an earlier one has
};

bool in_order(const Input &in, std::int64_t f) {
    return std::is_sorted(in.scope.begin() + in.scope_start[f],
                          in.scope.begin() + in.scope_start[f + 1]);
}

// Writes a table with its axes in increasing order of the variables.
void sort_axes(const Input &in, std::int64_t f, const std::vector<Cost> &table, Cost *out) {
    const auto scope =
        in.scope.subspan(in.scope_start[f], in.scope_start[f + 1] - in.scope_start[f]);
    std::vector<std::pair<std::int64_t, std::int64_t>> axes; // variable, stride
    std::int64_t step = 1;
    for (std::size_t k = scope.size(); k-- > 0; step *= in.num_labels[scope[k]])
        axes.emplace_back(scope[k], step);
    std::sort(axes.begin(), axes.end());
    std::vector<int> sizes;
    std::vector<std::int64_t> stride;
    for (const auto &[v, s] : axes) {
        sizes.push_back(static_cast<int>(in.num_labels[v]));
        stride.push_back(s);
    }
    Odometer from(sizes, stride);
    for (std::size_t t = 0; t < table.size(); ++t, from.step())
        out[t] = table[from.at];
}

void load_variables(Work &w, const Input &in, const Scale &scale) {
    const int n = in.n();
    w.incident.resize(n);
    w.gone.assign(n, 0);
    w.stale.assign(n, 0);
    w.unary.resize(n);
    w.label.resize(n);
    std::int64_t at = 0;
    for (int v = 0; v < n; ++v) {
        w.unary[v].resize(in.num_labels[v]);
        to_units(in.unary.subspan(at, in.num_labels[v]), scale, w.unary[v].data(), w.base, w.hard);
        w.label[v].resize(in.num_labels[v]);
        std::iota(w.label[v].begin(), w.label[v].end(), 0);
        at += in.num_labels[v];
    }
}

// Numbers the factors and allocates their tables, which are empty.
InputFactors list_factors(Work &w, const Input &in) {
    InputFactors given{in, in.table_starts(), {}, {}, {}};
    const int count = in.num_factors();
    std::vector<int> degree(in.n(), 0), scope;
    for (const auto v : in.scope)
        ++degree[v];
    for (int v = 0; v < in.n(); ++v)
        w.incident[v].reserve(degree[v]);
    w.by_scope.reserve(count);
    w.factors.reserve(count);
    given.number.reserve(count);
    std::int64_t lam = 0;
    for (int f = 0; f < count; ++f) {
        scope.assign(in.scope.begin() + in.scope_start[f],
                     in.scope.begin() + in.scope_start[f + 1]);
        given.lam.push_back(lam);
        for (const int v : scope)
            lam += in.num_labels[v];
        std::sort(scope.begin(), scope.end());
        const int number = w.find_or_list(scope);
        given.number.push_back(number);
        if (w.factors[number] != nullptr) {
            given.again.push_back(f);
            continue;
        }
        w.factors[number] = std::make_unique<Factor>(Factor{scope, {}});
        w.factors[number]->table.reserve(given.table[f + 1] - given.table[f]);
    }
    return given;
}

// Adds the integer costs of one factor to `w`: writes them to its table, or adds them to the costs
// of an earlier factor. Nothing else of `w` changes.
void load_factor(Work &w, const InputFactors &given, const Scale &scale, std::int64_t f, bool again,
                 Wide &base, bool &hard) {
    auto &table = w.factors[given.number[f]]->table;
    const auto costs = given.in.tables.subspan(given.table[f], given.table[f + 1] - given.table[f]);
    if (!again && in_order(given.in, f)) {
        table.resize(costs.size());
        to_units(costs, scale, table.data(), base, hard);
        return;
    }
    std::vector<Cost> units(costs.size()), sorted(costs.size());
    to_units(costs, scale, units.data(), base, hard);
    sort_axes(given.in, f, units, sorted.data());
    table.resize(costs.size(), 0);
    for (std::size_t k = 0; k < table.size(); ++k)
        table[k] = sum(table[k], sorted[k]);
}

// Calls body(first, last, meter) on all threads; throws OutOfTime if one of them was late.
template <class Body>
void split_in_time(int threads, Index count, const Deadline *deadline, Body &&body) {
    std::atomic<bool> late = false;
    split(threads, count, [&](Index first, Index last) {
        Meter meter(deadline);
        body(first, last, meter);
        if (meter.late())
            late = true;
    });
    if (late)
        throw OutOfTime();
}

void load_factors(Work &w, const InputFactors &given, const Scale &scale,
                  const Deadline *deadline) {
    std::mutex mutex;
    std::vector<char> again(given.number.size(), 0);
    for (const int f : given.again)
        again[f] = 1;
    const auto entries = [&](Index f) { return given.table[f + 1] - given.table[f]; };
    split_in_time(w.threads, given.in.num_factors(), deadline,
                  [&](Index first, Index last, Meter &meter) {
                      Wide base = 0;
                      bool hard = false;
                      for (Index f = first; f < last && !meter.tick(entries(f)); ++f)
                          if (!again[f])
                              load_factor(w, given, scale, f, false, base, hard);
                      const std::lock_guard lock(mutex);
                      w.base += base;
                      w.hard |= hard;
                  });
    for (const int f : given.again)
        load_factor(w, given, scale, f, true, w.base, w.hard);
}

Cost lam_units(const Scale &scale, double lam) {
    const double u = scale.units(lam);
    return static_cast<Cost>(std::clamp(std::isnan(u) ? 0.0 : u, -0x1p50, 0x1p50));
}

// Writes the moves of `apply_lam` to the proof log.
void log_lam(const Work &w, const InputFactors &given, const Scale &scale) {
    const Input &in = given.in;
    std::vector<std::int64_t> places; // factor, axis, ...
    std::vector<Cost> amounts;
    for (int f = 0; f < in.num_factors(); ++f) {
        const Factor *factor = w.factors[given.number[f]].get();
        auto at = given.lam[f];
        for (auto k = in.scope_start[f]; k < in.scope_start[f + 1] && factor != nullptr; ++k) {
            places.insert(places.end(), {given.number[f], Index(factor->axis(int(in.scope[k])))});
            for (int a = 0; a < in.num_labels[in.scope[k]]; ++a)
                amounts.push_back(-lam_units(scale, in.lam[at++]));
        }
    }
    w.log->op(Op::SHIFT);
    w.log->array(places);
    w.log->array(amounts);
}

// Adds λ, in units, to the tables of factors first..last-1.
void add_lam(Work &w, const InputFactors &given, const Scale &scale, Index first, Index last,
             std::vector<Cost> &block, Meter &meter) {
    const Input &in = given.in;
    for (Index f = first; f < last && !meter.tick(given.table[f + 1] - given.table[f]); ++f) {
        Factor *factor = w.factors[given.number[f]].get();
        auto at = given.lam[f];
        for (auto k = in.scope_start[f]; k < in.scope_start[f + 1] && factor != nullptr; ++k) {
            block.clear();
            for (int a = 0; a < in.num_labels[in.scope[k]]; ++a)
                block.push_back(lam_units(scale, in.lam[at++]));
            add_to_table(w, *factor, factor->axis(int(in.scope[k])), block);
        }
    }
}

// Moves λ, in units, from variables to their factors. Factors that were split keep their costs.
void apply_lam(Work &w, const InputFactors &given, const Scale &scale, const Deadline *deadline) {
    const Input &in = given.in;
    const auto most = std::max_element(in.num_labels.begin(), in.num_labels.end());
    // factors with one scope have one table: one thread adds to it
    const int threads = given.again.empty() ? w.threads : 1;
    split_in_time(threads, in.num_factors(), deadline, [&](Index first, Index last, Meter &meter) {
        std::vector<Cost> block;
        block.reserve(most == in.num_labels.end() ? 0 : *most);
        add_lam(w, given, scale, first, last, block, meter);
    });
    // each thread reads all scopes
    split_in_time(w.threads, in.n(), deadline, [&](Index first, Index last, Meter &meter) {
        for (int f = 0; f < in.num_factors() && !meter.tick(1); ++f) {
            if (w.factors[given.number[f]] == nullptr)
                continue;
            auto at = given.lam[f];
            for (auto k = in.scope_start[f]; k < in.scope_start[f + 1]; ++k) {
                const auto v = in.scope[k];
                if (first <= v && v < last)
                    for (int a = 0; a < in.num_labels[v]; ++a)
                        w.unary[v][a] = less(w.unary[v][a], lam_units(scale, in.lam[at + a]));
                at += in.num_labels[v];
            }
        }
    });
    if (w.log != nullptr)
        log_lam(w, given, scale);
}

} // namespace

void normalise(Work &w) {
    std::mutex mutex;
    const auto each = [&](Index count, const auto &costs_of) {
        split(w.threads, count, [&](Index first, Index last) {
            Wide base = 0;
            bool infeasible = false;
            for (Index k = first; k < last && !infeasible; ++k) {
                std::vector<Cost> *costs = costs_of(k);
                if (costs == nullptr)
                    continue;
                const Cost m = *std::min_element(costs->begin(), costs->end());
                infeasible = forbidden(m);
                base += m;
                for (Cost &c : *costs)
                    c = less(c, m);
            }
            const std::lock_guard lock(mutex);
            w.base += base;
            w.infeasible |= infeasible;
        });
    };
    each(w.n(), [&](Index v) { return w.gone[v] ? nullptr : &w.unary[v]; });
    each(Index(w.factors.size()),
         [&](Index f) { return w.factors[f] == nullptr ? nullptr : &w.factors[f]->table; });
}

// The integer model of the input, made by `threads` threads. λ, if given, moves integer costs
// between factors and variables.
Work build_work(const Input &in, const Scale &scale, std::size_t most_split, int threads, Log *log,
                const Deadline *deadline) {
    Work w;
    w.log = log;
    w.threads = threads;
    load_variables(w, in, scale);
    require_time(deadline);
    const auto given = list_factors(w, in);
    load_factors(w, given, scale, deadline);
    w.incumbent.assign(in.incumbent.begin(), in.incumbent.end());
    if (log != nullptr)
        log->note(Op::LOAD,
                  {static_cast<std::int64_t>(scale.factor), scale.exponent, most_units(scale)});
    // split before λ is added: afterwards a factor may not be a sum over pairs
    split_factors(w, most_split);
    if (!in.lam.empty())
        apply_lam(w, given, scale, deadline);
    normalise(w);
    return w;
}

} // namespace softmap::exact
