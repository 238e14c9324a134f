// The integer model that presolve rewrites, and the records that recover labels of eliminated
// variables.
#pragma once

#include <array>
#include <map>
#include <memory>

#include "input.hpp"
#include "log.hpp"

namespace softmap::exact {

// A cost table over two or more variables in increasing order, row-major.
struct Factor {
    std::vector<int> scope;
    std::vector<Cost> table;
};

// How to label an eliminated variable once its neighbours are labelled. `choice` is a table over
// the labels that the neighbours had at the elimination; `index` maps an original label to its
// index in that table.
struct Elimination {
    int variable;
    std::vector<int> neighbours;
    std::vector<std::vector<int>> index;
    std::vector<std::uint32_t> choice; // original label of `variable`
};

struct Work {
    std::vector<std::vector<Cost>> unary;
    std::vector<std::vector<int>> label; // original number of each label kept
    std::vector<std::unique_ptr<Factor>> factors;
    std::vector<std::vector<int>> incident; // factors of each variable, some of them removed
    std::vector<char> gone;
    std::map<std::vector<int>, int> by_scope;
    std::vector<Elimination> eliminated;
    std::vector<std::int64_t> incumbent; // original labels, or empty
    Wide base = 0;
    bool infeasible = false;
    Log *log = nullptr;

    int n() const { return static_cast<int>(unary.size()); }
    int d(int v) const { return static_cast<int>(unary[v].size()); }

    std::vector<int> alive_factors(int v) {
        auto &list = incident[v];
        std::erase_if(list, [&](int f) { return factors[f] == nullptr; });
        return list;
    }

    // Adds a factor, or adds its costs to the factor with its scope. Returns that factor's number.
    int add_factor(Factor f) {
        auto [place, fresh] = by_scope.try_emplace(f.scope, static_cast<int>(factors.size()));
        if (!fresh) {
            auto &table = factors[place->second]->table;
            for (std::size_t k = 0; k < table.size(); ++k)
                table[k] = sum(table[k], f.table[k]);
            return place->second;
        }
        for (int v : f.scope)
            incident[v].push_back(place->second);
        factors.push_back(std::make_unique<Factor>(std::move(f)));
        return place->second;
    }
    void drop_factor(int f) {
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
        for (auto &c : f.table)
            c = less(c, least);
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

// Returns the smallest entry for each label of the variable at `position`.
inline void min_marginal(const Work &w, const Factor &f, std::size_t position,
                         std::vector<Cost> &out) {
    std::int64_t inner = 1, outer = 1;
    for (std::size_t k = 0; k < f.scope.size(); ++k)
        (k < position ? outer : inner) *= k == position ? 1 : w.d(f.scope[k]);
    const int labels = w.d(f.scope[position]);
    out.assign(labels, INF);
    const Cost *t = f.table.data();
    for (std::int64_t o = 0; o < outer; ++o)
        for (int a = 0; a < labels; ++a, t += inner) {
            Cost m = out[a];
            for (std::int64_t r = 0; r < inner; ++r)
                m = std::min(m, t[r]);
            out[a] = m;
        }
}

// Adds amount[a] to every finite entry in which the variable at `position` has label a.
inline void add_to_table(const Work &w, Factor &f, std::size_t position,
                         const std::vector<Cost> &amount) {
    std::int64_t inner = 1, outer = 1;
    for (std::size_t k = 0; k < f.scope.size(); ++k)
        (k < position ? outer : inner) *= k == position ? 1 : w.d(f.scope[k]);
    const int labels = w.d(f.scope[position]);
    Cost *t = f.table.data();
    for (std::int64_t o = 0; o < outer; ++o)
        for (int a = 0; a < labels; ++a, t += inner) {
            const Cost m = amount[a];
            for (std::int64_t r = 0; r < inner; ++r)
                t[r] = forbidden(t[r]) ? INF : t[r] + m;
        }
}

// Moves the smallest entry of each table and of each variable's unary costs to the constant.
inline void normalise(Work &w) {
    auto lower = [&](std::vector<Cost> &costs) {
        const Cost m = *std::min_element(costs.begin(), costs.end());
        if (forbidden(m)) {
            w.infeasible = true;
            return;
        }
        w.base += m;
        for (Cost &c : costs)
            c = less(c, m);
    };
    for (int v = 0; v < w.n() && !w.infeasible; ++v)
        if (!w.gone[v])
            lower(w.unary[v]);
    for (auto &f : w.factors)
        if (f != nullptr && !w.infeasible)
            lower(f->table);
}

// Returns the table with its axes in increasing order of the variables.
inline Factor sorted_factor(std::vector<int> scope, std::vector<Cost> table,
                            const std::vector<int> &sizes) {
    if (std::is_sorted(scope.begin(), scope.end()))
        return {std::move(scope), std::move(table)};
    std::vector<int> order(scope.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return scope[a] < scope[b]; });
    std::vector<std::int64_t> stride(scope.size(), 1);
    for (int k = static_cast<int>(scope.size()) - 2; k >= 0; --k)
        stride[k] = stride[k + 1] * sizes[k + 1];
    Factor out;
    for (int k : order)
        out.scope.push_back(scope[k]);
    out.table.resize(table.size());
    std::vector<int> at(scope.size(), 0);
    std::int64_t from = 0;
    for (auto &c : out.table) {
        c = table[from];
        for (int k = static_cast<int>(order.size()) - 1; k >= 0; --k) {
            from += stride[order[k]];
            if (++at[k] < sizes[order[k]])
                break;
            from -= stride[order[k]] * at[k];
            at[k] = 0;
        }
    }
    return out;
}

// Largest finite excess of an entry over the smallest entry of its block, in units.
inline std::int64_t most_units(const Scale &scale) {
    return static_cast<std::int64_t>(scale.units(scale.spread)) + 2;
}

namespace detail {

// Returns the integer costs of one block minus the smallest, which is added to `base`. Entries that
// exceed the smallest by more than `most_units` are forbidden.
inline std::vector<Cost> to_units(std::span<const double> costs, const Scale &scale, Wide &base) {
    double lo = INFINITY;
    for (double c : costs)
        lo = std::min(lo, c);
    std::vector<Cost> out(costs.size(), INF);
    if (!std::isfinite(lo))
        return out;
    const auto low = static_cast<Wide>(scale.units(lo));
    const Wide most = most_units(scale);
    for (std::size_t k = 0; k < costs.size(); ++k)
        if (std::isfinite(costs[k]))
            if (const Wide above = static_cast<Wide>(scale.units(costs[k])) - low; above <= most)
                out[k] = static_cast<Cost>(above);
    base += low;
    return out;
}

} // namespace detail

} // namespace softmap::exact
