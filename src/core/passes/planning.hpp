// Divides an order of the nodes into levels, strips and blocks. softmap.methods.sweeps.planning
// defines these terms and documents the arrays of a plan.
#pragma once

#include "bands.hpp"
#include "base/sorting.hpp"

#include <algorithm>
#include <vector>

namespace softmap {

// Largest number of nodes, or of edges, in a strip. An odd number of tiles: successive labels then
// fall into different cache sets, and a strip touches few memory pages.
inline constexpr Index longest_strip = 31 * lanes;

inline Index padded(Index length) { return (length + lanes - 1) / lanes * lanes; }

// Smallest number of edges for which a tile is faster than single edges; `entries` is the size of
// one edge's table.
inline Index filled(Index entries) { return entries <= 16 ? 2 : entries <= 64 ? 3 : 5; }

// The arrays of a schedule that do not depend on costs; `cost_size` and `table_size` are the
// lengths of arrays over node states by strip and of the packed tables.
struct Plan {
    std::vector<Index> row_start, nodes, node_at, node_step, pull_start, pull_at, edge, early_at,
        late_at, forward_start, backward_start;
    std::vector<Bands> forward_after, backward_after;
    std::vector<Row> rows;
    std::vector<Block> blocks;
    std::vector<double> share;
    std::vector<std::int32_t> pull_step, early_step, late_step, forward_ends, backward_ends,
        forward, backward, later;
    Index cost_size = 0, table_size = 0;
};

// Builds a Plan from the graph and the label counts of a model.
class Planner {
  public:
    // `rank` [n] is the position of each node in the order, `level` [n] its level. Edges may share
    // a tile only if their `key` [m] is equal (-1: never). If `leading`, straight rows list the
    // messages into their first node only.
    Planner(const Layout<double> &lay, const Index *rank, const Index *level, const Index *key,
            bool leading)
        : lay_(lay), level_(level), key_(key), leading_(leading), group_(std::size_t(lay.m)),
          side_(std::size_t(lay.m)), node_(std::size_t(lay.n)), half_(std::size_t(2 * lay.m)) {
        for (Index g = 0; g < lay.groups; ++g)
            std::fill(group_.begin() + lay.group_start[g], group_.begin() + lay.group_start[g + 1],
                      std::int32_t(g));
        for (Index e = 0; e < lay.m; ++e)
            side_[e] = rank[lay.node[2 * e]] > rank[lay.node[2 * e + 1]];
        for (Index i = 0; i < lay.n; ++i)
            levels_ = std::max(levels_, level[i] + 1);
    }

    Plan run() {
        place_nodes();
        place_edges();
        place_late_messages();
        for (Block &block : plan_.blocks)
            place_ends(block);
        cut_rows();
        count_chains();
        cut_bands();
        return std::move(plan_);
    }

  private:
    // First entry and stride of a node's costs or of a message.
    struct Place {
        Index at, step;

        bool follows(const Place &first, Index by) const {
            return at == first.at + by && step == first.step;
        }
    };

    Index early(Index e) const { return lay_.node[2 * e + side_[e]]; }
    Index late(Index e) const { return lay_.node[2 * e + 1 - side_[e]]; }
    Index degree(Index i) const { return lay_.start[i + 1] - lay_.start[i]; }

