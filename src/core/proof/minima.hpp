// The dual bound of λ: minima of the reduced costs of nodes and edges, and their sum. All results
// are lower bounds on the values in exact arithmetic.
//
// Nodes: each C_i(x) - Σ λ is a compensated sum, rounded down once (see sums.hpp). Edges: all
// arithmetic is rounded down. An entry of C_e + λ_i + λ_j is built from a product, sums and minima,
// all monotone, so that each rounding can only lower the result, and the minimum over lower bounds
// of all entries is a lower bound on the minimum. This holds for the hard messages of all families.
// The loss is less than one unit in the last place of each intermediate result on the way to the
// least entry: one product and two sums; for the linear distance one sum per step between the two
// labels. Large terms at other entries do not add to it. A negative overflow gives -inf, a positive
// one the largest finite double. Hard messages do not use `fused`, and contraction is off; a fused
// product and sum would be rounded down once instead of twice, which is a lower bound as well.
#pragma once

#include "base/rounding.hpp"
#include "base/sums.hpp"
#include "tiles.hpp"

namespace softmap {

// Compensated sums C_i(x) - Σ λ(x), one for each label of a node.
class NodeSums {
  public:
    explicit NodeSums(Index widest) : total_(widest), errors_(widest), sizes_(widest) {}

    void begin(const double *costs, Index labels) {
        for (Index x = 0; x < labels; ++x) {
            total_[x] = costs[x];
            errors_[x] = sizes_[x] = 0.0;
        }
    }
    void subtract(const double *lam, Index labels) {
        double *__restrict total = total_.data(), *__restrict errors = errors_.data();
        double *__restrict sizes = sizes_.data();
        for (Index x = 0; x < labels; ++x) {
            const double sum = total[x] - lam[x];
            const double error = error_of(total[x], -lam[x], sum);
            total[x] = sum;
            errors[x] += error;
            sizes[x] += std::abs(error);
        }
    }
    double lowered(Index x, Index terms) const {
        return lower(total_[x], errors_[x], sizes_[x], terms);
    }

  private:
    std::vector<double> total_, errors_, sizes_;
};

// out = C_i - Σ λ for every label of nodes first..last-1, in plain floating-point arithmetic.
inline void reduced_unary(const Layout &lay, const double *lam, double *out, Index first,
                          Index last) {
    for (Index i = first; i < last; ++i) {
        const Index labels = lay.num_labels[i];
        double *__restrict sum = out + lay.node_offset[i];
        std::copy_n(lay.unary + lay.node_offset[i], labels, sum);
        for (Index k = lay.start[i]; k < lay.start[i + 1]; ++k) {
            const double *own = lam + lay.half_at(lay.half[k]);
            for (Index x = 0; x < labels; ++x)
                sum[x] -= own[x];
        }
    }
}

// out[i] = lower bound on min_x C_i(x) - Σ λ(x) over allowed labels, for nodes first..last-1.
inline void node_minima(const Layout &lay, const double *lam, double *out, Index first,
                        Index last) {
    NodeSums sums(lay.widest);
    for (Index i = first; i < last; ++i) {
        const Index labels = lay.num_labels[i], degree = lay.start[i + 1] - lay.start[i];
        sums.begin(lay.unary + lay.node_offset[i], labels);
        for (Index k = lay.start[i]; k < lay.start[i + 1]; ++k)
            sums.subtract(lam + lay.half_at(lay.half[k]), labels);
        out[i] = infinity;
        for (Index x = 0; x < labels; ++x)
            if (!lay.forbidden(i, x))
                out[i] = std::min(out[i], sums.lowered(x, degree));
    }
}

// out[e] = lower bound on min C_e + λ_i + λ_j over allowed labels, for the W edges of a run; NaN if
// a λ is not finite.
template <int W, class Edges>
void run_minima(const Layout &lay, const Edges &edges, const Run &run, const double *lam,
                double *room, double *out) {
    double *numbers = room + message_room(lay.widest, W);
    const auto a = reinterpret_cast<Pack<W> *>(numbers), b = a + run.rows, message = b + run.cols;
    Pack<W> low(infinity), spoilt = Side<W>(lay, run, 0).free(lay, lam, numbers);
    spoilt += Side<W>(lay, run, 1).free(lay, lam, numbers + W * run.rows);
    edges.message(a, message, room, infinity);
    for (Index y = 0; y < run.cols; ++y)
        low = least(b[y] + message[y], low);
    (low + spoilt).each(int(run.count), [&](int k, double one) { out[run.edge[k]] = one; });
}

// out[e] = `run_minima` of edges first..last-1.
inline void edge_minima(const Layout &lay, const double *lam, double *out, Index first,
                        Index last) {
    if (first >= last)
        return; // room for the widest node would be made for nothing
    const RoundedDown down;
    const Index labels = lay.widest;
    Room room(std::max(message_room(labels, 1) + 3 * labels,
                       message_room(labels, lanes) + 3 * labels * lanes));
    each_run(lay, EdgeList{nullptr, lay.m}, first, last, 1, [&](const auto &edges, const Run &run) {
        run_minima<std::decay_t<decltype(edges)>::width>(lay, edges, run, lam, room.numbers(), out);
    });
}

// A lower bound on Σ_i min (C_i - Σ λ) + Σ_e min (C_e + λ_i + λ_j) + constant.
inline double dual_bound(const Layout &lay, const double *lam, double constant, int threads) {
    std::vector<double> terms(std::size_t(lay.n + lay.m + 1));
    double *nodes = terms.data(), *edges = nodes + lay.n;
    split_by_lanes(threads, lay.n,
                   [&](Index first, Index last) { node_minima(lay, lam, nodes, first, last); });
    split_by_lanes(threads, lay.m,
                   [&](Index first, Index last) { edge_minima(lay, lam, edges, first, last); });
    edges[lay.m] = constant;
    return lower_sum(terms.data(), lay.n + lay.m + 1);
}

} // namespace softmap
