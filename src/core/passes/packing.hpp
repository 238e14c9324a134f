// Between the order of half-edges and the order in which a pass reads.
#pragma once

#include "base/rounding.hpp"
#include "families/all.hpp"

#include <algorithm>
#include <vector>

namespace softmap {

// Label arrays that lie side by side (entry x of the k-th at x · step + k), one after the other.
template <class S>
void side_by_side(const S *from, Index step, Index count, Index labels, double *out) {
    for (Index first = 0; first < labels; first += lanes) {
        const Index last = std::min(first + lanes, labels);
        for (Index k = 0; k < count; ++k)
            for (Index x = first; x < last; ++x)
                out[k * labels + x] = double(from[x * step + k]);
    }
}

// work(h, M_h) for the half-edges of blocks first..last-1, as their messages lie in memory: to read
// them edge by edge would touch a cache line for every number.
template <class S, class Work>
void each_half(const Layout<S> &lay, const Schedule<S> &plan, const S *msg, Index first, Index last,
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
                work(2 * plan.edge[b.lane + lane] + side, room.data() + lane * labels);
        }
    }
}

// What tiles read instead of the model's arrays: packed tables, and parameters by lane. Entries are
// rounded down where they are products, or in single precision: bounds rest on them. An entry is
// one product that nothing is added to, stored at once: with contraction off it is rounded once,
// and once more, down again, where it becomes a single.
template <class S>
void pack_lanes(const Layout<S> &lay, const Block *blocks, Index count, const Index *edge,
                double *weight, double *truncation, S *table) {
    const RoundedDown down;
    for (Index k = 0; k < count; ++k) {
        const Block &b = blocks[k];
        if (!b.count)
            continue;
        for (Index lane = 0; lane < b.count; ++lane) {
            const Index e = edge[b.lane + lane];
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
                S *to = table + b.table_at + lane;
                for (Index x = 0; x < b.early; ++x)
                    for (Index y = 0; y < b.late; ++y, to += lanes)
                        *to = S(own.entry(x, y).part[0]);
            }
        });
    }
}

// Costs of the nodes by strip, cost x of node i at at[i] + x · step[i]; `nodes` is the order in
// which they lie there.
inline void by_strip(const Layout<double> &lay, const Index *nodes, const Index *at,
                     const Index *step, double *out) {
    for (Index k = 0; k < lay.n; ++k) {
        const Index i = nodes[k];
        const double *own = lay.unary + lay.node_offset[i];
        for (Index x = 0; x < lay.num_labels[i]; ++x)
            out[at[i] + x * step[i]] = own[x];
    }
}

// λ = -M of blocks first..last-1, in the order of the model, from messages in pass order.
template <class S>
void unpack(const Layout<S> &lay, const Schedule<S> &plan, const S *packed, double *lam,
            Index first, Index last) {
    each_half(lay, plan, packed, first, last, [&](Index h, const double *message) {
        for (Index x = 0; x < lay.labels_at(h); ++x)
            lam[lay.half_at(h) + x] = -message[x];
    });
}

// The reverse: messages M = -λ in pass order.
template <class S>
void pack(const Layout<S> &lay, const Schedule<S> &plan, const double *lam, S *packed, Index first,
          Index last) {
    for (Index k = first; k < last; ++k) {
        const Block &b = plan.blocks[k];
        for (Index lane = 0; lane < std::max<Index>(b.count, 1); ++lane)
            for (const Index side : {0, 1}) {
                const Index h = 2 * plan.edge[b.lane + lane] + side;
                const Index at = (side == b.orientation ? b.early_at : b.late_at) + lane;
                for (Index x = 0; x < lay.labels_at(h); ++x)
                    packed[at + x * b.step] = S(-lam[lay.half_at(h) + x]);
            }
    }
}

// Messages into the early ends of blocks first..last-1, in pass order, from λ of a smaller model
// with as many labels: M = -part λ, of its half-edge `source`, or 0 where there is none (-1).
template <class S>
void spread(const Schedule<S> &plan, const double *lam, const Index *source, const double *part,
            S *packed, Index first, Index last) {
    for (Index k = first; k < last; ++k) {
        const Block &b = plan.blocks[k];
        for (Index lane = 0; lane < std::max<Index>(b.count, 1); ++lane) {
            const Index h = 2 * plan.edge[b.lane + lane] + b.orientation;
            const double *from = lam + std::max<Index>(source[h], 0) * b.early;
            const double factor = source[h] < 0 ? 0.0 : -part[h];
            for (Index x = 0; x < b.early; ++x)
                packed[b.early_at + lane + x * b.step] = S(factor * from[x]);
        }
    }
}

} // namespace softmap
