// Linear assignment by shortest augmenting paths, with the prices of labels that prove it.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/augmenting.hpp"
#include "base/deadline.hpp"

namespace softmap::feasibility {

// Gives variables i different labels x = labels[i] with the smallest sum of costs[i, x]
// ([count, width], +inf is forbidden); labels[i] = -1 if labels i could have are all needed by the
// variables before it, so the variables with a label are a maximum matching. The prices v [width]
// are at most 0, and 0 for labels that no variable has. If each variable has a label,
// Σ_i min_x (costs[i, x] - v[x]) + Σ_x v[x] is the optimum, up to rounding; for any v ≤ 0 it is a
// lower bound. Returns false if the deadline has passed before.
inline bool assign(const double *costs, Index count, Index width, Index *labels, double *prices,
                   Meter &meter) {
    Augmenting<double> paths(INFINITY);
    paths.reset(count, width);
    const auto row_of = [&](Index i) { return costs + i * width; };
    bool done = true;
    for (Index i = 0; i < count && done; ++i)
        done = paths.add(i, row_of, [&](Index read) { return meter.tick(read); });
    std::copy(paths.column.begin(), paths.column.end(), labels);
    std::copy(paths.v.begin(), paths.v.end(), prices);
    return done;
}

} // namespace softmap::feasibility
