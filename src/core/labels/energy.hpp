// The energy of a labelling, rounded once.
#pragma once

#include "base/sums.hpp"
#include "base/team.hpp"
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
    constexpr Index portions = 64;
    const Index count = lay.n + lay.m;
    Compensated sums[portions];
    split_portions(threads, portions, count, [&](Index portion) {
        const Part part{int(portion), int(portions)};
        Compensated sum;
        each_cost(lay, labels, part.first(0, count), part.last(0, count),
                  [&](double cost) { sum.add(cost); });
        sums[portion] = sum;
    });
    Compensated sum;
    sum.add(constant);
    for (const Compensated &one : sums)
        sum.add(one);
    return rounded_once(sum, count + 1 + portions, [&] {
        std::vector<double> values{constant};
        values.reserve(static_cast<std::size_t>(count + 1));
        each_cost(lay, labels, 0, count, [&](double cost) { values.push_back(cost); });
        return exact_sum(values.data(), count + 1);
    });
}

} // namespace softmap
