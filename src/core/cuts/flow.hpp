// Minimum s-t cuts by augmenting paths over two search trees (Boykov and Kolmogorov, PAMI 2004).
//
// A large graph is divided into pieces of its numbering, whose flows are found on several threads.
// Neighbouring pieces are then joined in pairs, and their flow continues over the arcs between them
// (Liu and Sun, CVPR 2010), until one piece is left.
#pragma once

#include "base/deadline.hpp"
#include "base/graph.hpp"
#include "base/ranges.hpp"

#include <algorithm>
#include <array>
#include <bit>
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
    MinimumCut() = default;
    explicit MinimumCut(const Incidence &graph) : arc_of_(graph.start[graph.n]) {
        reshape(graph.n, graph.start[graph.n]);
        for (Index k = 0; k < graph.start[graph.n]; ++k)
            arc_of_[graph.half[k]] = std::int32_t(k);
        for (Index i = 0; i < graph.n; ++i) {
            set_node(i, graph.start[i], Capacity(0));
            for (Index k = graph.start[i]; k < graph.start[i + 1]; ++k) {
                const std::int32_t other = graph.half[k] ^ 1;
                set_arc(k, graph.node[other], arc_of_[other], Capacity(0));
            }
        }
    }

    // Begins a graph of other size, whose nodes and arcs are then all set by the next functions.
    void reshape(Index nodes, Index arcs) {
        resize(nodes_, nodes + 1);
        resize(arcs_, arcs);
        resize(queue_, nodes);
        nodes_[nodes].first = std::int32_t(arcs);
    }
    // The arcs of node i begin with `first` and end where those of node i + 1 begin; `excess` is
    // the cost of label 1 minus the cost of label 0.
    void set_node(Index i, Index first, Capacity excess) {
        nodes_[i].first = std::int32_t(first);
        nodes_[i].excess = excess;
    }
    Index first(Index i) const { return nodes_[i].first; }
    // `capacity` is the cost of label 0 at the node of arc k and label 1 at node `to`.
    void set_arc(Index k, Index to, Index reverse, Capacity capacity) {
        arcs_[k] = {std::int32_t(to), std::int32_t(reverse), capacity};
    }

    // For a cut of an Incidence. Adds `cost` to the cost of label 1 minus the cost of label 0 at
    // node i.
    void add_cost(Index i, Capacity cost) { nodes_[i].excess += cost; }
    // Sets the capacity of half-edge h: the cost of label 0 at its node and 1 at the other
    // endpoint.
    void set_capacity(Index h, Capacity capacity) { arcs_[arc_of_[h]].left = capacity; }
    Capacity residual(Index h) const { return arcs_[arc_of_[h]].left; }

    // Starts two search trees from the capacities set before, in one piece.
    void start() {
        pieces_.resize(1);
        start(pieces_[0], 0, size());
    }
    // Computes a minimum cut in one piece, after `start`. `Limit` counts visited arcs with
    // use(count) and has spent(). Returns false if the limit was reached first; a further call then
    // continues.
    template <class Limit> bool run(Limit &limit) { return run(pieces_[0], limit); }

    // Starts two search trees in each piece of a large graph; there is one piece if more than
    // `most_joining` of the arcs would lead from piece to piece.
    void start_pieces(int threads) {
        const Index count = count_ranges(size(), least);
        length_ = (size() + count - 1) / count;
        pieces_.resize(std::size_t(count));
        joined_ = 0;
        split_portions(threads, count, size(), [&](Part part) {
            Piece &own = pieces_[part.index];
            start(own, part.index * length_, std::min((part.index + 1) * length_, size()));
            if (count > 1)
                find_borders(own);
        });
        Index crossing = 0;
        for (const Piece &piece : pieces_)
            crossing += piece.crossing;
        if (double(crossing) > most_joining * double(arcs_.size()))
            start();
    }
    // Computes a minimum cut, after `start_pieces`. Returns false if the meter was spent first; a
    // further call then continues. The cut does not depend on the number of threads.
    bool run(Meter &meter, int threads) {
        for (;;) {
            const Index count = Index(pieces_.size());
            std::vector<Meter> parts(std::size_t(count), meter.rest());
            std::vector<char> done(std::size_t(count), 0);
            split_one_by_one(count == 1 ? 1 : threads, count,
                             [&](Index p) { done[p] = run(pieces_[p], parts[p]); });
            for (const Meter &part : parts)
                meter.use(part.used());
            if (std::count(done.begin(), done.end(), 0) > 0)
                return false;
            if (count == 1)
                return true;
            join_pieces();
        }
    }

    int label(Index i) const { return nodes_[i].parent != none && nodes_[i].sink; }
    // Whether the source reaches node i in the residual graph: such nodes have label 0 in every
    // minimum cut.
    bool from_source(Index i) const { return nodes_[i].parent != none && !nodes_[i].sink; }

  private:
    static constexpr std::int32_t none = -1, terminal = -2, orphan = -3;
    static constexpr std::int32_t unreachable = INT32_MAX;
    static constexpr Index least = 1 << 11;                                    // nodes of a piece
    static constexpr int joins = std::countr_zero(std::uint64_t(most_ranges)); // of pieces in pairs
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
    // The search over nodes begin..end-1, which ignores all other nodes.
    struct Piece {
        std::int32_t begin = 0, end = 0;
        std::int32_t time = 0;
        Index head = 0, waiting = 0; // active nodes: a ring buffer in `queue_`, from `begin` on
        std::vector<std::int32_t> orphans;
        std::array<std::vector<std::int32_t>, joins> border; // nodes with arcs opened by each join
        Index crossing = 0;                                  // arcs to other pieces

        bool has(std::int32_t i) const {
            return std::uint32_t(i - begin) < std::uint32_t(end - begin);
        }
    };
    std::vector<Node> nodes_; // and a sentinel, whose `first` ends the arcs of the last node
    std::vector<Arc> arcs_;
    std::vector<std::int32_t> arc_of_; // by half-edge, for a cut of an Incidence
    std::vector<std::int32_t> queue_;
    std::vector<Piece> pieces_;
    Index length_ = 0; // nodes of a piece
    int joined_ = 0;   // how often pieces were joined

    Index size() const { return Index(nodes_.size()) - 1; }

    // Resizes an array, of which nothing is kept if it grows: its memory is freed first.
    template <class Item> static void resize(std::vector<Item> &items, Index size) {
        if (std::size_t(size) > items.capacity())
            items = std::vector<Item>();
        items.resize(std::size_t(size));
    }

    void start(Piece &piece, Index begin, Index end) {
        piece = Piece{};
        piece.begin = std::int32_t(begin);
        piece.end = std::int32_t(end);
        for (std::int32_t i = piece.begin; i < piece.end; ++i) {
            Node &node = nodes_[i];
            node.active = false;
            node.seen = 0;
            node.sink = node.excess < 0;
            node.parent = node.excess == 0 ? none : terminal;
            node.depth = 1;
            if (node.parent == terminal)
                activate(piece, i);
        }
    }

    // Lists the nodes with arcs to other pieces by the join after which these are in one piece.
    void find_borders(Piece &piece) {
        const std::uint32_t own = std::uint32_t(piece.begin / length_);
        for (std::int32_t i = piece.begin; i < piece.end; ++i) {
            unsigned joins_seen = 0;
            for (std::int32_t k = nodes_[i].first; k < nodes_[i + 1].first; ++k) {
                if (piece.has(arcs_[k].to))
                    continue;
                ++piece.crossing;
                joins_seen |=
                    1u << (std::bit_width(own ^ std::uint32_t(arcs_[k].to / length_)) - 1);
            }
            for (; joins_seen != 0; joins_seen &= joins_seen - 1)
                piece.border[std::size_t(std::countr_zero(joins_seen))].push_back(i);
        }
    }

    // Joins pieces 2k and 2k + 1, whose searches are complete. The nodes at the arcs between them
    // become active again.
    void join_pieces() {
        for (std::size_t k = 0; 2 * k < pieces_.size(); ++k) {
            Piece &first = pieces_[2 * k], &second = pieces_[2 * k + 1];
            first.end = second.end;
            first.time = std::max(first.time, second.time) + 1; // so that no stamp equals it
            first.head = first.waiting = 0;
            for (const Piece *part : {&first, &second})
                for (const std::int32_t i : part->border[std::size_t(joined_)])
                    if (nodes_[i].parent != none)
                        activate(first, i);
            for (std::size_t join = 0; join < first.border.size(); ++join)
                first.border[join].insert(first.border[join].end(), second.border[join].begin(),
                                          second.border[join].end());
            if (k > 0)
                pieces_[k] = std::move(first);
        }
        pieces_.resize(pieces_.size() / 2);
        ++joined_;
    }

    template <class Limit> bool run(Piece &piece, Limit &limit) {
        std::int32_t current = none;
        for (;;) {
            if (current == none || nodes_[current].parent == none) {
                current = pop_active(piece);
                if (current == none)
                    return true;
            }
            if (limit.spent()) {
                activate(piece, current); // its arcs may not all have been visited
                return false;
            }
            const std::int32_t bridge = grow(piece, current);
            limit.use(nodes_[current + 1].first - nodes_[current].first + 1);
            ++piece.time;
            if (bridge == none) {
                current = none;
                continue;
            }
            augment(piece, bridge);
            adopt_all(piece, limit);
        }
    }

    void activate(Piece &piece, std::int32_t i) {
        if (nodes_[i].active)
            return;
        nodes_[i].active = true;
        const Index room = piece.end - piece.begin, at = piece.head + piece.waiting++;
        queue_[piece.begin + (at >= room ? at - room : at)] = i;
    }
    std::int32_t pop_active(Piece &piece) {
        while (piece.waiting > 0) {
            const std::int32_t i = queue_[piece.begin + piece.head];
            piece.head = piece.head + 1 == piece.end - piece.begin ? 0 : piece.head + 1;
            --piece.waiting;
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
    std::int32_t grow(Piece &piece, std::int32_t i) {
        Node &node = nodes_[i];
        for (std::int32_t k = node.first; k < nodes_[i + 1].first; ++k) {
            const Arc &arc = arcs_[k];
            if (!piece.has(arc.to) || !(outward(arc, node.sink) > 0))
                continue;
            Node &other = nodes_[arc.to];
            if (other.parent == none) {
                other.sink = node.sink;
                other.parent = arc.reverse;
                other.seen = node.seen;
                other.depth = node.depth + 1;
                activate(piece, arc.to);
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
    void push_to_root(Piece &piece, std::int32_t i, Capacity amount) {
        while (nodes_[i].parent != terminal) {
            const std::int32_t up = nodes_[i].parent;
            Arc &out = arcs_[nodes_[i].sink ? up : arcs_[up].reverse];
            arcs_[out.reverse].left += amount;
            out.left -= amount;
            const std::int32_t next = arcs_[up].to;
            if (out.left <= 0)
                make_orphan(piece, i);
            i = next;
        }
        Node &root = nodes_[i];
        root.excess += root.sink ? amount : -amount;
        if (root.sink ? root.excess >= 0 : root.excess <= 0) {
            root.excess = 0;
            make_orphan(piece, i);
        }
    }
    void make_orphan(Piece &piece, std::int32_t i) {
        nodes_[i].parent = orphan;
        piece.orphans.push_back(i);
    }

    void augment(Piece &piece, std::int32_t bridge) {
        const std::int32_t from = tail(bridge), to = arcs_[bridge].to;
        const Capacity amount = least_to_root(to, least_to_root(from, arcs_[bridge].left));
        arcs_[arcs_[bridge].reverse].left += amount;
        arcs_[bridge].left -= amount;
        push_to_root(piece, from, amount);
        push_to_root(piece, to, amount);
    }

    template <class Limit> void adopt_all(Piece &piece, Limit &limit) {
        for (std::size_t k = 0; k < piece.orphans.size(); ++k) {
            const std::int32_t i = piece.orphans[k];
            adopt(piece, i);
            limit.use(nodes_[i + 1].first - nodes_[i].first);
        }
        piece.orphans.clear();
    }

    // Number of arcs from a node to the root of its tree; `unreachable` if the path ends at an
    // orphan. The walk stops at a node whose depth was computed since the last augmentation.
    std::int32_t depth_of(std::int32_t i, std::int32_t time) {
        std::int32_t steps = 0;
        for (std::int32_t at = i;;) {
            Node &node = nodes_[at];
            if (node.seen == time) {
                steps += node.depth;
                break;
            }
            ++steps;
            if (node.parent == terminal) {
                node.seen = time;
                node.depth = 1;
                break;
            }
            if (node.parent == orphan || node.parent == none)
                return unreachable;
            at = arcs_[node.parent].to;
        }
        std::int32_t depth = steps;
        for (std::int32_t at = i; nodes_[at].seen != time; at = arcs_[nodes_[at].parent].to) {
            nodes_[at].seen = time;
            nodes_[at].depth = depth--;
        }
        return steps;
    }

    // Gives an orphan the parent in its tree that is nearest to the root, or frees it if there is
    // none.
    void adopt(Piece &piece, std::int32_t i) {
        Node &node = nodes_[i];
        const std::int32_t last = nodes_[i + 1].first;
        std::int32_t best = none, least = unreachable;
        for (std::int32_t k = node.first; k < last; ++k) {
            const Arc &arc = arcs_[k];
            if (!piece.has(arc.to))
                continue;
            const Capacity inward = node.sink ? arc.left : arcs_[arc.reverse].left;
            const Node &other = nodes_[arc.to];
            if (!(inward > 0) || other.parent == none || other.sink != node.sink)
                continue;
            if (const std::int32_t depth = depth_of(arc.to, piece.time); depth < least) {
                least = depth;
                best = k;
            }
        }
        node.parent = best;
        if (best != none) {
            node.seen = piece.time;
            node.depth = least + 1;
            return;
        }
        for (std::int32_t k = node.first; k < last; ++k) {
            const Arc &arc = arcs_[k];
            if (!piece.has(arc.to))
                continue;
            Node &other = nodes_[arc.to];
            if (other.parent == none || other.sink != node.sink)
                continue;
            if ((node.sink ? arc.left : arcs_[arc.reverse].left) > 0)
                activate(piece, arc.to);
            if (other.parent >= 0 && arcs_[other.parent].to == i)
                make_orphan(piece, arc.to);
        }
    }
};

} // namespace softmap
