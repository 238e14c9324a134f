// Elimination orders of a component of the integer model, and dynamic programming in that order.
#pragma once

#include "presolve.hpp"
#include "programming.hpp"
#include "width.hpp"

namespace softmap::exact {

// The graph of a component; its variables are numbered as in `vars`.
inline Graph graph_of(Work &w, const std::vector<int> &vars) {
    Graph g;
    g.near.resize(vars.size());
    std::vector<int> index(w.n(), -1);
    for (std::size_t k = 0; k < vars.size(); ++k) {
        index[vars[k]] = static_cast<int>(k);
        g.bits.push_back(std::log2(w.d(vars[k])));
    }
    std::vector<int> near;
    for (std::size_t k = 0; k < vars.size(); ++k) {
        neighbours(w, vars[k], near);
        for (int &u : near)
            u = index[u];
        std::sort(near.begin(), near.end());
        g.near[k] = near;
    }
    return g;
}

// The buckets of a component for an order of its variables; the tables are copied.
inline CostBuckets fill_buckets(Work &w, const std::vector<int> &order) {
    std::vector<int> labels, rank(w.n(), -1);
    for (std::size_t k = 0; k < order.size(); ++k) {
        rank[order[k]] = static_cast<int>(k);
        labels.push_back(w.d(order[k]));
    }
    CostBuckets out(labels);
    for (const int v : order) {
        out.add(ordered_table({rank[v]}, w.unary[v].data(), labels));
        for (const int f : w.alive_factors(v)) {
            const auto &factor = *w.factors[f];
            if (factor.scope[0] != v)
                continue; // added with its first variable
            std::vector<int> scope;
            for (const int u : factor.scope)
                scope.push_back(rank[u]);
            out.add(ordered_table(scope, factor.table.data(), labels));
        }
    }
    return out;
}

} // namespace softmap::exact
