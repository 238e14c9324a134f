// Presolve: removal of forbidden labels, fixed variables and dominated labels.
#pragma once

#include "work.hpp"

namespace softmap::exact {

namespace detail {

// Returns the table restricted to the labels kept on one axis.
inline void restrict_axis(const Work &w, Factor &f, std::size_t position,
                          const std::vector<int> &kept) {
    std::int64_t inner = 1, outer = 1;
    for (std::size_t k = 0; k < f.scope.size(); ++k)
        (k < position ? outer : inner) *= k == position ? 1 : w.d(f.scope[k]);
    const std::int64_t labels = w.d(f.scope[position]);
    std::vector<Cost> table;
    table.reserve(outer * inner * kept.size());
    for (std::int64_t o = 0; o < outer; ++o)
        for (int a : kept) {
            const auto first = f.table.begin() + (o * labels + a) * inner;
            table.insert(table.end(), first, first + inner);
        }
    f.table = std::move(table);
}

} // namespace detail

// Keeps only the labels of `v` whose positions are listed.
inline void keep_labels(Work &w, int v, const std::vector<int> &kept) {
    if (static_cast<int>(kept.size()) == w.d(v))
        return;
    if (kept.empty()) {
        w.infeasible = true;
        return;
    }
    for (int f : w.alive_factors(v)) {
        auto &factor = *w.factors[f];
        const auto place = std::find(factor.scope.begin(), factor.scope.end(), v);
        detail::restrict_axis(w, factor, place - factor.scope.begin(), kept);
    }
    for (std::size_t k = 0; k < kept.size(); ++k) {
        w.unary[v][k] = w.unary[v][kept[k]];
        w.label[v][k] = w.label[v][kept[k]];
    }
    w.unary[v].resize(kept.size());
    w.label[v].resize(kept.size());
}

// Removes labels that are forbidden or have no support in some factor, to a fixpoint. Starts with
// the variables in `queue`.
inline void arc_consistency(Work &w, std::vector<int> queue, Control &control) {
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
            const auto &scope = w.factors[f]->scope;
            control.spend(static_cast<std::int64_t>(w.factors[f]->table.size()));
            min_marginal(w, *w.factors[f], std::find(scope.begin(), scope.end(), v) - scope.begin(),
                         best);
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
inline bool dominates(const Work &w, int v, int a, int b, const std::vector<int> &factors) {
    Cost worst = w.unary[v][a] - w.unary[v][b];
    for (int f : factors) {
        const auto &factor = *w.factors[f];
        const auto position =
            std::find(factor.scope.begin(), factor.scope.end(), v) - factor.scope.begin();
        std::int64_t inner = 1, outer = 1;
        for (std::size_t k = 0; k < factor.scope.size(); ++k)
            (static_cast<std::ptrdiff_t>(k) < position ? outer : inner) *=
                static_cast<std::ptrdiff_t>(k) == position ? 1 : w.d(factor.scope[k]);
        Cost most = -INF;
        for (std::int64_t o = 0; o < outer; ++o) {
            const Cost *ta = factor.table.data() + (o * w.d(v) + a) * inner;
            const Cost *tb = factor.table.data() + (o * w.d(v) + b) * inner;
            for (std::int64_t r = 0; r < inner; ++r)
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

// Removes dominated labels (dead-end elimination). Stops early after reading `budget` table
// entries.
inline bool remove_dominated(Work &w, Control &control, std::int64_t budget) {
    bool any = false;
    for (int v = 0; v < w.n() && budget > 0 && !control.stopped; ++v) {
        if (w.gone[v] || w.d(v) < 2)
            continue;
        const auto factors = w.alive_factors(v);
        std::int64_t entries = 1;
        for (int f : factors)
            entries += static_cast<std::int64_t>(w.factors[f]->table.size()) / w.d(v);
        std::vector<int> order(w.d(v)), kept;
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return w.unary[v][a] < w.unary[v][b]; });
        std::vector<char> out(w.d(v), 0);
        std::vector<int> swaps; // (removed label, label that dominates it) pairs
        for (int b : order)
            for (int a : order) {
                if (a == b || out[a] || budget <= 0)
                    continue;
                budget -= entries;
                control.spend(entries);
                if (!dominates(w, v, a, b, factors))
                    continue;
                out[b] = 1;
                swaps.insert(swaps.end(), {b, a});
                if (!w.incumbent.empty() && w.incumbent[v] == w.label[v][b])
                    w.incumbent[v] = w.label[v][a];
                break;
            }
        for (int a = 0; a < w.d(v); ++a)
            if (!out[a])
                kept.push_back(a);
        any |= static_cast<int>(kept.size()) < w.d(v);
        if (w.log != nullptr && !swaps.empty()) {
            w.log->note(Op::REMOVE, {v});
            w.log->array(swaps);
        }
        keep_labels(w, v, kept);
    }
    return any;
}

} // namespace softmap::exact
