// Conversion between model order (by half-edge) and pass order (by block, lanes interleaved).
#pragma once

#include "base/rounding.hpp"
#include "families/all.hpp"

#include <algorithm>
#include <vector>

namespace softmap {

// De-interleaves `count` label arrays: out[k · labels + x] = from[x · step + k].
inline void side_by_side(const double *from, Index step, Index count, Index labels, double *out) {
    for (Index first = 0; first < labels; first += lanes) {
        const Index last = std::min(first + lanes, labels);
        for (Index k = 0; k < count; ++k)
            for (Index x = first; x < last; ++x)
                out[k * labels + x] = double(from[x * step + k]);
    }
}

// Calls work(h, M_h, early) for the half-edges of blocks first..last-1, block by block: reading
// messages edge by edge would touch one cache line per entry. `early` tells whether h is at the
// early endpoint of its edge.
template <class Work>
void each_half(const Layout &lay, const Schedule &plan, const double *msg, Index first, Index last,
               Work work) {
    std::vector<double> room(std::size_t(lanes * lay.widest));
    for (Index k = first; k < last; ++k) {
        const Block &b = plan.blocks[k];
        const Index count = std::max<Index>(b.count, 1);
        for (const bool early : {true, false}) {
            const Index labels = early ? b.early : b.late;
            const Index side = early ? b.orientation : 1 - b.orientation;
            side_by_side(msg + (early ? b.early_at : b.late_at), b.step, count, labels,
                         room.data());
            for (Index lane = 0; lane < count; ++lane)
                work(2 * Index(plan.edge[b.lane + lane]) + side, room.data() + lane * labels,
                     early);
        }
    }
}

// Fills the arrays that the tiles among blocks first..last-1 read: packed tables, and parameters by
// lane, unless these are null. Table entries (weight times table) are rounded down, because bounds
// depend on them: once as a product, and once more if they are stored in single precision.
// Contraction is off, so that no other rounding occurs.
inline void pack_lanes(const Layout &lay, const Block *blocks, Index first, Index last,
                       const std::int32_t *edge, double *weight, double *truncation,
                       double *table) {
    const RoundedDown down;
    for (Index k = first; k < last; ++k) {
        const Block &b = blocks[k];
        if (!b.count)
            continue;
        for (Index lane = 0; lane < b.count; ++lane) {
            const Index e = edge[b.lane + lane];
            if (weight)
                weight[b.lane + lane] = lay.weight_of(b.group, e);
            if (truncation)
                truncation[b.lane + lane] = lay.truncation_of(b.group, e);
        }
        Families::visit(b.kind, [&](auto family) {
            if (family.packed_size(b.early, b.late) == 0)
                return;
            for (Index lane = 0; lane < b.count; ++lane) {
                const int late_side = int(1 - b.orientation);
                const auto own =
                    family.template at<1>(lay, b.group, edge + b.lane + lane, late_side);
                double *to = table + b.table_at + lane;
                for (Index x = 0; x < b.early; ++x)
                    for (Index y = 0; y < b.late; ++y, to += lanes)
                        *to = own.entry(x, y).part[0];
            }
        });
    }
}

// Copies the node costs of rows first..last-1 into the order of strips; `nodes` are the nodes in
// that order.
inline void by_strip(const Layout &lay, const std::int32_t *nodes, const Row *rows, double *out,
                     Index first, Index last) {
    for (Index r = first; r < last; ++r) {
        const Row &row = rows[r];
        for (Index k = 0; k < row.nodes; ++k) {
            const double *own = lay.unary + lay.node_offset[nodes[row.first + k]];
            for (Index x = 0; x < row.labels; ++x)
                out[row.place + x * row.step + k] = own[x];
        }
    }
}

// λ = -M of blocks first..last-1, in model order, from messages in pass order.
inline void unpack(const Layout &lay, const Schedule &plan, const double *packed, double *lam,
                   Index first, Index last) {
    each_half(lay, plan, packed, first, last, [&](Index h, const double *message, bool) {
        for (Index x = 0; x < lay.labels_at(h); ++x)
            lam[lay.half_at(h) + x] = -message[x];
    });
}

// Messages M = -λ of blocks first..last-1, in pass order, from λ in model order.
inline void pack(const Layout &lay, const Schedule &plan, const double *lam, double *packed,
                 Index first, Index last) {
    for (Index k = first; k < last; ++k) {
        const Block &b = plan.blocks[k];
        for (Index lane = 0; lane < std::max<Index>(b.count, 1); ++lane)
            for (const Index side : {0, 1}) {
                const Index h = 2 * Index(plan.edge[b.lane + lane]) + side;
                const Index at = (side == b.orientation ? b.early_at : b.late_at) + lane;
                for (Index x = 0; x < lay.labels_at(h); ++x)
                    packed[at + x * b.step] = -lam[lay.half_at(h) + x];
            }
    }
}

// Messages into the early endpoints of blocks first..last-1, in pass order, from λ of a coarser
// model with the same labels: M_h = -part[h] · λ of the coarser model's half-edge source[h], or 0
// if source[h] is -1.
inline void spread(const Schedule &plan, const double *lam, const Index *source, const double *part,
                   double *packed, Index first, Index last) {
    for (Index k = first; k < last; ++k) {
        const Block &b = plan.blocks[k];
        for (Index lane = 0; lane < std::max<Index>(b.count, 1); ++lane) {
            const Index h = 2 * Index(plan.edge[b.lane + lane]) + b.orientation;
            const double *from = lam + std::max<Index>(source[h], 0) * b.early;
            const double factor = source[h] < 0 ? 0.0 : -part[h];
            for (Index x = 0; x < b.early; ++x)
                packed[b.early_at + lane + x * b.step] = factor * from[x];
        }
    }
}

} // namespace softmap
