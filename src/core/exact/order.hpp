// Elimination orders of a component of the integer model, and dynamic programming in that order.
#pragma once

#include "presolve.hpp"
#include "programming.hpp"
#include "width.hpp"

namespace softmap::exact {

// The graph of a component; its variables are numbered as in `vars`.
Graph graph_of(Work &w, const std::vector<int> &vars);

// The buckets of a component for an order of its variables; the tables are copied.
CostBuckets fill_buckets(Work &w, const std::vector<int> &order);

} // namespace softmap::exact
