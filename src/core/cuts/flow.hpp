// Minimum s-t cuts of a graph with real capacities, by augmenting paths over two search trees
// (Boykov and Kolmogorov, PAMI 2004).
#pragma once

#include "base/budget.hpp"

#include <cstdint>
#include <vector>

namespace softmap {

// The graph is that of a model: each half-edge h is an arc from its node to the other endpoint of
// its edge. Nodes on the sink side of the cut have label 1, all others label 0.
//
// An augmentation subtracts the smallest residual capacity of its path from every arc of the path,
// so that at least one residual becomes exactly 0. Rounding changes other residuals in their last
// digit only; the bound of a cut must be computed in a way that allows for that.
class MinimumCut {
  public:
    // start[i]..start[i + 1] - 1 are the positions of node i's half-edges in `half`.
    MinimumCut(Index n, const Index *start, const std::int32_t *half, const std::int32_t *node)
        : nodes_(n + 1), arcs_(start[n]), arc_of_(start[n]), queue_(n) {
        for (Index k = 0; k < start[n]; ++k)
            arc_of_[half[k]] = std::int32_t(k);
        for (Index k = 0; k < start[n]; ++k)
            arcs_[k] = {node[half[k] ^ 1], arc_of_[half[k] ^ 1], 0.0};
        for (Index i = 0; i <= n; ++i)
            nodes_[i].first = std::int32_t(start[i]);
    }

    // Resets all capacities to 0.
    void clear() {
        for (Arc &arc : arcs_)
            arc.left = 0.0;
        for (Node &node : nodes_)
            node.excess = 0.0;
    }
    // Adds `cost` to the cost of label 1 minus that of label 0 at node i.
    void add_cost(Index i, double cost) { nodes_[i].excess += cost; }
    // The capacity of half-edge h: the cost of label 0 at its node and 1 at the other endpoint.
    void set_capacity(Index h, double capacity) { arcs_[arc_of_[h]].left = capacity; }
    double residual(Index h) const { return arcs_[arc_of_[h]].left; }

    // Returns false if the budget was spent before the cut was minimal.
    bool run(Budget &budget) {
        plant();
        std::int32_t current = none;
        for (;;) {
            if (current == none || nodes_[current].parent == none) {
                current = pop_active();
                if (current == none)
                    return true;
            }
            const std::int32_t bridge = grow(current);
            budget.use(nodes_[current + 1].first - nodes_[current].first + 1);
            if (budget.late())
                return false;
            ++time_;
            if (bridge == none) {
                current = none;
                continue;
            }
            augment(bridge);
            adopt_all(budget);
        }
    }

    int label(Index i) const { return nodes_[i].parent != none && nodes_[i].sink; }

  private:
    static constexpr std::int32_t none = -1, terminal = -2, orphan = -3;
    static constexpr std::int32_t unreachable = INT32_MAX;
    struct Arc {
        std::int32_t to, reverse;
        double left; // residual capacity
    };
    struct Node {
        double excess = 0.0;        // residual capacity from the source (> 0) or to the sink (< 0)
        std::int32_t first = 0;     // arcs of node i: first of i .. first of i + 1
        std::int32_t parent = none; // the arc to the parent in its tree, or one of the above
        std::int32_t seen = 0;      // time at which `depth` was computed
        std::int32_t depth = 0;     // arcs to the root of its tree
        bool sink = false, active = false;
    };
    std::vector<Node> nodes_; // with a sentinel after the last node
    std::vector<Arc> arcs_;
    std::vector<std::int32_t> arc_of_;
    std::vector<std::int32_t> queue_; // active nodes, a ring buffer
    std::size_t head_ = 0, waiting_ = 0;
    std::vector<std::int32_t> orphans_;
    std::int32_t time_ = 0;

    Index size() const { return Index(nodes_.size()) - 1; }

    void activate(std::int32_t i) {
        if (nodes_[i].active)
            return;
        nodes_[i].active = true;
        std::size_t at = head_ + waiting_++;
        queue_[at >= queue_.size() ? at - queue_.size() : at] = i;
    }
    std::int32_t pop_active() {
        while (waiting_ > 0) {
            const std::int32_t i = queue_[head_];
            head_ = head_ + 1 == queue_.size() ? 0 : head_ + 1;
            --waiting_;
            nodes_[i].active = false;
            if (nodes_[i].parent != none)
                return i;
        }
        return none;
    }

    // Every node with an excess is a root.
    void plant() {
        head_ = waiting_ = 0;
        time_ = 0;
        for (Index i = 0; i < size(); ++i) {
            Node &node = nodes_[i];
            node.active = false;
            node.seen = 0;
            node.sink = node.excess < 0.0;
            node.parent = node.excess == 0.0 ? none : terminal;
            node.depth = 1;
            if (node.parent == terminal)
                activate(std::int32_t(i));
        }
    }

    // Residual capacity of an arc in the direction away from the root of a tree.
    double outward(const Arc &arc, bool sink) const {
        return sink ? arcs_[arc.reverse].left : arc.left;
    }

