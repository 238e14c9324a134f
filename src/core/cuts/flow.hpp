// Minimum s-t cuts by augmenting paths over two search trees (Boykov and Kolmogorov, PAMI 2004).
#pragma once

#include "base/graph.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace softmap {

// Each half-edge h is an arc from its node to the other endpoint of its edge. Nodes on the sink
// side of the cut have label 1, all others label 0.
//
// An augmentation subtracts the smallest residual capacity of its path from every arc of the path,
// so that at least one residual becomes exactly 0. Integer capacities stay exact. With doubles,
// rounding changes other residuals in the last digit only; a bound computed from the residuals has
// to allow for this error.
template <class Capacity> class MinimumCut {
  public:
    explicit MinimumCut(const Incidence &graph)
        : nodes_(graph.n + 1), arcs_(graph.start[graph.n]), arc_of_(graph.start[graph.n]),
          queue_(graph.n) {
        for (Index k = 0; k < graph.start[graph.n]; ++k)
            arc_of_[graph.half[k]] = std::int32_t(k);
        for (Index k = 0; k < graph.start[graph.n]; ++k) {
            const std::int32_t other = graph.half[k] ^ 1;
            arcs_[k] = {graph.node[other], arc_of_[other], Capacity(0)};
        }
        for (Index i = 0; i <= graph.n; ++i)
            nodes_[i].first = std::int32_t(graph.start[i]);
    }

    // Sets all capacities to 0.
    void clear() {
        for (Arc &arc : arcs_)
            arc.left = Capacity(0);
        for (Node &node : nodes_)
            node.excess = Capacity(0);
    }
    // Adds `cost` to the cost of label 1 minus the cost of label 0 at node i.
    void add_cost(Index i, Capacity cost) { nodes_[i].excess += cost; }
    // Sets the capacity of half-edge h: the cost of label 0 at its node and 1 at the other
    // endpoint.
    void set_capacity(Index h, Capacity capacity) { arcs_[arc_of_[h]].left = capacity; }
    Capacity residual(Index h) const { return arcs_[arc_of_[h]].left; }

    // Starts two search trees from the capacities set before.
    void start() {
        head_ = waiting_ = 0;
        time_ = 0;
        for (Index i = 0; i < size(); ++i) {
            Node &node = nodes_[i];
            node.active = false;
            node.seen = 0;
            node.sink = node.excess < 0;
            node.parent = node.excess == 0 ? none : terminal;
            node.depth = 1;
            if (node.parent == terminal)
                activate(std::int32_t(i));
        }
    }
    // Computes a minimum cut, after `start`. `Limit` counts visited arcs with use(count) and has
    // spent(). Returns false if the limit was reached first; a further call then continues.
    template <class Limit> bool run(Limit &limit) {
        std::int32_t current = none;
        for (;;) {
            if (current == none || nodes_[current].parent == none) {
                current = pop_active();
                if (current == none)
                    return true;
            }
            if (limit.spent()) {
                activate(current); // its arcs may not all have been visited
                return false;
            }
            const std::int32_t bridge = grow(current);
            limit.use(nodes_[current + 1].first - nodes_[current].first + 1);
            ++time_;
            if (bridge == none) {
                current = none;
                continue;
            }
            augment(bridge);
            adopt_all(limit);
        }
    }

    int label(Index i) const { return nodes_[i].parent != none && nodes_[i].sink; }
    // Whether the source reaches node i in the residual graph: such nodes have label 0 in every
    // minimum cut.
    bool from_source(Index i) const { return nodes_[i].parent != none && !nodes_[i].sink; }

  private:
    static constexpr std::int32_t none = -1, terminal = -2, orphan = -3;
    static constexpr std::int32_t unreachable = INT32_MAX;
    struct Arc {
        std::int32_t to, reverse;
        Capacity left; // residual capacity
    };
    struct Node {
        Capacity excess = 0;        // residual capacity from the source (> 0) or to the sink (< 0)
        std::int32_t first = 0;     // arcs of node i: first of i .. first of i + 1
        std::int32_t parent = none; // the arc to the parent in its tree, or one of the above
        std::int32_t seen = 0;      // time stamp of `depth`
        std::int32_t depth = 0;     // arcs to the root of its tree
        bool sink = false, active = false;
    };
    std::vector<Node> nodes_; // and a sentinel, whose `first` ends the arcs of the last node
    std::vector<Arc> arcs_;
    std::vector<std::int32_t> arc_of_;
    std::vector<std::int32_t> queue_; // active nodes, in a ring buffer
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

    // Residual capacity of an arc in the direction away from the root of a tree.
    Capacity outward(const Arc &arc, bool sink) const {
        return sink ? arcs_[arc.reverse].left : arc.left;
    }

    // Adds the neighbours that a node reaches to its tree. Returns an arc from the source tree to
    // the sink tree, or none.
    std::int32_t grow(std::int32_t i) {
        Node &node = nodes_[i];
        for (std::int32_t k = node.first; k < nodes_[i + 1].first; ++k) {
            const Arc &arc = arcs_[k];
            if (!(outward(arc, node.sink) > 0))
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

    // Smallest residual capacity on the path from a node to the root of its tree.
    Capacity least_to_root(std::int32_t i, Capacity least) const {
        for (; nodes_[i].parent != terminal; i = arcs_[nodes_[i].parent].to) {
            const Arc &up = arcs_[nodes_[i].parent];
            least = std::min(least, nodes_[i].sink ? up.left : arcs_[up.reverse].left);
        }
        return std::min(least, std::abs(nodes_[i].excess));
    }
    void push_to_root(std::int32_t i, Capacity amount) {
        while (nodes_[i].parent != terminal) {
            const std::int32_t up = nodes_[i].parent;
            Arc &out = arcs_[nodes_[i].sink ? up : arcs_[up].reverse];
            arcs_[out.reverse].left += amount;
            out.left -= amount;
            const std::int32_t next = arcs_[up].to;
            if (out.left <= 0)
                make_orphan(i);
            i = next;
        }
        Node &root = nodes_[i];
        root.excess += root.sink ? amount : -amount;
        if (root.sink ? root.excess >= 0 : root.excess <= 0) {
            root.excess = 0;
            make_orphan(i);
        }
    }
    void make_orphan(std::int32_t i) {
        nodes_[i].parent = orphan;
        orphans_.push_back(i);
    }

    void augment(std::int32_t bridge) {
        const std::int32_t from = tail(bridge), to = arcs_[bridge].to;
        const Capacity amount = least_to_root(to, least_to_root(from, arcs_[bridge].left));
        arcs_[arcs_[bridge].reverse].left += amount;
        arcs_[bridge].left -= amount;
        push_to_root(from, amount);
        push_to_root(to, amount);
    }

    template <class Limit> void adopt_all(Limit &limit) {
        for (std::size_t k = 0; k < orphans_.size(); ++k) {
            const std::int32_t i = orphans_[k];
            adopt(i);
            limit.use(nodes_[i + 1].first - nodes_[i].first);
        }
        orphans_.clear();
    }

    // Number of arcs from a node to the root of its tree; `unreachable` if the path ends at an
    // orphan. The walk stops at a node whose depth was computed since the last augmentation.
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

    // Gives an orphan the parent in its tree that is nearest to the root, or frees it if there is
    // none.
    void adopt(std::int32_t i) {
        Node &node = nodes_[i];
        const std::int32_t last = nodes_[i + 1].first;
        std::int32_t best = none, least = unreachable;
        for (std::int32_t k = node.first; k < last; ++k) {
            const Arc &arc = arcs_[k];
            const Capacity inward = node.sink ? arc.left : arcs_[arc.reverse].left;
            const Node &other = nodes_[arc.to];
            if (!(inward > 0) || other.parent == none || other.sink != node.sink)
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
            if ((node.sink ? arc.left : arcs_[arc.reverse].left) > 0)
                activate(arc.to);
            if (other.parent >= 0 && arcs_[other.parent].to == i)
                make_orphan(arc.to);
        }
    }
};

} // namespace softmap
