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
ClusterTree cluster_tree(const Graph &g, std::span<const int> order);

} // namespace softmap::exact
