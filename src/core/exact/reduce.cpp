// Presolve: removal of forbidden labels, fixed variables and dominated labels.
#include "base/team.hpp"
#include "presolve.hpp"

#include <numeric>

namespace softmap::exact {

namespace {

// Restricts the table to the labels kept of variable v.
void restrict_axis(const Work &w, Factor &f, int v, const std::vector<int> &kept) {
    const Axis axis(w, f, f.axis(v));
    std::vector<Cost> table;
    table.reserve(axis.outer * axis.inner * kept.size());
    for (std::int64_t o = 0; o < axis.outer; ++o)
        for (int a : kept) {
            const auto first = f.table.begin() + (o * axis.labels + a) * axis.inner;
            table.insert(table.end(), first, first + axis.inner);
        }
    f.table = std::move(table);
}

} // namespace

// Keeps only the labels of `v` whose positions are listed.
void keep_labels(Work &w, int v, const std::vector<int> &kept) {
    if (static_cast<int>(kept.size()) == w.d(v))
        return;
    if (kept.empty()) {
        w.infeasible = true;
        return;
    }
    for (int f : w.alive_factors(v))
        restrict_axis(w, *w.factors[f], v, kept);
    for (std::size_t k = 0; k < kept.size(); ++k) {
        w.unary[v][k] = w.unary[v][kept[k]];
        w.label[v][k] = w.label[v][kept[k]];
    }
    w.unary[v].resize(kept.size());
    w.label[v].resize(kept.size());
}

// Removes labels that are forbidden or have no support in some factor, to a fixpoint. Starts with
// the variables in `queue`.
void arc_consistency(Work &w, std::vector<int> queue, Control &control) {
    if (!w.hard) { // all costs are finite; the work is counted as if they had been read
        std::int64_t entries = 0;
        for (int v : queue)
            for (int f : w.alive_factors(v))
                entries += static_cast<std::int64_t>(w.factors[f]->table.size());
        control.spend(entries);
        return;
    }
    std::vector<char> queued(w.n(), 0);
    for (int v : queue)
        queued[v] = 1;
    std::vector<Cost> best;
    for (std::size_t head = 0; head < queue.size() && !w.infeasible; ++head) {
        const int v = queue[head];
        queued[v] = 0;
        if (w.gone[v])
            continue;
        auto possible = w.unary[v];
        const auto factors = w.alive_factors(v);
        for (int f : factors) {
            control.spend(static_cast<std::int64_t>(w.factors[f]->table.size()));
            min_marginal(w, *w.factors[f], w.factors[f]->axis(v), best);
            for (std::size_t a = 0; a < best.size(); ++a)
                possible[a] = sum(possible[a], best[a]);
        }
        std::vector<int> kept, removed; // `removed`: label, -1, ...
        for (int a = 0; a < w.d(v); ++a)
            if (!forbidden(possible[a]))
                kept.push_back(a);
            else
                removed.insert(removed.end(), {a, -1});
        if (static_cast<int>(kept.size()) == w.d(v))
            continue;
        if (w.log != nullptr) {
            w.log->note(Op::REMOVE, {v});
            w.log->array(removed);
        }
        keep_labels(w, v, kept);
        for (int f : factors)
            for (int u : w.factors[f]->scope)
                if (u != v && !queued[u]) {
                    queued[u] = 1;
                    queue.push_back(u);
                }
    }
}

// Whether label a of v costs no more than label b for all labels of the neighbours.
bool dominates(const Work &w, int v, int a, int b, const std::vector<int> &factors) {
    Cost worst = w.unary[v][a] - w.unary[v][b];
    for (int f : factors) {
        const auto &factor = *w.factors[f];
        const Axis axis(w, factor, factor.axis(v));
        Cost most = -INF;
        for (std::int64_t o = 0; o < axis.outer; ++o) {
            const Cost *ta = factor.table.data() + (o * axis.labels + a) * axis.inner;
            const Cost *tb = factor.table.data() + (o * axis.labels + b) * axis.inner;
            for (std::int64_t r = 0; r < axis.inner; ++r)
                if (!forbidden(tb[r]))
                    most = std::max(most, ta[r] - tb[r]);
        }
        if (most == -INF)
            return true; // every entry of b is forbidden
        if (most >= HALF)
            return false;
        worst += most;
    }
    return worst <= 0;
}

namespace {

// Labels of a variable that others dominate, as pairs (removed label, label that dominates it) in
// the order in which they are found, and the number of table entries read for it.
struct Dominated {
    std::vector<int> swaps;
    std::int64_t read = 0;
};

// Looks for dominated labels of v until `budget` table entries are read.
Dominated find_dominated(Work &w, int v, std::int64_t budget) {
    Dominated found;
    if (w.gone[v] || w.d(v) < 2)
        return found;
    const auto &factors = w.alive_factors(v);
    std::int64_t entries = 1;
    for (int f : factors)
        entries += static_cast<std::int64_t>(w.factors[f]->table.size()) / w.d(v);
    std::vector<int> order(w.d(v));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return w.unary[v][a] < w.unary[v][b]; });
    std::vector<char> out(w.d(v), 0);
    for (int b : order)
        for (int a : order) {
            if (a == b || out[a] || found.read >= budget)
                continue;
            found.read += entries;
            if (!dominates(w, v, a, b, factors))
                continue;
            out[b] = 1;
            found.swaps.insert(found.swaps.end(), {b, a});
            break;
        }
    return found;
}

