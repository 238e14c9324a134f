// What a factor says that allows labellings of one parity only, over k variables with two labels:
// minima, messages and projections in time proportional to k.
//
// A cost is that of label 1; label 0 costs nothing.
#pragma once

#include "base/sums.hpp"

#include <algorithm>
#include <cmath>

namespace softmap {

// The two smallest of |v|, where the first lies, and whether an odd number of v is negative.
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

// A number no larger than the least cost of a labelling of this parity; `room` holds k + 1 numbers.
inline double parity_minimum(const double *cost, Index k, bool odd, double *room) {
    Index count = 0;
    for (Index t = 0; t < k; ++t)
        if (cost[t] < 0.0)
            room[count++] = cost[t];
    const Weakest w = weakest(cost, k);
    if (w.odd != odd) // one more or one less: the one that matters least
        room[count++] = w.first;
    return lower_sum(room, count);
}

// Hard messages: what label 1 of each variable costs more than label 0, by the others' costs.
inline void parity_messages(const double *cost, Index k, bool odd, double *out) {
    const Weakest w = weakest(cost, k);
    for (Index t = 0; t < k; ++t) {
        const double size = t == w.at ? w.second : w.first;
        out[t] = (w.odd ^ odd ^ (cost[t] < 0.0)) ? -size : size;
    }
}

// What the parity of two variables costs, by soft minima: exact also where tanh(η cost / 2) is 1.
inline double soft_parity(double a, double b, double eta) {
    const double size = std::min(std::abs(a), std::abs(b));
    const double low = (a < 0.0) != (b < 0.0) ? -size : size;
    if (!(std::abs(a) < infinity && std::abs(b) < infinity))
        return low;
    const double near = std::exp(-eta * std::abs(a + b)), far = std::exp(-eta * std::abs(a - b));
    return low + (std::log1p(near) - std::log1p(far)) / eta;
}

// Soft messages: the same with soft minima at η.
inline void soft_parity_messages(const double *cost, Index k, bool odd, double eta, double *out) {
    double before = odd ? -infinity : infinity; // the parity of no variables is certain
    for (Index t = 0; t < k; ++t) {             // of all before t, then also of all behind
        out[t] = before;
        before = soft_parity(before, cost[t], eta);
    }
    double behind = infinity;
    for (Index t = k; t-- > 0;) {
        out[t] = soft_parity(out[t], behind, eta);
        behind = soft_parity(behind, cost[t], eta);
    }
}

// The nearest point at which no labelling of even parity costs less than nothing. That is so where
// no two costs add up to less: at most one is negative, -T, and no other is below T. T is the root
// of a convex function with bends; Newton's steps come down to it from the right, and end.
inline void into_parity_cone(double *v, Index k) {
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
    if (!(v[low] + second < 0.0)) // the sign of a rounded sum is that of the sum
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

// The nearest point of the convex hull of all labellings of this parity.
//
// The hull is the unit cube without the corners of the other parity: for each such corner, the
// distances |q| of the coordinates from it add up to at least 1. Only the corner nearest to the
// point in the cube can be too near; then the distances are projected to the simplex (Michelot).
inline void into_parity_hull(double *v, Index k, bool odd, double *room) {
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
    const bool turned = parity == odd; // the corner of the signs is allowed: look at the next one
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
