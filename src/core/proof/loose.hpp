// Where a labelling is not minimal in the reduced costs of λ, up to rounding.
#pragma once

#include "families/all.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace softmap {

// out[i] = whether the reduced cost C_i - Σ λ of label labels[i] is +inf, or above the least one of
// the node by more than `rounding` times the sizes of its terms, for nodes first..last-1.
inline void nodes_above(const Layout &lay, const double *lam, const Index *labels, double rounding,
                        bool *out, Index first, Index last) {
    std::vector<double> reduced(std::size_t(lay.widest));
    for (Index i = first; i < last; ++i) {
        const Index count = lay.num_labels[i], own = labels[i];
        std::copy_n(lay.unary + lay.node_offset[i], count, reduced.data());
        double size = std::abs(reduced[own]);
        for (Index k = lay.start[i]; k < lay.start[i + 1]; ++k) {
            const double *from = lam + lay.half_at(lay.half[k]);
            for (Index x = 0; x < count; ++x)
                reduced[x] -= from[x];
            size += std::abs(from[own]);
        }
        const double low = *std::min_element(reduced.data(), reduced.data() + count);
        out[i] = !std::isfinite(reduced[own]) || reduced[own] > low + rounding * size;
    }
}

// As nodes_above for the reduced costs C_e + λ_i + λ_j of edges first..last-1, whose minima are
// `least`.
inline void edges_above(const Layout &lay, const double *lam, const Index *labels,
                        const double *least, double rounding, bool *out, Index first, Index last) {
    for (Index g = 0; g < lay.groups; ++g)
        Families::visit(lay.kind[g], [&](auto family) {
            const Index begin = std::max(first, lay.group_start[g]);
            const Index end = std::min(last, lay.group_start[g + 1]);
            for (Index e = begin; e < end; ++e) {
                const Index x = labels[lay.node[2 * e]], y = labels[lay.node[2 * e + 1]];
                const double cost = family.template at<1>(lay, g, &e, 0).entry(y, x).part[0];
                const double one = lam[lay.half_at(2 * e) + x];
                const double two = lam[lay.half_at(2 * e + 1) + y];
                const double size = std::abs(cost) + std::abs(one) + std::abs(two);
                out[e] = !std::isfinite(cost) || cost + one + two - least[e] > rounding * size;
            }
        });
}

} // namespace softmap
