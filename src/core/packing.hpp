// Between the order of half-edges and the order in which a pass reads.
#pragma once

#include "families/all.hpp"

namespace softmap {

// What tiles read instead of the model's arrays: packed tables, and parameters by lane.
template <class S>
void pack_lanes(const Layout<S> &lay, const Block *blocks, Index count, const Index *edge,
                double *weight, double *truncation, S *table) {
    for (Index k = 0; k < count; ++k) {
        const Block &b = blocks[k];
        if (!b.count)
            continue;
        for (Index lane = 0; lane < b.count; ++lane) {
            const Index e = edge[b.lane + lane];
            weight[b.lane + lane] = lay.weight_of(b.group, e);
            truncation[b.lane + lane] = lay.truncation_of(b.group, e);
        }
        Families::visit(b.kind, [&](auto family) {
            if (family.packed_size(b.early, b.late) == 0)
                return;
            for (Index lane = 0; lane < b.count; ++lane) {
                const int late_side = int(1 - b.orientation);
                const auto own =
                    family.template at<1>(lay, b.group, edge + b.lane + lane, late_side);
                S *to = table + b.table_at + lane;
                for (Index x = 0; x < b.early; ++x)
                    for (Index y = 0; y < b.late; ++y, to += lanes)
                        *to = S(own.entry(x, y).part[0]);
            }
        });
    }
}

// λ = -M of half-edges first..last-1, in the order of the model, from messages in pass order.
template <class S>
void unpack(const Layout<S> &lay, const Schedule<S> &plan, const S *packed, double *lam,
            Index first, Index last) {
    for (Index h = first; h < last; ++h) {
        const Index at = plan.half_at[h], step = plan.half_step[h];
        for (Index x = 0; x < lay.labels_at(h); ++x)
            lam[lay.half_offset[h] + x] = -double(packed[at + x * step]);
    }
}

// The reverse: messages M = -λ in pass order.
template <class S>
void pack(const Layout<S> &lay, const Schedule<S> &plan, const double *lam, S *packed, Index first,
          Index last) {
    for (Index h = first; h < last; ++h) {
        const Index at = plan.half_at[h], step = plan.half_step[h];
        for (Index x = 0; x < lay.labels_at(h); ++x)
            packed[at + x * step] = S(-lam[lay.half_offset[h] + x]);
    }
}

} // namespace softmap