    // Assigns nodes to strips. Within a strip, nodes of lower degree come last, so that the other
    // nodes line up with the strips of their edges.
    void place_nodes() {
        JoinedKeys keys(lay_.n);
        keys.add([&](Index i) { return level_[i]; });
        keys.add([&](Index i) { return lay_.num_labels[i]; });
        const JoinedKeys strips = keys;
        keys.add([&](Index i) { return -degree(i); });
        std::vector<Keyed> order(std::size_t(lay_.n));
        for (Index i = 0; i < lay_.n; ++i)
            order[i] = {keys[i], std::int32_t(i), 0};
        sort_stably(order);
        plan_.nodes.resize(std::size_t(lay_.n));
        strip_.resize(std::size_t(lay_.n));
        for (Index k = 0; k < lay_.n; ++k)
            plan_.nodes[k] = order[k].item;
        std::int32_t strip = 0;
        for (Index first = 0, last; first < lay_.n; first = last, ++strip) {
            const Index i = plan_.nodes[first];
            last = first + 1;
            while (last < lay_.n && last - first < longest_strip &&
                   strips[plan_.nodes[last]] == strips[i])
                ++last;
            const Index step = last - first > 1 ? padded(last - first) : 1;
            for (Index k = first; k < last; ++k) {
                node_[plan_.nodes[k]] = {plan_.cost_size + k - first, step};
                strip_[k] = strip;
            }
            plan_.cost_size += step * lay_.num_labels[i];
        }
        plan_.node_at.resize(std::size_t(lay_.n));
        plan_.node_step.resize(std::size_t(lay_.n));
        for (Index i = 0; i < lay_.n; ++i)
            plan_.node_at[i] = node_[i].at, plan_.node_step[i] = node_[i].step;
    }

    // Sort keys of edges; edges may share a strip if their keys are equal.
    JoinedKeys keys_of_edges() const {
        JoinedKeys keys(lay_.m);
        keys.add([&](Index e) { return level_[early(e)]; });
        keys.add([&](Index e) { return level_[late(e)]; });
        keys.add([&](Index e) { return group_[e]; });
        keys.add([&](Index e) { return side_[e]; });
        keys.add([&](Index e) { return lay_.num_labels[early(e)]; });
        keys.add([&](Index e) { return lay_.num_labels[late(e)]; });
        keys.add([&](Index e) { return key_[e]; });
        return keys;
    }

    // Edges sorted by `keys_of_edges`, then by the position of their early endpoints in strips.
    std::vector<Keyed> lined_up() const {
        const JoinedKeys keys = keys_of_edges();
        std::vector<Keyed> order;
        order.reserve(std::size_t(lay_.m));
        for (Index k = 0; k < lay_.n; ++k) {
            const Index i = plan_.nodes[k];
            for (Index p = lay_.start[i]; p < lay_.start[i + 1]; ++p) {
                const std::int32_t e = lay_.half[p] >> 1;
                if ((lay_.half[p] & 1) == side_[e])
                    order.push_back({keys[e], e, std::int32_t(k)});
            }
        }
        sort_stably(order);
        return order;
    }

    void place_edges() {
        const std::vector<Keyed> order = lined_up();
        plan_.edge.reserve(order.size());
        std::vector<std::int32_t> edges;
        for (std::size_t first = 0, last; first < order.size(); first = last) {
            for (last = first; last < order.size() && order[last].key == order[first].key;)
                ++last;
            by_turns(order.data() + first, order.data() + last, edges);
            for (Index k = 0; k < Index(edges.size()); k += longest_strip)
                place_strip(edges.data() + k, std::min(longest_strip, Index(edges.size()) - k));
        }
    }

    // Reorders edges of equal keys: the first edges of all early endpoints, then the second edges,
    // and so on. Neighbouring edges of a strip then have neighbouring early endpoints.
    static void by_turns(const Keyed *first, const Keyed *last, std::vector<std::int32_t> &edges) {
        std::vector<Keyed> turns;
        turns.reserve(std::size_t(last - first));
        for (const Keyed *one = first; one < last; ++one) {
            const bool again = one > first && one[-1].place == one->place;
            turns.push_back({again ? turns.back().key + 1 : 0, one->item, 0});
        }
        sort_stably(turns);
        edges.clear();
        for (const Keyed &one : turns)
            edges.push_back(one.item);
    }

    // Places a strip of edges: tiles, then the remaining edges one by one if they are too few for a
    // tile.
    void place_strip(const std::int32_t *edges, Index count) {
        const Index e = edges[0], rows = lay_.num_labels[early(e)], cols = lay_.num_labels[late(e)];
        const Index rest = count % lanes;
        const Index in_tiles = key_[e] < 0 ? 0 : rest >= filled(rows * cols) ? count : count - rest;
        const Index step = padded(in_tiles);
        for (Index k = 0; k < in_tiles; k += lanes)
            add_block(edges + k, std::min<Index>(lanes, in_tiles - k), step, k);
        early_size_ += padded(rows * step);
        late_size_ += padded(cols * step);
        for (Index k = in_tiles; k < count; ++k) {
            add_block(edges + k, 0, 1, 0);
            early_size_ += padded(rows);
            late_size_ += padded(cols);
        }
    }

