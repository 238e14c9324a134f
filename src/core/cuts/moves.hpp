// Minimum cuts for models of two labels, and fusion moves between two labellings.
#pragma once

#include "base/budget.hpp"
#include "flow.hpp"
#include "labels/one_edge.hpp"

#include <memory>

namespace softmap {

// The costs of an edge over two choices at each endpoint, first endpoint first.
struct Pairwise {
    double none, second, first, both; // (0, 0), (0, 1), (1, 0), (1, 1)

    // The edge is submodular if this is not negative.
    double surplus() const { return second + first - none - both; }
};

// The costs of a model, in which `barrier` stands for +inf.
class BarredCosts {
  public:
    const Layout<double> &lay;

    BarredCosts(const Layout<double> &layout, double barrier) : lay(layout), barrier_(barrier) {}

    double node(Index i, Index x) const {
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
    Incidence graph() const { return {lay.n, lay.node, lay.start, lay.half}; }

  private:
    const double barrier_;
};

// Adds a submodular edge between two nodes of a flow as capacities of its two arcs and costs of its
// endpoints. As much cost as possible stays on the edge.
inline void set_edge(MinimumCut<double> &flow, Index e, Index i, Index j, const Pairwise &pair) {
    const double all = std::max(pair.surplus(), 0.0);
    const double forward = std::clamp(pair.second - pair.none, 0.0, all);
    flow.set_capacity(2 * e, forward);
    flow.set_capacity(2 * e + 1, all - forward);
    flow.add_cost(i, pair.first - pair.none - (all - forward));
    flow.add_cost(j, pair.second - pair.none - forward);
}

// Chooses between two labellings, variable by variable, by a minimum cut: an α-expansion if the
// second labelling is constant (Boykov, Veksler and Zabih, PAMI 2001), a fusion move in general.
//
// If an edge is not submodular, its cost of keeping both labels is lowered until it is (Rother et
// al., CVPR 2005). The approximation error is largest at the labelling that keeps everything, so
// that a move never raises the energy.
class FusionMoves {
  public:
    FusionMoves(const Layout<double> &lay, double barrier) : costs_(lay, barrier) {}

    // Updates the labels in place. Returns the number of variables that changed, or -1 if the
    // budget was spent first.
    Index fuse(Index *labels, const Index *proposal, Budget &budget) {
        const Layout<double> &lay = costs_.lay;
        Index open = 0;
        for (Index i = 0; i < lay.n; ++i)
            open += labels[i] != proposal[i];
        budget.use(4 * lay.m + lay.n);
        if (2 * open < lay.n)
            return fuse_few(labels, proposal, open, budget);
        if (!whole_)
            whole_ = std::make_unique<MinimumCut<double>>(costs_.graph());
        else
            whole_->clear();
        const auto same = [](Index k) { return k; };
        return cut(*whole_, labels, proposal, same, same, budget);
    }

  private:
    // A move over the flow graph of the variables whose two labels differ: their order is kept, so
    // that the result is that of the flow graph of all variables.
    Index fuse_few(Index *labels, const Index *proposal, Index open, Budget &budget) {
        const Layout<double> &lay = costs_.lay;
        std::vector<std::int32_t> number(std::size_t(lay.n), -1), node;
        std::int32_t next = 0;
        for (Index i = 0; i < lay.n; ++i)
            if (labels[i] != proposal[i])
                number[i] = next++;
        for (Index e = 0; e < lay.m; ++e) {
            const std::int32_t i = number[lay.node[2 * e]], j = number[lay.node[2 * e + 1]];
            if (i >= 0 && j >= 0)
                node.insert(node.end(), {i, j});
        }
        std::vector<Index> start(std::size_t(open + 1));
        std::vector<std::int32_t> half(node.size());
        sort_halves(node.data(), Index(node.size()), open, start.data(), half.data());
        MinimumCut<double> flow(Incidence{open, node.data(), start.data(), half.data()});
        // `cut` asks for the edges between open variables once each, in ascending order
        Index edge = 0;
        return cut(
            flow, labels, proposal, [&](Index i) { return Index(number[i]); },
            [&](Index) { return edge++; }, budget);
    }