    // Adds the neighbours that a node reaches to its tree; an arc from the tree of the source to
    // that of the sink, or none.
    std::int32_t grow(std::int32_t i) {
        Node &node = nodes_[i];
        for (std::int32_t k = node.first; k < nodes_[i + 1].first; ++k) {
            const Arc &arc = arcs_[k];
            if (!(outward(arc, node.sink) > 0.0))
                continue;
            Node &other = nodes_[arc.to];
            if (other.parent == none) {
                other.sink = node.sink;
                other.parent = arc.reverse;
                other.seen = node.seen;
                other.depth = node.depth + 1;
                activate(arc.to);
            } else if (other.sink != node.sink) {
                return node.sink ? arc.reverse : k;
            } else if (other.seen <= node.seen && other.depth > node.depth) {
                other.parent = arc.reverse; // a shorter path to the root
                other.seen = node.seen;
                other.depth = node.depth + 1;
            }
        }
        return none;
    }

    std::int32_t tail(std::int32_t arc) const { return arcs_[arcs_[arc].reverse].to; }

    // The smallest residual capacity on the path from a node to the root of its tree.
    double least_to_root(std::int32_t i, double least) const {
        for (; nodes_[i].parent != terminal; i = arcs_[nodes_[i].parent].to) {
            const Arc &up = arcs_[nodes_[i].parent];
            least = std::min(least, nodes_[i].sink ? up.left : arcs_[up.reverse].left);
        }
        return std::min(least, std::abs(nodes_[i].excess));
    }
    void push_to_root(std::int32_t i, double amount) {
        while (nodes_[i].parent != terminal) {
            const std::int32_t up = nodes_[i].parent;
            Arc &out = arcs_[nodes_[i].sink ? up : arcs_[up].reverse];
            arcs_[out.reverse].left += amount;
            out.left -= amount;
            const std::int32_t next = arcs_[up].to;
            if (out.left <= 0.0)
                make_orphan(i);
            i = next;
        }
        Node &root = nodes_[i];
        root.excess += root.sink ? amount : -amount;
        if (root.sink ? root.excess >= 0.0 : root.excess <= 0.0) {
            root.excess = 0.0;
            make_orphan(i);
        }
    }
    void make_orphan(std::int32_t i) {
        nodes_[i].parent = orphan;
        orphans_.push_back(i);
    }

    void augment(std::int32_t bridge) {
        const std::int32_t from = tail(bridge), to = arcs_[bridge].to;
        const double amount = least_to_root(to, least_to_root(from, arcs_[bridge].left));
        arcs_[arcs_[bridge].reverse].left += amount;
        arcs_[bridge].left -= amount;
        push_to_root(from, amount);
        push_to_root(to, amount);
    }

    void adopt_all(Budget &budget) {
        for (std::size_t k = 0; k < orphans_.size(); ++k) {
            const std::int32_t i = orphans_[k];
            adopt(i);
            budget.use(nodes_[i + 1].first - nodes_[i].first);
        }
        orphans_.clear();
    }

    // Arcs from a node to the root of its tree; `unreachable` when the way ends at an orphan.
    // Nodes whose depth is known since the last augmentation end the walk.
    std::int32_t depth_of(std::int32_t i) {
        std::int32_t steps = 0;
        for (std::int32_t at = i;;) {
            Node &node = nodes_[at];
            if (node.seen == time_) {
                steps += node.depth;
                break;
            }
            ++steps;
            if (node.parent == terminal) {
                node.seen = time_;
                node.depth = 1;
                break;
            }
            if (node.parent == orphan || node.parent == none)
                return unreachable;
            at = arcs_[node.parent].to;
        }
        std::int32_t depth = steps;
        for (std::int32_t at = i; nodes_[at].seen != time_; at = arcs_[nodes_[at].parent].to) {
            nodes_[at].seen = time_;
            nodes_[at].depth = depth--;
        }
        return steps;
    }

    // Finds an orphan a new parent in its tree, the one nearest to the root; or frees it.
    void adopt(std::int32_t i) {
        Node &node = nodes_[i];
        const std::int32_t last = nodes_[i + 1].first;
        std::int32_t best = none, least = unreachable;
        for (std::int32_t k = node.first; k < last; ++k) {
            const Arc &arc = arcs_[k];
            const double inward = node.sink ? arc.left : arcs_[arc.reverse].left;
            const Node &other = nodes_[arc.to];
            if (!(inward > 0.0) || other.parent == none || other.sink != node.sink)
                continue;
            if (const std::int32_t depth = depth_of(arc.to); depth < least) {
                least = depth;
                best = k;
            }
        }
        node.parent = best;
        if (best != none) {
            node.seen = time_;
            node.depth = least + 1;
            return;
        }
        for (std::int32_t k = node.first; k < last; ++k) {
            const Arc &arc = arcs_[k];
            Node &other = nodes_[arc.to];
            if (other.parent == none || other.sink != node.sink)
                continue;
            if ((node.sink ? arc.left : arcs_[arc.reverse].left) > 0.0)
                activate(arc.to);
            if (other.parent >= 0 && arcs_[other.parent].to == i)
                make_orphan(arc.to);
        }
    }
};

} // namespace softmap
