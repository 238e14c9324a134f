// The integer model that presolve rewrites, and the records that recover labels of eliminated
// variables.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <unordered_map>

#include "input.hpp"
#include "log.hpp"

namespace softmap::exact {

// A cost table over two or more variables in increasing order, row-major.
struct Factor {
    std::vector<int> scope;
    std::vector<Cost> table;

    // The position of a variable of the scope.
    std::size_t axis(int v) const {
        return std::size_t(std::find(scope.begin(), scope.end(), v) - scope.begin());
    }
};

// How to label an eliminated variable once its neighbours are labelled. `choice` is a table over
// the labels that the neighbours had at the elimination; `index` maps an original label to its
// index in that table.
struct EliminatedVariable {
    int variable;
    std::vector<int> neighbours;
    std::vector<std::vector<int>> index;
    std::vector<std::uint32_t> choice; // original label of `variable`
};

struct ScopeHash {
    std::size_t operator()(const std::vector<int> &scope) const {
        std::uint64_t hash = scope.size();
        for (const int v : scope) // as SplitMix64
            hash = (hash ^ static_cast<std::uint64_t>(v)) * 0xbf58476d1ce4e5b9u, hash ^= hash >> 29;
        return static_cast<std::size_t>(hash);
    }
};

// Loops over its variables or factors use `threads` threads; what they compute does not depend on
// their number.
struct Work {
    std::vector<std::vector<Cost>> unary;
    std::vector<std::vector<int>> label; // original number of each label kept
    std::vector<std::unique_ptr<Factor>> factors;
    std::vector<std::vector<int>> incident; // factors of each variable, some of them removed
    std::vector<char> stale;                // whether `incident` names factors that were removed
    std::vector<char> gone;
    std::unordered_map<std::vector<int>, int, ScopeHash> by_scope;
    std::vector<EliminatedVariable> eliminated;
    std::vector<std::int64_t> incumbent; // original labels, or empty
    Wide base = 0;
    bool infeasible = false;
    bool hard = false; // whether a cost may be forbidden
    int threads = 1;
    Log *log = nullptr;

    int n() const { return static_cast<int>(unary.size()); }
    int d(int v) const { return static_cast<int>(unary[v].size()); }

    const std::vector<int> &alive_factors(int v) {
        if (stale[v])
            std::erase_if(incident[v], [&](int f) { return factors[f] == nullptr; });
        stale[v] = 0;
        return incident[v];
    }

    // Adds a factor, or adds its costs to the factor with its scope.
    void add_factor(Factor f) {
        const int number = find_or_list(f.scope);
        if (factors[number] == nullptr) {
            factors[number] = std::make_unique<Factor>(std::move(f));
            return;
        }
        auto &table = factors[number]->table;
        for (std::size_t k = 0; k < table.size(); ++k)
            table[k] = sum(table[k], f.table[k]);
    }
    // The number of the factor with a scope. If there is none, lists one, which is null.
    int find_or_list(const std::vector<int> &scope) {
        const auto [place, fresh] = by_scope.try_emplace(scope, static_cast<int>(factors.size()));
        if (fresh) {
            for (int v : scope)
                incident[v].push_back(place->second);
            factors.emplace_back();
        }
        return place->second;
    }
    void drop_factor(int f) {
        for (int v : factors[f]->scope)
            stale[v] = 1;
        by_scope.erase(factors[f]->scope);
        factors[f].reset();
    }
    // As `add_costs`, after moving the smallest entry to the constant.
    void add_result(Factor f) {
        const Cost least = *std::min_element(f.table.begin(), f.table.end());
        if (forbidden(least)) {
            infeasible = true;
            return;
        }
        base += least;
        for (auto &c : f.table) {
            c = less(c, least);
            hard |= forbidden(c);
        }
        add_costs(std::move(f));
    }
    // Adds a cost table over any number of variables, which are in increasing order.
    void add_costs(Factor f) {
        if (f.scope.size() >= 2) {
            add_factor(std::move(f));
            return;
        }
        if (f.scope.empty()) {
            if (forbidden(f.table[0]))
                infeasible = true;
            else
                base += f.table[0];
            return;
        }
        auto &u = unary[f.scope[0]];
        for (std::size_t a = 0; a < u.size(); ++a)
            u[a] = sum(u[a], f.table[a]);
    }
};

// A table as seen from one variable: entry (o, a, r), with label a of the variable, is at
// (o * labels + a) * inner + r.
struct Axis {
    std::int64_t outer = 1, labels, inner = 1;

    Axis(const Work &w, const Factor &f, std::size_t position) : labels(w.d(f.scope[position])) {
        for (std::size_t k = 0; k < position; ++k)
            outer *= w.d(f.scope[k]);
        for (std::size_t k = position + 1; k < f.scope.size(); ++k)
            inner *= w.d(f.scope[k]);
    }
    // Calls row(a, first entry of a row of `inner` entries) for all rows in their order.
    template <class Entry, class Visit> void each(Entry *table, Visit row) const {
        for (std::int64_t o = 0; o < outer; ++o)
            for (std::int64_t a = 0; a < labels; ++a, table += inner)
                row(a, table);
    }
};

// Returns the smallest entry for each label of the variable at `position`.
inline void min_marginal(const Work &w, const Factor &f, std::size_t position,
                         std::vector<Cost> &out) {
    const Axis axis(w, f, position);
    out.assign(axis.labels, INF);
    const Cost *t = f.table.data();
    if (axis.inner > 1)
        return axis.each(t, [&](std::int64_t a, const Cost *row) {
            Cost m = out[a];
            for (std::int64_t r = 0; r < axis.inner; ++r)
                m = std::min(m, row[r]);
            out[a] = m;
        });
    for (std::int64_t o = 0; o < axis.outer; ++o, t += axis.labels)
        for (std::int64_t a = 0; a < axis.labels; ++a)
            out[a] = std::min(out[a], t[a]);
}

// Adds amount[a] to every finite entry in which the variable at `position` has label a.
inline void add_to_table(const Work &w, Factor &f, std::size_t position,
                         const std::vector<Cost> &amount) {
    const Axis axis(w, f, position);
    Cost *t = f.table.data();
    if (axis.inner > 1)
        return axis.each(t, [&](std::int64_t a, Cost *row) {
            const Cost m = amount[a];
            for (std::int64_t r = 0; r < axis.inner; ++r)
                row[r] = forbidden(row[r]) ? INF : row[r] + m;
        });
    for (std::int64_t o = 0; o < axis.outer; ++o, t += axis.labels)
        for (std::int64_t a = 0; a < axis.labels; ++a)
            t[a] = forbidden(t[a]) ? INF : t[a] + amount[a];
}

// Moves the smallest entry of each table and of each variable's unary costs to the constant.
void normalise(Work &w);

} // namespace softmap::exact
