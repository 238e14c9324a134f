// Groups consecutive edges of equal shape into runs of up to `lanes` edges, in model order.
#pragma once

#include "base/team.hpp"
#include "families/all.hpp"

#include <algorithm>
#include <vector>

namespace softmap {

// A run: the edges at positions first..first + count - 1 of a list. Lanes past `count` repeat the
// last edge.
struct Run {
    Index group, first, count;
    Index rows, cols;
    Index edge[lanes];
};

// The edges that a kernel works on: a list, or 0..count - 1 if `edges` is null.
struct EdgeList {
    const Index *edges;
    Index count;
    Index operator[](Index k) const { return edges ? edges[k] : k; }
};

// The longest run of edges that may share a view, from position `first` on and before `last`.
template <class Family>
Run run_from(const Layout &lay, const EdgeList &list, Index g, Index first, Index last) {
    const Index e = list[first];
    Run run{g, first, 0, lay.labels_at(2 * e), lay.labels_at(2 * e + 1), {}};
    if (run.rows > Family::widest_tile || run.cols > Family::widest_tile)
        last = first + 1;
    for (Index k = first; k < last; ++k) {
        const Index f = list[k];
        const bool same = lay.group_start[g] <= f && f < lay.group_start[g + 1] &&
                          lay.labels_at(2 * f) == run.rows && lay.labels_at(2 * f + 1) == run.cols;
        if (!same || !Family::alike(lay, g, e, f))
            break;
        run.edge[run.count++] = f;
    }
    for (Index k = run.count; k < lanes; ++k)
        run.edge[k] = run.edge[run.count - 1];
    return run;
}

// Calls work(view, run) for runs that cover positions first..last-1. The view is of `lanes` edges,
// or of a single edge if run.count = 1. Runs end at multiples of `lanes`, so that the grouping, and
// with it every rounding, does not depend on how positions are split among threads.
template <class F>
void each_run(const Layout &lay, const EdgeList &list, Index first, Index last, int receiver,
              F work) {
    while (first < last) {
        const Index end = std::min(last, (first / lanes + 1) * lanes);
        const Index g = lay.group_of(list[first]);
        first += Families::visit(lay.kind[g], [&](auto family) {
            using Family = decltype(family);
            const Run run = run_from<Family>(lay, list, g, first, end);
            if (run.count > 1)
                work(Family::template at<lanes>(lay, g, run.edge, receiver), run);
            else
                work(Family::template at<1>(lay, g, run.edge, receiver), run);
            return run.count;
        });
    }
}

// Calls work(first, last) on ranges that cover the items 0..count-1 and begin at multiples of
// `lanes`.
inline void split_by_lanes(int threads, Index count, Task<Index, Index> work) {
    const auto up = [&](Index k) { return std::min(count, (k + lanes - 1) / lanes * lanes); };
    split(threads, count, [&](Index first, Index last) { work(up(first), up(last)); });
}

// Offsets of the nodes and half-edges on one side of a run, by lane.
template <int W> struct Side {
    Index node[W], half[W], labels;

    Side(const Layout &lay, const Run &run, int side) : labels(side == 0 ? run.rows : run.cols) {
        for (int k = 0; k < W; ++k) {
            const Index h = 2 * run.edge[k] + side;
            node[k] = lay.node_offset[lay.node[h]];
            half[k] = lay.half_at(h);
        }
    }
    // out[W · x + k] = entry x of the node of lane k. Lane by lane, because a node's entries are
    // contiguous in memory.
    template <class T> void take_as_is(const T *array, double *out) const {
        for (int k = 0; k < W; ++k)
            for (Index x = 0; x < labels; ++x)
                out[W * x + k] = double(array[node[k] + x]);
    }
    void take(const double *array, double *out) const { take_as_is(array, out); }
    // As `take`, from marginals in single precision: each divided by their sum, in double
    // precision.
    void take(const float *array, double *out) const {
        take_as_is(array, out);
        Pack<W> sum(0.0);
        for (Index x = 0; x < labels; ++x)
            sum += Pack<W>::load(out + W * x);
        for (Index x = 0; x < labels; ++x)
            (Pack<W>::load(out + W * x) / sum).store(out + W * x);
    }
    // out = λ of the labels, +inf at forbidden labels. Returns 0 in lanes where λ is finite at all
    // allowed labels, NaN in the other lanes.
    Pack<W> free(const Layout &lay, const double *lam, double *out) const {
        return Pack<W>::of([&](int k) {
            double spoilt = 0.0;
            const double *own = lam + half[k], *unary = lay.unary + node[k];
            for (Index x = 0; x < labels; ++x) {
                const bool allowed = unary[x] < infinity;
                out[W * x + k] = allowed ? own[x] : infinity;
                spoilt += allowed ? own[x] * 0.0 : 0.0;
            }
            return spoilt;
        });
    }
};

} // namespace softmap