    // `place(i)` and `edge_of(e)` are the node and the edge of the flow graph of a variable whose
    // labels differ and of an edge between two of them.
    template <class PlaceOf, class EdgeOf>
    Index cut(MinimumCut<double> &flow, Index *labels, const Index *proposal, PlaceOf place,
              EdgeOf edge_of, Budget &budget) const {
        const Layout<double> &lay = costs_.lay;
        for (Index i = 0; i < lay.n; ++i)
            if (labels[i] != proposal[i])
                flow.add_cost(place(i), costs_.node(i, proposal[i]) - costs_.node(i, labels[i]));
        costs_.each_edge([&](Index e, Index i, Index j, auto cost) {
            const Index a = labels[i], b = labels[j], p = proposal[i], q = proposal[j];
            if (a == p && b == q)
                return;
            if (a == p)
                return flow.add_cost(place(j), cost(a, q) - cost(a, b));
            if (b == q)
                return flow.add_cost(place(i), cost(p, b) - cost(a, b));
            Pairwise pair{cost(a, b), cost(a, q), cost(p, b), cost(p, q)};
            pair.none += std::min(pair.surplus(), 0.0);
            set_edge(flow, edge_of(e), place(i), place(j), pair);
        });
        flow.start();
        if (!flow.run(budget))
            return -1;
        Index changed = 0;
        for (Index i = 0; i < lay.n; ++i)
            if (labels[i] != proposal[i] && flow.label(place(i))) {
                labels[i] = proposal[i];
                ++changed;
            }
        return changed;
    }

    BarredCosts costs_;
    std::unique_ptr<MinimumCut<double>> whole_; // the flow graph of all variables, once made
};

// Solves a model of at most two labels per node whose edges are all submodular, for labels and λ.
class BinaryCut {
  public:
    BinaryCut(const Layout<double> &lay, double barrier)
        : costs_(lay, barrier), flow_(costs_.graph()) {
        for (Index i = 0; i < lay.n && applies_; ++i)
            if (applies_ = lay.num_labels[i] <= 2; applies_ && lay.num_labels[i] == 2)
                flow_.add_cost(i, costs_.node(i, 1) - costs_.node(i, 0));
        if (!applies_)
            return;
        each_edge([&](Index e, Index i, Index j, const Pairwise &pair) {
            if (lay.num_labels[i] < 2)
                return flow_.add_cost(j, pair.second - pair.none);
            if (lay.num_labels[j] < 2)
                return flow_.add_cost(i, pair.first - pair.none);
            applies_ &= pair.surplus() >= 0.0;
            set_edge(flow_, e, i, j, pair);
        });
        flow_.start();
    }

    // Whether all nodes have at most two labels and all edges are submodular.
    bool applies() const { return applies_; }

    // Returns false if the budget was spent first; a further call then continues.
    bool run(Budget &budget) { return flow_.run(budget); }

    // The labels and λ of the flow so far. The residual capacities of its arcs stay on an edge; λ
    // moves the rest to its endpoints. Any λ proves a bound, so that rounding here changes the last
    // digit of the bound only.
    void read(Index *labels, double *lam) const {
        const Layout<double> &lay = costs_.lay;
        for (Index i = 0; i < lay.n; ++i)
            labels[i] = lay.num_labels[i] == 2 ? flow_.label(i) : 0;
        each_edge([&](Index e, Index i, Index j, const Pairwise &pair) {
            double *first = lam + lay.half_at(2 * e), *second = lam + lay.half_at(2 * e + 1);
            const bool free = lay.num_labels[i] == 2 && lay.num_labels[j] == 2;
            first[0] = second[0] = 0.0;
            if (lay.num_labels[i] == 2)
                first[1] = pair.none - pair.first + (free ? flow_.residual(2 * e + 1) : 0.0);
            if (lay.num_labels[j] == 2)
                second[1] = pair.none - pair.second + (free ? flow_.residual(2 * e) : 0.0);
        });
    }

  private:
    BarredCosts costs_;
    MinimumCut<double> flow_;
    bool applies_ = true;

    template <class Function> void each_edge(Function f) const {
        costs_.each_edge([&](Index e, Index i, Index j, auto cost) {
            const Index p = costs_.lay.num_labels[i] - 1, q = costs_.lay.num_labels[j] - 1;
            f(e, i, j, Pairwise{cost(0, 0), cost(0, q), cost(p, 0), cost(p, q)});
        });
    }
};

} // namespace softmap
