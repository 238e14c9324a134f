// Minimum cuts for models of two labels, and fusion moves between two labellings.
#pragma once

#include "base/budget.hpp"
#include "flow.hpp"
#include "labels/one_edge.hpp"

namespace softmap {

// The costs of an edge over two choices at each endpoint, first endpoint first.
struct Pairwise {
    double none, second, first, both; // (0, 0), (0, 1), (1, 0), (1, 1)

    // The edge is submodular if this is not negative.
    double surplus() const { return second + first - none - both; }
};

// A minimum cut over the graph of a model, whose costs count as `barrier` if they are infinite.
class ModelCut {
  public:
    const Layout<double> &lay;
    MinimumCut<double> flow;

    ModelCut(const Layout<double> &layout, double barrier)
        : lay(layout), flow(Incidence{layout.n, layout.node, layout.start, layout.half}),
          barrier_(barrier) {}

    double node_cost(Index i, Index x) const {
        return std::min(lay.unary[lay.node_offset[i] + x], barrier_);
    }
    // Calls f(e, i, j, cost) for each edge e = (i, j); cost(x, y) is the cost of its labels.
    template <class Function> void each_edge(Function f) const {
        for (Index g = 0; g < lay.groups; ++g)
            Families::visit(lay.kind[g], [&](auto family) {
                for (Index e = lay.group_start[g]; e < lay.group_start[g + 1]; ++e) {
                    const auto edge = family.template at<1>(lay, g, &e, 0);
                    const auto cost = [&](Index x, Index y) {
                        return std::min(edge.entry(y, x).part[0], barrier_);
                    };
                    f(e, Index(lay.node[2 * e]), Index(lay.node[2 * e + 1]), cost);
                }
            });
    }
    // Adds a submodular edge as capacities of its two arcs and costs of its endpoints. As much cost
    // as possible stays on the edge.
    void set_edge(Index e, Index i, Index j, const Pairwise &pair) {
        const double all = std::max(pair.surplus(), 0.0);
        const double forward = std::clamp(pair.second - pair.none, 0.0, all);
        flow.set_capacity(2 * e, forward);
        flow.set_capacity(2 * e + 1, all - forward);
        flow.add_cost(i, pair.first - pair.none - (all - forward));
        flow.add_cost(j, pair.second - pair.none - forward);
    }

  private:
    const double barrier_;
};

// Chooses between two labellings, variable by variable, by a minimum cut: an α-expansion if the
// second labelling is constant (Boykov, Veksler and Zabih, PAMI 2001), a fusion move in general.
//
// If an edge is not submodular, its cost of keeping both labels is lowered until it is (Rother et
// al., CVPR 2005). The approximation error is largest at the labelling that keeps everything, so
// that a move never raises the energy.
class FusionMoves {
  public:
    FusionMoves(const Layout<double> &lay, double barrier) : cut_(lay, barrier) {}

    // Updates the labels in place. Returns the number of variables that changed, or -1 if the
    // budget was spent first.
    Index fuse(Index *labels, const Index *proposal, Budget &budget) {
        const Layout<double> &lay = cut_.lay;
        auto &flow = cut_.flow;
        flow.clear();
        for (Index i = 0; i < lay.n; ++i)
            if (labels[i] != proposal[i])
                flow.add_cost(i, cut_.node_cost(i, proposal[i]) - cut_.node_cost(i, labels[i]));
        cut_.each_edge([&](Index e, Index i, Index j, auto cost) {
            const Index a = labels[i], b = labels[j], p = proposal[i], q = proposal[j];
            if (a == p && b == q)
                return;
            if (a == p)
                return flow.add_cost(j, cost(a, q) - cost(a, b));
            if (b == q)
                return flow.add_cost(i, cost(p, b) - cost(a, b));
            Pairwise pair{cost(a, b), cost(a, q), cost(p, b), cost(p, q)};
            pair.none += std::min(pair.surplus(), 0.0);
            cut_.set_edge(e, i, j, pair);
        });
        budget.use(4 * lay.m + lay.n);
        flow.start();
        if (!flow.run(budget))
            return -1;
        Index changed = 0;
        for (Index i = 0; i < lay.n; ++i)
            if (flow.label(i) && labels[i] != proposal[i]) {
                labels[i] = proposal[i];
                ++changed;
            }
        return changed;
    }

  private:
    ModelCut cut_;
};

// Solves a model of at most two labels per node whose edges are all submodular, for labels and λ.
class BinaryCut {
  public:
    BinaryCut(const Layout<double> &lay, double barrier) : cut_(lay, barrier) {
        for (Index i = 0; i < lay.n && applies_; ++i)
            if (applies_ = lay.num_labels[i] <= 2; applies_ && lay.num_labels[i] == 2)
                cut_.flow.add_cost(i, cut_.node_cost(i, 1) - cut_.node_cost(i, 0));
        if (!applies_)
            return;
        each_edge([&](Index e, Index i, Index j, const Pairwise &pair) {
            if (lay.num_labels[i] < 2)
                return cut_.flow.add_cost(j, pair.second - pair.none);
            if (lay.num_labels[j] < 2)
                return cut_.flow.add_cost(i, pair.first - pair.none);
            applies_ &= pair.surplus() >= 0.0;
            cut_.set_edge(e, i, j, pair);
        });
        cut_.flow.start();
    }

    // Whether all nodes have at most two labels and all edges are submodular.
    bool applies() const { return applies_; }

    // Returns false if the budget was spent first; a further call then continues.
    bool run(Budget &budget) { return cut_.flow.run(budget); }

    // The labels and λ of the flow so far. The residual capacities of its arcs stay on an edge; λ
    // moves the rest to its endpoints. Any λ proves a bound, so that rounding here changes the last
    // digit of the bound only.
    void read(Index *labels, double *lam) const {
        const Layout<double> &lay = cut_.lay;
        for (Index i = 0; i < lay.n; ++i)
            labels[i] = lay.num_labels[i] == 2 ? cut_.flow.label(i) : 0;
        each_edge([&](Index e, Index i, Index j, const Pairwise &pair) {
            double *first = lam + lay.half_at(2 * e), *second = lam + lay.half_at(2 * e + 1);
            const bool free = lay.num_labels[i] == 2 && lay.num_labels[j] == 2;
            first[0] = second[0] = 0.0;
            if (lay.num_labels[i] == 2)
                first[1] = pair.none - pair.first + (free ? cut_.flow.residual(2 * e + 1) : 0.0);
            if (lay.num_labels[j] == 2)
                second[1] = pair.none - pair.second + (free ? cut_.flow.residual(2 * e) : 0.0);
        });
    }

  private:
    ModelCut cut_;
    bool applies_ = true;

    template <class Function> void each_edge(Function f) const {
        cut_.each_edge([&](Index e, Index i, Index j, auto cost) {
            const Index p = cut_.lay.num_labels[i] - 1, q = cut_.lay.num_labels[j] - 1;
            f(e, i, j, Pairwise{cost(0, 0), cost(0, q), cost(p, 0), cost(p, q)});
        });
    }
};

} // namespace softmap
