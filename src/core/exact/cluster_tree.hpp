// A tree decomposition made of an elimination order.
#pragma once

#include "width.hpp"

namespace softmap::exact {

// Clusters of variables, joined to a forest: the variables of a factor are in one cluster, and the
// clusters of a variable are connected.
struct ClusterTree {
    std::vector<std::vector<int>> members; // variables of each cluster
    std::vector<std::vector<int>> near;    // clusters that are joined to each cluster
    std::vector<int> home;                 // a cluster of each variable
};

// Returns the sets of a variable and its neighbours at its elimination that are within no other.
inline ClusterTree cluster_tree(const Graph &g, std::span<const int> order) {
    const auto n = std::size_t(g.n());
    ClusterTree out{{}, {}, std::vector<int>(n)};
    std::vector<int> rank(n), own;
    for (std::size_t k = 0; k < n; ++k)
        rank[order[k]] = int(k);
    std::vector<std::vector<int>> waiting(n); // clusters by the first rank that they have left
    for (std::size_t k = 0; k < n; ++k) {
        const auto left = [&](int v) { return rank[v] > int(k); };
        const auto before = [&](int u, int v) { return rank[u] < rank[v]; };
        own.clear();
        const auto add = [&](const std::vector<int> &variables) {
            std::copy_if(variables.begin(), variables.end(), std::back_inserter(own), left);
        };
        add(g.near[order[k]]);
        for (const int c : waiting[k])
            add(out.members[c]);
        std::sort(own.begin(), own.end(), before);
        own.erase(std::unique(own.begin(), own.end()), own.end());
        const auto all = [&](int c) { // whether cluster c has all of `own`
            const auto &other = out.members[c];
            return std::size_t(std::count_if(other.begin(), other.end(), left)) == own.size();
        };
        const auto same = std::find_if(waiting[k].begin(), waiting[k].end(), all);
        const int cluster = same != waiting[k].end() ? *same : int(out.members.size());
        if (!own.empty())
            waiting[rank[own.front()]].push_back(cluster);
        if (same == waiting[k].end()) {
            own.push_back(order[k]);
            out.members.push_back(own);
            out.near.emplace_back();
        }
        out.home[order[k]] = cluster;
        for (const int c : waiting[k])
            if (c != cluster) {
                out.near[c].push_back(cluster);
                out.near[cluster].push_back(c);
            }
    }
    return out;
}

} // namespace softmap::exact
