// Linear assignment by shortest augmenting paths, with the prices of labels that prove it.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

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
    std::fill_n(labels, count, Index(-1));
    std::fill_n(prices, width, 0.0);
    std::vector<double> offset(std::size_t(count), 0.0); // dual values of the variables
    std::vector<double> shortest(std::size_t(width), 0.0);
    std::vector<Index> owner(std::size_t(width), -1), from = owner, open, closed;
    for (Index row = 0; row < count; ++row) {
        open.resize(std::size_t(width));
        for (Index x = 0; x < width; ++x)
            open[std::size_t(x)] = x;
        closed.clear();
        shortest.assign(std::size_t(width), INFINITY);
        double reach = 0.0;
        Index end = -1;
        for (Index i = row; end < 0;) {
            if (meter.tick(Index(open.size())))
                return false;
            std::size_t next = 0;
            double lowest = INFINITY;
            for (std::size_t k = 0; k < open.size(); ++k) {
                const Index x = open[k];
                const double path = reach + (costs[i * width + x] - offset[i] - prices[x]);
                if (path < shortest[x]) {
                    shortest[x] = path;
                    from[x] = i;
                }
                if (shortest[x] < lowest || (shortest[x] == lowest && owner[x] < 0)) {
                    lowest = shortest[x];
                    next = k;
                }
            }
            if (std::isinf(lowest))
                break;
            reach = lowest;
            const Index x = open[next];
            open[next] = open.back();
            open.pop_back();
            closed.push_back(x);
            if (owner[x] < 0)
                end = x;
            else
                i = owner[x];
        }
        if (end < 0)
            continue;
        offset[row] += reach;
        for (const Index x : closed) {
            if (owner[x] >= 0)
                offset[owner[x]] += reach - shortest[x];
            prices[x] -= reach - shortest[x];
        }
        for (Index x = end, i = -1; i != row; std::swap(x, labels[i])) {
            i = from[x];
            owner[x] = i;
        }
    }
    return true;
}

} // namespace softmap::feasibility
