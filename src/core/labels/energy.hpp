// The energy of a labelling, rounded once.
#pragma once

#include "base/shared_sums.hpp"
#include "one_edge.hpp"

#include <algorithm>

namespace softmap {

// Calls take(cost) for the costs first..last-1 of a labelling: those of the nodes, then those of
// the edges.
template <class Take>
void each_cost(const Layout &lay, const Index *labels, Index first, Index last, Take take) {
    for (Index i = first; i < std::min(last, lay.n); ++i)
        take(lay.unary[lay.node_offset[i] + labels[i]]);
    for (Index g = 0; g < lay.groups; ++g) {
        const Index begin = std::max(first - lay.n, lay.group_start[g]);
        const Index end = std::min(last - lay.n, lay.group_start[g + 1]);
        if (begin >= end)
            continue;
        Families::visit(lay.kind[g], [&](auto family) {
            for (Index e = begin; e < end; ++e) {
                const auto edge = family.template at<1>(lay, g, &e, 1);
                take(edge.entry(labels[lay.node[2 * e]], labels[lay.node[2 * e + 1]]).part[0]);
            }
        });
    }
}

// The exact sum of the costs of a labelling and a constant, rounded once: the same for any number
// of threads.
inline double energy(const Layout &lay, const Index *labels, double constant, int threads) {
    const Index count = lay.n + lay.m;
    return shared_sum(constant, count, threads, [&](Part part, auto add) {
        each_cost(lay, labels, part.first(0, count), part.last(0, count), add);
    });
}

} // namespace softmap