    // Adds a tile of `count` edges, or a single edge if count = 0; `within` is its offset in the
    // strip.
    void add_block(const std::int32_t *edges, Index count, Index step, Index within) {
        const Index e = edges[0], kind = lay_.kind[group_[e]];
        Block b{};
        b.kind = kind, b.group = group_[e], b.orientation = side_[e], b.key = key_[e];
        b.early = lay_.num_labels[early(e)], b.late = lay_.num_labels[late(e)];
        b.count = count, b.step = step;
        b.early_at = early_size_ + within, b.late_at = late_size_ + within;
        b.table_at = plan_.table_size, b.lane = Index(plan_.edge.size());
        plan_.blocks.push_back(b);
        for (Index k = 0; k < std::max<Index>(count, 1); ++k)
            plan_.edge.push_back(edges[k]);
        if (!count)
            return;
        plan_.edge.resize(std::size_t(b.lane + lanes), -1);
        plan_.table_size +=
            Families::visit(kind, [&](auto family) { return family.packed_size(b.early, b.late); });
    }

    // Places the messages into late endpoints after all messages into early endpoints.
    void place_late_messages() {
        for (Block &b : plan_.blocks) {
            b.late_at += early_size_;
            for (Index k = 0; k < std::max<Index>(b.count, 1); ++k) {
                const Index h = 2 * plan_.edge[b.lane + k] + b.orientation;
                half_[h] = {b.early_at + k, b.step};
                half_[h ^ 1] = {b.late_at + k, b.step};
            }
        }
    }

    void place_ends(Block &b) {
        b.early_from = Index(plan_.early_at.size()), b.late_from = Index(plan_.late_at.size());
        b.straight_early = place_end(b, 0, plan_.early_at, plan_.early_step);
        b.straight_late = place_end(b, 1, plan_.late_at, plan_.late_step);
    }

    // Appends first entry and stride of the costs of each lane's early (other = 0) or late (1)
    // endpoint. If they are contiguous across lanes, only the first lane is listed, and the
    // function returns 1.
    Index place_end(const Block &b, Index other, std::vector<Index> &at,
                    std::vector<std::int32_t> &step) {
        const Index width = b.count ? Index(lanes) : 1;
        bool straight = true;
        Place place[lanes];
        for (Index k = 0; k < width; ++k) {
            const Index e = plan_.edge[b.lane + k];
            place[k] = e < 0 ? Place{plan_.cost_size, 0} : node_[other ? late(e) : early(e)];
            straight = straight && place[k].follows(place[0], k);
        }
        for (Index k = 0; k < (straight ? 1 : width); ++k) {
            at.push_back(place[k].at);
            step.push_back(std::int32_t(place[k].step));
        }
        return straight;
    }

    // Divides strips into rows of nodes, and lists the positions of the messages into each row.
    void cut_rows() {
        plan_.row_start.assign(std::size_t(levels_ + 1), 0);
        plan_.pull_start.assign(1, 0);
        for (Index first = 0, last; first < lay_.n; first = last) {
            const Index i = plan_.nodes[first];
            last = first + 1;
            while (last < lay_.n && last - first < lanes && strip_[last] == strip_[first] &&
                   degree(plan_.nodes[last]) == degree(i))
                ++last;
            const Index way = last - first == 1      ? alone
                              : in_line(first, last) ? straight
                                                     : gathered;
            plan_.rows.push_back({first, last - first, lay_.num_labels[i], degree(i),
                                  plan_.node_at[i], plan_.node_step[i], way});
            ++plan_.row_start[level_[i] + 1];
            for (Index k = first; k < last; ++k)
                add_pulls(plan_.nodes[k], !leading_ || way != straight || k == first);
        }
        for (Index l = 0; l < levels_; ++l)
            plan_.row_start[l + 1] += plan_.row_start[l];
    }