// Removes the labels found; the incumbent takes the labels that dominate its own.
void swap_labels(Work &w, int v, const std::vector<int> &swaps) {
    std::vector<char> out(w.d(v), 0);
    for (std::size_t k = 0; k < swaps.size(); k += 2) {
        out[swaps[k]] = 1;
        if (!w.incumbent.empty() && w.incumbent[v] == w.label[v][swaps[k]])
            w.incumbent[v] = w.label[v][swaps[k + 1]];
    }
    if (w.log != nullptr) {
        w.log->note(Op::REMOVE, {v});
        w.log->array(swaps);
    }
    std::vector<int> kept;
    for (int a = 0; a < w.d(v); ++a)
        if (!out[a])
            kept.push_back(a);
    keep_labels(w, v, kept);
}

} // namespace

// Removes dominated labels (dead-end elimination), one variable after the other. Stops early after
// reading `budget` table entries.
//
// Several threads look at the next variables ahead of time. What they find for a variable counts
// unless a neighbour has lost labels since.
bool remove_dominated(Work &w, Control &control, std::int64_t budget) {
    constexpr int block = 2 * worthwhile; // variables looked at ahead
    const bool ahead = w.threads > 1 && w.n() >= worthwhile;
    bool any = false;
    std::vector<Dominated> found(ahead ? block : 0);
    std::vector<char> current(w.n(), 0); // whether what was found is up to date
    for (int v = 0; v < w.n() && budget > 0 && !control.stopped; ++v) {
        if (ahead && v % block == 0)
            split(w.threads, std::min(block, w.n() - v), [&](Index first, Index last) {
                for (Index k = first; k < last; ++k) {
                    found[k] = find_dominated(w, v + static_cast<int>(k), budget);
                    current[v + k] = 1;
                }
            });
        auto own = current[v] ? std::move(found[v % block]) : Dominated{};
        if (!current[v] || own.read >= budget)
            own = find_dominated(w, v, budget);
        budget -= own.read;
        control.spend(own.read);
        if (own.swaps.empty())
            continue;
        any = true;
        for (int f : w.alive_factors(v))
            for (int u : w.factors[f]->scope)
                current[u] = 0;
        swap_labels(w, v, own.swaps);
    }
    return any;
}

} // namespace softmap::exact
