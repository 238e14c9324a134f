// The graph of a model's variables, in which auxiliary nodes act as factors of their members.
#pragma once

#include "one_edge.hpp"

#include <algorithm>

namespace softmap {

// Nodes begin..end-1.
struct NodeRange {
    Index begin, end;

    Index size() const { return end - begin; }
    bool has(Index i) const { return begin <= i && i < end; }
};

// Nodes from index `variables` on are auxiliary: their state is a function of their members'
// labels. stride[h] is the change of that state per unit of the label at half-edge h; 0 if the node
// across h is a variable. `stride` is null if all nodes are variables.
struct LabelGraph {
    const Layout &lay;
    const Index *stride;
    Index variables;

    // Whether the node across half-edge h is auxiliary.
    bool joint(Index h) const { return stride != nullptr && stride[h] > 0; }

    // Calls f(h) for each half-edge h of node i.
    template <class Function> void halves(Index i, Function f) const {
        for (Index k = lay.start[i]; k < lay.start[i + 1]; ++k)
            f(lay.half[k]);
    }

    // Calls f(member, half-edge of the member) for each member of auxiliary node a.
    template <class Function> void members(Index a, Function f) const {
        halves(a, [&](Index g) { f(Index(lay.node[g ^ 1]), g ^ 1); });
    }

    // Calls f(j) for each variable j that shares an edge or a factor with variable i, possibly more
    // than once.
    template <class Function> void neighbours(Index i, Function f) const {
        halves(i, [&](Index h) {
            const Index j = lay.node[h ^ 1];
            if (!joint(h))
                f(j);
            else
                members(j, [&](Index member, Index) {
                    if (member != i)
                        f(member);
                });
        });
    }

    // State of auxiliary node a if its members have the labels label(member).
    template <class Label> Index state(Index a, Label label) const {
        Index out = 0;
        members(a, [&](Index member, Index h) { out += stride[h] * label(member); });
        return out;
    }

    double unary(Index i, Index x) const { return lay.unary[lay.node_offset[i] + x]; }

    // Cost of the edge of h with label x at h and label y at the other endpoint.
    double pair(Index h, Index x, Index y) const;

    // Recomputes the states of all auxiliary nodes from the labels of the variables.
    void complete(Index *labels) const;
};

// A cost difference: the sum of finite terms, and the number of infinite terms.
struct CostChange {
    double finite = 0.0;
    Index broken = 0;

    void add(double term, int sign);
    bool falls() const { return broken < 0 || (broken == 0 && finite < 0.0); }
};

// Takes into `labels` the connected components of the change to `other` that do not raise the cost.
//
// Components share no edge and no factor, so that each is evaluated on its own: the result is the
// best of all 2^components combinations. Components not taken are undone in `other`, so that both
// labellings are equal afterwards.
class Merge {
  public:
    // Labels differ only at variables of the range. `part` has one entry per node, 0 at first; only
    // those of these variables, their neighbours and their factors are used.
    Merge(const LabelGraph &graph, NodeRange range, std::int32_t *part)
        : graph_(graph), range_(range), part_(part) {}

    // Returns whether the cost fell.
    bool operator()(Index *labels, Index *other);

  private:
    void collect(Index first, const Index *labels, const Index *other);

    CostChange difference(const Index *labels, const Index *other);

    // Adds the change of one edge or factor. If the label across h changes, too, that variable is
    // in the same component.
    void add_edge(Index h, const Index *labels, const Index *other, CostChange &out);

    const LabelGraph &graph_;
    const NodeRange range_;
    std::int32_t *part_; // of a variable: the last call that met it; of a factor: see `counted_`
    std::int32_t stamp_ = 0, counted_ = 0;
    std::vector<Index> nodes_;
};

} // namespace softmap
