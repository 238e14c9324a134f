// A parity factor over k binary variables allows only labellings of one parity. This file has its
// minimum, its messages and the projections onto its polytope and cone, each in O(k) per iteration.
//
// All costs are those of label 1; label 0 costs 0.
#pragma once

#include "base/sums.hpp"

#include <algorithm>
#include <cmath>

namespace softmap {

// The smallest and second smallest |v[t]|, the index of the smallest, and whether an odd number of
// entries of v is negative.
struct Weakest {
    double first = infinity, second = infinity;
    Index at = 0;
    bool odd = false;
};

inline Weakest weakest(const double *v, Index k) {
    Weakest w;
    for (Index t = 0; t < k; ++t) {
        const double size = std::abs(v[t]);
        w.odd ^= v[t] < 0.0;
        if (size < w.first) {
            w.second = w.first;
            w.first = size;
            w.at = t;
        } else if (size < w.second) {
            w.second = size;
        }
    }
    return w;
}

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

// Hard messages: out[t] = least cost of the other variables if t has label 1, minus the same if t
// has label 0.
inline void parity_messages(const double *cost, Index k, bool odd, double *out) {
    const Weakest w = weakest(cost, k);
    for (Index t = 0; t < k; ++t) {
        const double size = t == w.at ? w.second : w.first;
        out[t] = (w.odd ^ odd ^ (cost[t] < 0.0)) ? -size : size;
    }
}

// Projects v onto the cone of costs at which no labelling of even parity costs less than 0. A point
// is in the cone if no two entries have a negative sum: at most one entry is negative, -T, and all
// others are at least T. T is the root of a convex piecewise linear function; Newton's method
// descends to it from the right in finitely many steps.
inline void into_parity_cone(double *v, Index k) {
    if (k < 2)
        return;
    Index low = 0;
    double second = infinity;
    for (Index t = 1; t < k; ++t) {
        if (v[t] < v[low]) {
            second = v[low];
            low = t;
        } else {
            second = std::min(second, v[t]);
        }
    }
    if (!(v[low] + second < 0.0)) // rounding does not change the sign of a sum of two doubles
        return;
    double T = -v[low];
    while (true) {
        double sum = -v[low], count = 1.0;
        for (Index t = 0; t < k; ++t)
            if (t != low && v[t] < T) {
                sum += v[t];
                count += 1.0;
            }
        const double next = sum / count;
        if (!(next < T))
            break;
        T = next;
    }
    T = std::max(T, 0.0);
    for (Index t = 0; t < k; ++t)
        v[t] = t == low ? -T : std::max(v[t], T);
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
