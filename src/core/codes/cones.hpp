// A parity factor over k binary variables allows only labellings of one parity. This file has its
// messages and the projection onto its cone, each in O(k) per iteration, for CPUs and GPUs.
//
// All costs are those of label 1; label 0 costs 0.
#pragma once

#include "base/layout.hpp"

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
        const double size = std::fabs(v[t]);
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

} // namespace softmap
