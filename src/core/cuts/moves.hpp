// Minimum cuts for models of two labels, and fusion moves between two labellings.
#pragma once

#include "flow.hpp"
#include "labels/one_edge.hpp"

#include <algorithm>
#include <cmath>

namespace softmap {

// The costs of an edge over two choices at each endpoint: [0] keep and [1] take, first endpoint
// first.
struct Pairwise {
    double keep, second, first, both; // (0, 0), (0, 1), (1, 0), (1, 1)

    double submodular() const { return second + first - keep - both; }
};

// Chooses between two labellings, variable by variable, by a minimum cut: an α-expansion if the
// second labelling is constant (Boykov, Veksler and Zabih, PAMI 2001), a fusion move in general.
//
// If an edge is not submodular, its cost of keeping both labels is lowered until it is (Rother et
// al., CVPR 2005). The approximation error is largest at the labelling that keeps everything, so
// that a move never raises the energy. Infinite costs count as `barrier`.
class FusionMoves {
  public:
    FusionMoves(const Layout<double> &lay, double barrier)
        : lay_(lay), barrier_(barrier), cut_(lay.n, lay.start, lay.half, lay.node) {}

    // Updates the labels in place. Returns the number of variables that changed, or -1 if the
    // budget was spent first.
    Index fuse(Index *labels, const Index *proposal, Budget &budget) {
        cut_.clear();
        for (Index i = 0; i < lay_.n; ++i)
            if (labels[i] != proposal[i])
                cut_.add_cost(i, node_cost(i, proposal[i]) - node_cost(i, labels[i]));
        for (Index g = 0; g < lay_.groups; ++g)
            Families::visit(lay_.kind[g], [&](auto family) {
                for (Index e = lay_.group_start[g]; e < lay_.group_start[g + 1]; ++e)
                    add_edge(family.template at<1>(lay_, g, &e, 0), e, labels, proposal);
            });
        budget.use(4 * lay_.m + lay_.n);
        if (!cut_.run(budget))
            return -1;
        Index changed = 0;
        for (Index i = 0; i < lay_.n; ++i)
            if (cut_.label(i) && labels[i] != proposal[i]) {
                labels[i] = proposal[i];
                ++changed;
            }
        return changed;
    }

  private:
    const Layout<double> &lay_;
    const double barrier_;
    MinimumCut cut_;

    double finite(double cost) const { return std::min(cost, barrier_); }
    double node_cost(Index i, Index x) const { return finite(lay_.unary[lay_.node_offset[i] + x]); }

    template <class Edge>
    void add_edge(const Edge &edge, Index e, const Index *labels, const Index *proposal) {
        const Index i = lay_.node[2 * e], j = lay_.node[2 * e + 1];
        const Index a = labels[i], b = labels[j], p = proposal[i], q = proposal[j];
        if (a == p && b == q)
            return;
        const auto cost = [&](Index x, Index y) { return finite(edge.entry(y, x).part[0]); };
        if (a == p)
            return cut_.add_cost(j, cost(a, q) - cost(a, b));
        if (b == q)
            return cut_.add_cost(i, cost(p, b) - cost(a, b));
        Pairwise pair{cost(a, b), cost(a, q), cost(p, b), cost(p, q)};
        pair.keep += std::min(pair.submodular(), 0.0);
        set_pair(cut_, e, i, j, pair);
    }

  public:
    // Adds an edge as capacities of its two arcs and costs of its endpoints. As much cost as
    // possible stays on the edge.
    static void set_pair(MinimumCut &cut, Index e, Index i, Index j, const Pairwise &pair) {
        const double all = std::max(pair.submodular(), 0.0);
        const double forward = std::clamp(pair.second - pair.keep, 0.0, all);
        cut.set_capacity(2 * e, forward);
        cut.set_capacity(2 * e + 1, all - forward);
        cut.add_cost(i, pair.first - pair.keep - (all - forward));
        cut.add_cost(j, pair.second - pair.keep - forward);
    }
};

// Solves a model of at most two labels per node whose edges are all submodular, for labels and λ.
class BinaryCut {
  public:
    BinaryCut(const Layout<double> &lay, double barrier)
        : lay_(lay), barrier_(barrier), cut_(lay.n, lay.start, lay.half, lay.node) {}

    // Returns false if the budget was spent first; labels and λ are then those of the flow so far.
    bool solve(Index *labels, double *lam, Budget &budget) {
        for (Index i = 0; i < lay_.n; ++i)
            if (lay_.num_labels[i] == 2)
                cut_.add_cost(i, node_cost(i, 1) - node_cost(i, 0));
        each_edge([&](Index e, Index i, Index j, const Pairwise &pair) {
            if (lay_.num_labels[i] < 2)
                return cut_.add_cost(j, pair.second - pair.keep);
            if (lay_.num_labels[j] < 2)
                return cut_.add_cost(i, pair.first - pair.keep);
            FusionMoves::set_pair(cut_, e, i, j, pair);
        });
        const bool whole = cut_.run(budget);
        for (Index i = 0; i < lay_.n; ++i)
            labels[i] = lay_.num_labels[i] == 2 ? cut_.label(i) : 0;
        // The residual capacities of its arcs stay on an edge; λ moves the rest to its endpoints.
        // Any λ proves a bound, so that rounding here changes the last digit of the bound only.
        each_edge([&](Index e, Index i, Index j, const Pairwise &pair) {
            double *first = lam + lay_.half_at(2 * e), *second = lam + lay_.half_at(2 * e + 1);
            first[0] = second[0] = 0.0;
            if (lay_.num_labels[i] == 2)
                first[1] = pair.keep - pair.first +
                           (lay_.num_labels[j] == 2 ? cut_.residual(2 * e + 1) : 0.0);
            if (lay_.num_labels[j] == 2)
                second[1] = pair.keep - pair.second +
                            (lay_.num_labels[i] == 2 ? cut_.residual(2 * e) : 0.0);
        });
        return whole;
    }

    // Whether all nodes have at most two labels and all edges are submodular.
    bool applies() {
        for (Index i = 0; i < lay_.n; ++i)
            if (lay_.num_labels[i] > 2)
                return false;
        bool all = true;
        each_edge([&](Index, Index i, Index j, const Pairwise &pair) {
            all &= lay_.num_labels[i] < 2 || lay_.num_labels[j] < 2 || pair.submodular() >= 0.0;
        });
        return all;
    }

  private:
    const Layout<double> &lay_;
    const double barrier_;
    MinimumCut cut_;

    double finite(double cost) const { return std::min(cost, barrier_); }
    double node_cost(Index i, Index x) const { return finite(lay_.unary[lay_.node_offset[i] + x]); }
    template <class Function> void each_edge(Function f) {
        for (Index g = 0; g < lay_.groups; ++g)
            Families::visit(lay_.kind[g], [&](auto family) {
                for (Index e = lay_.group_start[g]; e < lay_.group_start[g + 1]; ++e) {
                    const Index i = lay_.node[2 * e], j = lay_.node[2 * e + 1];
                    const auto edge = family.template at<1>(lay_, g, &e, 0);
                    const Index p = lay_.num_labels[i] - 1, q = lay_.num_labels[j] - 1;
                    const auto cost = [&](Index x, Index y) {
                        return finite(edge.entry(y, x).part[0]);
                    };
                    f(e, i, j, Pairwise{cost(0, 0), cost(0, q), cost(p, 0), cost(p, q)});
                }
            });
    }
};

} // namespace softmap
