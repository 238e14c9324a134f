// The labellings of lowest cost by dynamic programming, with bounds.
#pragma once

#include "input.hpp"

namespace softmap::exact {

struct Ranked {
    std::vector<std::vector<std::int64_t>> labels;
    std::vector<double> bounds; // lower bound on the energy of the labelling of each rank
    double slack = 0.0;         // largest decrease of a bound by rounding costs down
    bool complete = false;      // false if time ran out
};

// Up to m labellings in increasing order of rounded cost. The integer cost of every labelling is at
// most its energy, so the k-th lowest integer cost is a lower bound on the k-th lowest energy.
// `upper` is +inf, or an upper bound on the m-th lowest energy.
Ranked best_labellings(const Input &in, const std::vector<int> &order, std::size_t m, double upper,
                       int threads, Control &control);

} // namespace softmap::exact
