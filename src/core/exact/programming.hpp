// Dynamic programming over buckets of integer costs: the lowest cost, and the best labellings.
#pragma once

#include "buckets.hpp"

namespace softmap::exact {

// Costs are not negative. A labelling costs `constant` plus its entry in every table.
class CostBuckets : public Buckets<Cost> {
  public:
    using Buckets::Buckets;
    Cost lowest = 0; // after `run`: the lowest cost; INF if every labelling is forbidden

    // Eliminates all variables. Returns false if time ran out.
    bool run(int threads, Control &control);

    // A labelling of lowest cost; the first one in the order of labels, last variable first.
    std::vector<int> best_labels() const;

    // Up to m labellings of lowest cost with their costs, in increasing order. The cost of the best
    // completion of a partial labelling is known, so every step leads to one of them. Returns
    // fewer if no more exist or if time ran out.
    std::vector<std::pair<Cost, std::vector<int>>> best_of(std::size_t m, Control &control) const;

  private:
    // The sum of the tables of v at the labels of v and of the variables after it.
    Cost cost_at(int v, const std::vector<int> &x) const;
    bool eliminate(int v, int threads, Control &control);
};

} // namespace softmap::exact
