// The minimum of a parity factor, rounded down, and the projection onto its polytope. Messages and
// the projection onto its cone are in cones.hpp.
#pragma once

#include "base/sums.hpp"
#include "cones.hpp"

namespace softmap {

// A lower bound (rounded down) on the least cost of a labelling of this parity. `room` has k + 1
// entries.
inline double parity_minimum(const double *cost, Index k, bool odd, double *room) {
    Index count = 0;
    for (Index t = 0; t < k; ++t)
        if (cost[t] < 0.0)
            room[count++] = cost[t];
    const Weakest w = weakest(cost, k);
    if (w.odd != odd) // wrong parity: flip the variable with the smallest |cost|
        room[count++] = w.first;
    return lower_sum(room, count);
}

// Projects v onto the parity polytope: the convex hull of all labellings of this parity.
//
// The polytope is the unit cube with the corners of the other parity cut off: the ℓ₁ distance to
// each such corner is at least 1. Only the constraint of the corner nearest to the point can be
// violated; then the coordinate distances are projected onto the unit simplex (Michelot 1986).
inline void into_parity_hull(double *v, Index k, bool odd, double *room) {
    if (k == 0)
        return;
    double total = 0.0, least = infinity;
    Index closest = 0;
    bool parity = false;
    for (Index t = 0; t < k; ++t) {
        const double u = std::min(std::max(v[t], 0.0), 1.0);
        const double from_middle = std::abs(u - 0.5);
        parity ^= u > 0.5;
        total += std::min(u, 1.0 - u);
        if (from_middle < least) {
            least = from_middle;
            closest = t;
        }
    }
    const bool turned =
        parity == odd; // the nearest corner has the right parity: flip one bit of it
    if (turned)
        total += 2.0 * least;
    if (total >= 1.0) {
        for (Index t = 0; t < k; ++t)
            v[t] = std::min(std::max(v[t], 0.0), 1.0);
        return;
    }
    const auto at_one = [&](Index t) { return (v[t] > 0.5) ^ (turned && t == closest); };
    double sum = 0.0, count = double(k);
    for (Index t = 0; t < k; ++t)
        sum += room[t] = at_one(t) ? 1.0 - v[t] : v[t];
    double shift = (1.0 - sum) / count;
    while (true) {
        sum = count = 0.0;
        for (Index t = 0; t < k; ++t)
            if (room[t] + shift > 0.0) {
                sum += room[t];
                count += 1.0;
            }
        const double next = (1.0 - sum) / count;
        if (!(next < shift))
            break;
        shift = next;
    }
    for (Index t = 0; t < k; ++t) {
        const double q = std::min(std::max(room[t] + shift, 0.0), 1.0);
        v[t] = at_one(t) ? 1.0 - q : q;
    }
}

} // namespace softmap
