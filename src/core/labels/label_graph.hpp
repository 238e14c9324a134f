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
// across h is a variable.
struct LabelGraph {
    const Layout &lay;
    const Index *stride;
    Index variables;

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
            if (stride[h] == 0)
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
    double pair(Index h, Index x, Index y) const {
        double out = 0.0;
        visit_edge(lay, h, [&](const auto &edge) { out = edge.entry(y, x).part[0]; });
        return out;
    }

    // cost[x] = sum of the finite terms of variable i at label x, given all other labels. `terms`
    // is scratch of the same size.
    void finite_costs(Index i, const Index *labels, double *cost, double *terms) const {
        const Index count = lay.num_labels[i];
        const auto add = [&](const double *from) {
            for (Index x = 0; x < count; ++x)
                cost[x] += from[x] == infinity ? 0.0 : from[x];
        };
        std::fill_n(cost, count, 0.0);
        add(lay.unary + lay.node_offset[i]);
        halves(i, [&](Index h) {
            const Index j = lay.node[h ^ 1];
            if (stride[h] == 0) {
                conditional_costs(lay, h, labels[j], terms);
            } else {
                const double *joint = lay.unary + lay.node_offset[j] + labels[j];
                for (Index x = 0; x < count; ++x)
                    terms[x] = joint[(x - labels[i]) * stride[h]];
            }
            add(terms);
        });
    }

    // Recomputes the states of all auxiliary nodes from the labels of the variables.
    void complete(Index *labels) const {
        for (Index a = variables; a < lay.n; ++a)
            labels[a] = state(a, [&](Index member) { return labels[member]; });
    }
};

// A cost difference: the sum of finite terms, and the number of infinite terms.
struct Cost {
    double finite = 0.0;
    Index broken = 0;

    void add(double term, int sign) {
        const bool hard = term == infinity;
        finite += hard ? 0.0 : sign * term;
        broken += hard ? sign : 0;
    }
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
    bool operator()(Index *labels, Index *other) {
        bool fell = false;
        ++stamp_;
        for (Index i = range_.begin; i < range_.end; ++i) {
            if (labels[i] == other[i] || part_[i] == stamp_)
                continue;
            collect(i, labels, other);
            const Cost change = difference(labels, other);
            const bool take = change.falls() || (change.broken == 0 && change.finite == 0.0);
            fell |= change.falls();
            for (const Index j : nodes_)
                (take ? labels[j] : other[j]) = take ? other[j] : labels[j];
        }
        graph_.complete(labels);
        graph_.complete(other);
        return fell;
    }

  private:
    void collect(Index first, const Index *labels, const Index *other) {
        nodes_.assign(1, first);
        part_[first] = stamp_;
        for (std::size_t k = 0; k < nodes_.size(); ++k)
            graph_.neighbours(nodes_[k], [&](Index j) {
                if (labels[j] == other[j] || part_[j] == stamp_)
                    return;
                part_[j] = stamp_;
                nodes_.push_back(j);
            });
    }

    Cost difference(const Index *labels, const Index *other) {
        Cost out;
        ++counted_;
        for (const Index i : nodes_) {
            out.add(graph_.unary(i, other[i]), 1);
            out.add(graph_.unary(i, labels[i]), -1);
            graph_.halves(i, [&](Index h) { add_edge(h, labels, other, out); });
        }
        return out;
    }

    // Adds the change of one edge or factor. If the label across h changes, too, that variable is
    // in the same component.
    void add_edge(Index h, const Index *labels, const Index *other, Cost &out) {
        const Index i = graph_.lay.node[h], j = graph_.lay.node[h ^ 1];
        if (graph_.stride[h] > 0) {
            if (part_[j] == counted_)
                return; // a factor with several members in the component counts once
            part_[j] = counted_;
            out.add(graph_.unary(j, graph_.state(j, [&](Index k) { return other[k]; })), 1);
            out.add(graph_.unary(j, graph_.state(j, [&](Index k) { return labels[k]; })), -1);
        } else if (labels[j] == other[j] || h & 1) { // an edge within the component counts once
            out.add(graph_.pair(h, other[i], other[j]), 1);
            out.add(graph_.pair(h, labels[i], labels[j]), -1);
        }
    }

    const LabelGraph &graph_;
    const NodeRange range_;
    std::int32_t *part_; // of a variable: the last call that met it; of a factor: see `counted_`
    std::int32_t stamp_ = 0, counted_ = 0;
    std::vector<Index> nodes_;
};

} // namespace softmap