    // Whether the p-th messages into the nodes of a row are contiguous, for all p.
    bool in_line(Index first, Index last) const {
        const std::int32_t *lead = lay_.half + lay_.start[plan_.nodes[first]];
        for (Index k = first + 1; k < last; ++k) {
            const std::int32_t *own = lay_.half + lay_.start[plan_.nodes[k]];
            for (Index p = 0; p < degree(plan_.nodes[first]); ++p)
                if (!half_[own[p]].follows(half_[lead[p]], k - first))
                    return false;
        }
        return true;
    }

    void add_pulls(Index i, bool kept) {
        for (Index p = lay_.start[i]; kept && p < lay_.start[i + 1]; ++p) {
            plan_.pull_at.push_back(half_[lay_.half[p]].at);
            plan_.pull_step.push_back(std::int32_t(half_[lay_.half[p]].step));
        }
        plan_.pull_start.push_back(Index(plan_.pull_at.size()));
    }

    // Node i lies on max(#earlier neighbours, #later neighbours) chains, at least one.
    void count_chains() {
        std::vector<std::int32_t> later(std::size_t(lay_.n)), earlier(std::size_t(lay_.n));
        for (Index e = 0; e < lay_.m; ++e)
            ++later[early(e)], ++earlier[late(e)];
        plan_.share.assign(std::size_t(lay_.n + lanes), 0.0);
        plan_.forward_ends.resize(std::size_t(lay_.n));
        plan_.backward_ends.resize(std::size_t(lay_.n));
        const auto chains = [&](Index i) { return std::max({later[i], earlier[i], 1}); };
        for (Index k = 0; k < lay_.n; ++k)
            plan_.share[k] = 1.0 / chains(plan_.nodes[k]);
        for (Index i = 0; i < lay_.n; ++i) {
            plan_.forward_ends[i] = chains(i) - later[i];
            plan_.backward_ends[i] = chains(i) - earlier[i];
        }
    }

    // Lists the blocks by level and band of their senders, in both directions.
    void cut_bands() {
        const Banding banding(plan_.rows, plan_.row_start, plan_.nodes, level_);
        const auto edge = [&](Index b, Index k) { return plan_.edge[plan_.blocks[b].lane + k]; };
        const auto early_of = [&](Index b, Index k) { return early(edge(b, k)); };
        const auto late_of = [&](Index b, Index k) { return late(edge(b, k)); };
        BandedBlocks forward = banding.sorted(plan_.blocks, early_of, late_of);
        plan_.forward_start = std::move(forward.start), plan_.forward = std::move(forward.listed);
        plan_.forward_after = std::move(forward.after);
        BandedBlocks backward = banding.sorted(plan_.blocks, late_of, early_of);
        plan_.backward_start = std::move(backward.start);
        plan_.backward = std::move(backward.listed);
        plan_.backward_after = std::move(backward.after);
        list_by_late_level(banding.bands());
    }

    // Lists the blocks by the level of their late endpoints, in the order in which they are stored.
    // Sorted by the level of their early endpoints, they are in that order already.
    void list_by_late_level(Index bands) {
        std::vector<Index> next(std::size_t(levels_), 0);
        for (Index l = 0; l < levels_; ++l)
            next[l] = plan_.backward_start[l * bands];
        plan_.later.resize(plan_.blocks.size());
        for (std::size_t b = 0; b < plan_.blocks.size(); ++b)
            plan_.later[next[level_[late(plan_.edge[plan_.blocks[b].lane])]]++] = std::int32_t(b);
    }

    const Layout<double> &lay_;
    const Index *level_, *key_;
    const bool leading_;
    std::vector<std::int32_t> group_;
    std::vector<std::uint8_t> side_;  // [m] side of each edge's early endpoint
    std::vector<Place> node_, half_;  // [n] costs of each node, [2m] message into each half-edge
    std::vector<std::int32_t> strip_; // [n] strip of the k-th entry of `plan_.nodes`
    Index levels_ = 0, early_size_ = 0, late_size_ = 0;
    Plan plan_;
};

} // namespace softmap
