// Divides an order of the nodes into levels, strips and blocks. softmap.methods.sweeps.planning
// defines these terms and documents the arrays of a plan.
#pragma once

#include "bands.hpp"
#include "base/deadline.hpp"
#include "base/sorting.hpp"

#include <algorithm>
#include <numeric>
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
    std::vector<Index> row_start, pull_at, early_at, late_at, forward_start, backward_start;
    std::vector<Bands> forward_after, backward_after;
    std::vector<Row> rows;
    std::vector<Block> blocks;
    std::vector<std::int32_t> nodes, chains, edge, pull_step, early_step, late_step, forward,
        backward, later;
    Index cost_size = 0, table_size = 0;
};

// Builds a Plan from the graph and the label counts of a model, on several threads. Lists are made
// piece by piece and joined in order, so that a plan does not depend on the number of threads.
class Planner {
  public:
    // `rank` [n] is the position of each node in the order, `level` [n] its level. Edges may share
    // a tile only if their `key` [m] is equal (-1: never). If `leading`, straight rows list the
    // messages into their first node only.
    Planner(const Layout &lay, const Index *rank, const Index *level, const Index *key,
            bool leading, int threads, const Deadline *deadline = nullptr)
        : lay_(lay), level_(level), key_(key), leading_(leading), threads_(threads),
          deadline_(deadline), side_(std::size_t(lay.m)), block_(std::size_t(lay.m)),
          lane_(std::size_t(lay.m)) {
        split(threads, lay.m, [&](Index first, Index last) {
            for (Index e = first; e < last; ++e)
                side_[e] = rank[lay.node[2 * e]] > rank[lay.node[2 * e + 1]];
        });
        for (Index i = 0; i < lay.n; ++i)
            levels_ = std::max(levels_, level[i] + 1);
    }

    // Throws OutOfTime if the deadline passes first.
    Plan run() {
        for (const auto step : {&Planner::place_nodes, &Planner::place_edges, &Planner::place_ends,
                                &Planner::cut_rows, &Planner::count_chains, &Planner::cut_bands}) {
            require_time(deadline_);
            (this->*step)();
        }
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
    Place costs_of(Index i) const { return {node_at_[i], node_step_[i]}; }
    // The place of the message into half-edge h.
    Place message_at(Index h) const {
        const Block &b = plan_.blocks[block_[h >> 1]];
        return {((h & 1) == b.orientation ? b.early_at : b.late_at) + lane_[h >> 1], b.step};
    }

    // Calls make(piece, first, last) for ranges of 0..count-1; returns the pieces in order. Each
    // range begins at an item for which opens(item).
    template <class Piece, class Make, class Opens>
    std::vector<Piece> pieces(Index count, Make make, Opens opens) const {
        const Index most = threads_ == 1 || count < worthwhile ? 1 : 4 * threads_;
        std::vector<Index> cut{0};
        for (Index k = 1; k <= most; ++k) {
            Index at = std::max(count * k / most, cut.back());
            while (at < count && !opens(at))
                ++at;
            cut.push_back(at);
        }
        std::vector<Piece> out(static_cast<std::size_t>(most));
        each(most, [&](Index k) { make(out[std::size_t(k)], cut[k], cut[k + 1]); });
        return out;
    }
    // Calls work(k) for k < count, on all threads.
    template <class Work> void each(Index count, Work work) const {
        together(count > 1 ? threads_ : 1, [&](Member &me) { me.each(0, count, work); });
    }
    // The position of each piece's first item if those of `list(piece)` are joined, and their
    // number.
    template <class Piece, class List>
    static std::vector<Index> starts(const std::vector<Piece> &all, List list) {
        std::vector<Index> out{0};
        for (const Piece &one : all)
            out.push_back(out.back() + Index(list(one).size()));
        return out;
    }
    // Copies a list to its place in a longer one, and frees it.
    template <class T> static void move_into(std::vector<T> &from, std::vector<T> &to, Index at) {
        std::copy(from.begin(), from.end(), to.begin() + at);
        from = {};
    }

    // Assigns nodes to strips. Within a strip, nodes of lower degree come last, so that the other
    // nodes line up with the strips of their edges.
    void place_nodes() {
        JoinedKeys keys(lay_.n, threads_);
        keys.add([&](Index i) { return level_[i]; });
        keys.add([&](Index i) { return lay_.num_labels[i]; });
        keys.add([&](Index i) { return -degree(i); });
        std::vector<Keyed> order(std::size_t(lay_.n));
        plan_.nodes.resize(std::size_t(lay_.n));
        node_at_.resize(std::size_t(lay_.n));
        node_step_.resize(std::size_t(lay_.n));
        split(threads_, lay_.n, [&](Index first, Index last) {
            for (Index i = first; i < last; ++i)
                order[i] = {keys[i], std::int32_t(i), 0};
        });
        sort_stably(order, threads_);
        split(threads_, lay_.n, [&](Index first, Index last) {
            for (Index k = first; k < last; ++k)
                plan_.nodes[k] = order[k].item;
        });
        std::vector<Index> begin; // first entries of the strips' costs
        for (Index first = 0, last; first < lay_.n; first = last) {
            const Index i = plan_.nodes[first];
            last = first + 1;
            while (last < lay_.n && last - first < longest_strip && alike(plan_.nodes[last], i))
                ++last;
            strips_.push_back(std::int32_t(first));
            begin.push_back(plan_.cost_size);
            plan_.cost_size += strip_step(last - first) * lay_.num_labels[i];
        }
        strips_.push_back(std::int32_t(lay_.n));
        split_portions(threads_, Index(begin.size()), lay_.n, [&](Part part) {
            const Index s = part.index, step = strip_step(strips_[s + 1] - strips_[s]);
            for (Index k = strips_[s]; k < strips_[s + 1]; ++k) {
                node_at_[plan_.nodes[k]] = begin[s] + k - strips_[s];
                node_step_[plan_.nodes[k]] = std::int32_t(step);
            }
        });
    }
    // The stride between the labels of a strip of `count` nodes.
    static Index strip_step(Index count) { return count > 1 ? padded(count) : 1; }
    bool alike(Index i, Index j) const {
        return level_[i] == level_[j] && lay_.num_labels[i] == lay_.num_labels[j];
    }

    // Sort keys of edges; edges may share a strip if their keys are equal.
    JoinedKeys keys_of_edges() const {
        JoinedKeys keys(lay_.m, threads_);
        keys.add([&](Index e) { return level_[early(e)]; });
        keys.add([&](Index e) { return level_[late(e)]; });
        keys.add([&](Index e) { return lay_.group_of(e); });
        keys.add([&](Index e) { return side_[e]; });
        keys.add([&](Index e) { return lay_.num_labels[early(e)]; });
        keys.add([&](Index e) { return lay_.num_labels[late(e)]; });
        keys.add([&](Index e) { return key_[e]; });
        return keys;
    }

    // Edges sorted by `keys_of_edges`, then by the position of their early endpoints in strips.
    std::vector<Keyed> lined_up() const {
        std::vector<Keyed> order(std::size_t(lay_.m));
        {
            const JoinedKeys keys = keys_of_edges();
            constexpr Index portions = 256;
            Index begin[portions + 1] = {}; // edges from the nodes before each portion
            const auto visit = [&](Part part, auto take) {
                part.each(0, lay_.n, [&](Index k) {
                    each_onwards(plan_.nodes[k], [&](std::int32_t e) { take(e, k); });
                });
            };
            split_portions(threads_, portions, lay_.n, [&](Part part) {
                visit(part, [&](std::int32_t, Index) { ++begin[part.index + 1]; });
            });
            std::partial_sum(begin, begin + portions + 1, begin);
            split_portions(threads_, portions, lay_.n, [&](Part part) {
                Index at = begin[part.index];
                visit(part, [&](std::int32_t e, Index k) {
                    order[at++] = {keys[e], e, std::int32_t(k)};
                });
            });
        }
        require_time(deadline_);
        sort_stably(order, threads_);
        return order;
    }
    // Calls take(e) for the edges e whose early endpoint is node i.
    template <class Take> void each_onwards(Index i, Take take) const {
        for (Index p = lay_.start[i]; p < lay_.start[i + 1]; ++p)
            if (const std::int32_t e = lay_.half[p] >> 1; (lay_.half[p] & 1) == side_[e])
                take(e);
    }

    // Blocks, and the edges of their lanes. Places count from 0 in each piece.
    struct Placed {
        std::vector<Block> blocks;
        std::vector<std::int32_t> edge;
        Index early_size = 0, late_size = 0, table_size = 0;
    };

    void place_edges() {
        std::vector<Keyed> order = lined_up();
        require_time(deadline_);
        std::vector<Placed> all = pieces<Placed>(
            lay_.m,
            [&](Placed &piece, Index first, Index last) {
                place_some(order.data() + first, order.data() + last, piece);
            },
            [&](Index k) { return k == 0 || order[k].key != order[k - 1].key; });
        order = {};
        require_time(deadline_);
        const auto blocks = starts(all, [](const Placed &p) -> auto & { return p.blocks; });
        const auto edges = starts(all, [](const Placed &p) -> auto & { return p.edge; });
        Placed sum;
        std::vector<Placed> before(all.size()); // sizes of all pieces before each one
        for (std::size_t k = 0; k < all.size(); ++k) {
            before[k].early_size = sum.early_size, before[k].late_size = sum.late_size;
            before[k].table_size = sum.table_size;
            sum.early_size += all[k].early_size, sum.late_size += all[k].late_size;
            sum.table_size += all[k].table_size;
        }
        plan_.table_size = sum.table_size;
        plan_.blocks.resize(std::size_t(blocks.back()));
        plan_.edge.resize(std::size_t(edges.back()));
        each(Index(all.size()), [&](Index k) {
            for (Block &b : all[k].blocks) {
                b.early_at += before[k].early_size;
                b.late_at += before[k].late_size + sum.early_size; // after all early messages
                b.table_at += before[k].table_size;
                b.lane += std::uint32_t(edges[k]);
            }
            const Index count = Index(all[k].blocks.size());
            move_into(all[k].blocks, plan_.blocks, blocks[k]);
            move_into(all[k].edge, plan_.edge, edges[k]);
            for (Index b = blocks[k]; b < blocks[k] + count; ++b)
                find_lanes(b);
        });
    }

    // Records the block and the lane of the edges of block b.
    void find_lanes(Index b) {
        const Block &block = plan_.blocks[b];
        for (Index k = 0; k < std::max<Index>(block.count, 1); ++k) {
            const Index e = plan_.edge[block.lane + k];
            block_[e] = std::int32_t(b), lane_[e] = std::uint8_t(k);
        }
    }

    // Places edges that are sorted by their keys.
    void place_some(const Keyed *first, const Keyed *end, Placed &piece) const {
        std::vector<std::int32_t> edges;
        std::vector<Keyed> turns;
        for (const Keyed *last; first < end; first = last) {
            for (last = first; last < end && last->key == first->key;)
                ++last;
            by_turns(first, last, turns, edges);
            for (Index k = 0; k < Index(edges.size()); k += longest_strip)
                place_strip(edges.data() + k, std::min(longest_strip, Index(edges.size()) - k),
                            piece);
        }
    }

    // Reorders edges of equal keys: the first edges of all early endpoints, then the second edges,
    // and so on. Neighbouring edges of a strip then have neighbouring early endpoints.
    static void by_turns(const Keyed *first, const Keyed *last, std::vector<Keyed> &turns,
                         std::vector<std::int32_t> &edges) {
        turns.clear();
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
    void place_strip(const std::int32_t *edges, Index count, Placed &piece) const {
        const Index e = edges[0], rows = lay_.num_labels[early(e)], cols = lay_.num_labels[late(e)];
        const Index rest = count % lanes;
        const Index in_tiles = key_[e] < 0 ? 0 : rest >= filled(rows * cols) ? count : count - rest;
        const Index step = padded(in_tiles);
        for (Index k = 0; k < in_tiles; k += lanes)
            add_block(edges + k, std::min<Index>(lanes, in_tiles - k), step, k, piece);
        piece.early_size += padded(rows * step);
        piece.late_size += padded(cols * step);
        for (Index k = in_tiles; k < count; ++k) {
            add_block(edges + k, 0, 1, 0, piece);
            piece.early_size += padded(rows);
            piece.late_size += padded(cols);
        }
    }

    // Adds a tile of `count` edges, or a single edge if count = 0; `within` is its offset in the
    // strip.
    void add_block(const std::int32_t *edges, Index count, Index step, Index within,
                   Placed &piece) const {
        const Index e = edges[0], group = lay_.group_of(e), kind = lay_.kind[group];
        Block b{};
        b.kind = std::uint8_t(kind), b.group = std::int32_t(group), b.orientation = side_[e];
        b.reach = std::int32_t(std::clamp<Index>(key_[e], -1, INT32_MAX));
        b.early = std::int32_t(lay_.num_labels[early(e)]);
        b.late = std::int32_t(lay_.num_labels[late(e)]);
        b.count = std::uint8_t(count), b.step = std::int32_t(step);
        b.early_at = piece.early_size + within, b.late_at = piece.late_size + within;
        b.table_at = piece.table_size, b.lane = std::uint32_t(piece.edge.size());
        piece.blocks.push_back(b);
        piece.edge.insert(piece.edge.end(), edges, edges + std::max<Index>(count, 1));
        if (!count)
            return;
        piece.edge.resize(std::size_t(b.lane + lanes), -1);
        piece.table_size +=
            Families::visit(kind, [&](auto family) { return family.packed_size(b.early, b.late); });
    }

    // First entries and strides of the costs of the endpoints of some blocks.
    struct Ends {
        std::vector<Index> at;
        std::vector<std::int32_t> step;
    };
    struct BothEnds {
        Ends early, late;
    };

    void place_ends() {
        const Index count = Index(plan_.blocks.size());
        const auto place = [&](BothEnds &piece, Index first, Index last) {
            for (Index k = first; k < last; ++k) {
                Block &b = plan_.blocks[k];
                b.early_from = std::uint32_t(piece.early.at.size());
                b.late_from = std::uint32_t(piece.late.at.size());
                b.straight_early = place_end(b, 0, piece.early);
                b.straight_late = place_end(b, 1, piece.late);
            }
        };
        std::vector<BothEnds> all = pieces<BothEnds>(count, place, [](Index) { return true; });
        const auto early = starts(all, [](const BothEnds &p) -> auto & { return p.early.at; });
        const auto late = starts(all, [](const BothEnds &p) -> auto & { return p.late.at; });
        plan_.early_at.resize(std::size_t(early.back()));
        plan_.early_step.resize(std::size_t(early.back()));
        plan_.late_at.resize(std::size_t(late.back()));
        plan_.late_step.resize(std::size_t(late.back()));
        const Index parts = Index(all.size());
        each(parts, [&](Index k) {
            for (Index b = count * k / parts; b < count * (k + 1) / parts; ++b) {
                plan_.blocks[b].early_from += std::uint32_t(early[k]);
                plan_.blocks[b].late_from += std::uint32_t(late[k]);
            }
            move_into(all[k].early.at, plan_.early_at, early[k]);
            move_into(all[k].early.step, plan_.early_step, early[k]);
            move_into(all[k].late.at, plan_.late_at, late[k]);
            move_into(all[k].late.step, plan_.late_step, late[k]);
        });
    }

    // Appends first entry and stride of the costs of each lane's early (other = 0) or late (1)
    // endpoint. If they are contiguous across lanes, only the first lane is listed, and the
    // function returns true.
    bool place_end(const Block &b, Index other, Ends &ends) const {
        bool straight = true;
        Place place[lanes];
        for (Index k = 0; k < b.width(); ++k) {
            const Index e = plan_.edge[b.lane + k];
            place[k] = e < 0 ? Place{plan_.cost_size, 0} : costs_of(other ? late(e) : early(e));
            straight = straight && place[k].follows(place[0], k);
        }
        for (Index k = 0; k < (straight ? 1 : b.width()); ++k) {
            ends.at.push_back(place[k].at);
            ends.step.push_back(std::int32_t(place[k].step));
        }
        return straight;
    }

    // Rows, and the places of the messages into their nodes.
    struct Rows {
        std::vector<Row> rows;
        std::vector<Index> at;
        std::vector<std::int32_t> step;
    };

    // Divides strips into rows of nodes, and lists the positions of the messages into each row.
    void cut_rows() {
        const auto opens = [&](Index k) {
            return std::binary_search(strips_.begin(), strips_.end(), std::int32_t(k));
        };
        std::vector<Rows> all = pieces<Rows>(
            lay_.n, [&](Rows &piece, Index first, Index last) { cut_some(piece, first, last); },
            opens);
        const auto rows = starts(all, [](const Rows &p) -> auto & { return p.rows; });
        const auto pulls = starts(all, [](const Rows &p) -> auto & { return p.at; });
        plan_.rows.resize(std::size_t(rows.back()));
        plan_.pull_at.resize(std::size_t(pulls.back()));
        plan_.pull_step.resize(std::size_t(pulls.back()));
        each(Index(all.size()), [&](Index k) {
            for (Row &row : all[k].rows)
                row.pulls += pulls[k];
            move_into(all[k].rows, plan_.rows, rows[k]);
            move_into(all[k].at, plan_.pull_at, pulls[k]);
            move_into(all[k].step, plan_.pull_step, pulls[k]);
        });
        plan_.row_start.assign(std::size_t(levels_ + 1), 0);
        for (const Row &row : plan_.rows)
            ++plan_.row_start[level_[plan_.nodes[row.first]] + 1];
        for (Index l = 0; l < levels_; ++l)
            plan_.row_start[l + 1] += plan_.row_start[l];
    }

    // Cuts the strips of entries first..end-1 of `plan_.nodes`.
    void cut_some(Rows &piece, Index first, Index end) const {
        auto strip = std::upper_bound(strips_.begin(), strips_.end(), std::int32_t(first));
        for (Index last; first < end; first = last) {
            const Index i = plan_.nodes[first];
            if (first == *strip)
                ++strip;
            const Index most = std::min<Index>(first + lanes, *strip);
            for (last = first + 1; last < most && degree(plan_.nodes[last]) == degree(i);)
                ++last;
            const std::int32_t way = last - first == 1      ? alone
                                     : in_line(first, last) ? straight
                                                            : gathered;
            piece.rows.push_back({node_at_[i], Index(piece.at.size()), std::int32_t(first),
                                  std::int32_t(last - first), std::int32_t(lay_.num_labels[i]),
                                  std::int32_t(degree(i)), node_step_[i], way});
            for (Index k = first; k < (leading_ && way == straight ? first + 1 : last); ++k)
                add_pulls(plan_.nodes[k], piece);
        }
    }

    // Whether the p-th messages into the nodes of a row are contiguous, for all p.
    bool in_line(Index first, Index last) const {
        const std::int32_t *lead = lay_.half + lay_.start[plan_.nodes[first]];
        for (Index p = 0; p < degree(plan_.nodes[first]); ++p) {
            const Place begin = message_at(lead[p]);
            for (Index k = first + 1; k < last; ++k)
                if (!message_at(lay_.half[lay_.start[plan_.nodes[k]] + p])
                         .follows(begin, k - first))
                    return false;
        }
        return true;
    }

    void add_pulls(Index i, Rows &piece) const {
        for (Index p = lay_.start[i]; p < lay_.start[i + 1]; ++p) {
            const Place place = message_at(lay_.half[p]);
            piece.at.push_back(place.at);
            piece.step.push_back(std::int32_t(place.step));
        }
    }

    // Node i lies on max(#earlier neighbours, #later neighbours) chains, at least one; negated if
    // there are more earlier neighbours.
    void count_chains() {
        plan_.chains.assign(std::size_t(lay_.n + lanes), 1);
        split(threads_, lay_.n, [&](Index first, Index last) {
            for (Index k = first; k < last; ++k) {
                const Index i = plan_.nodes[k];
                std::int32_t later = 0;
                each_onwards(i, [&](std::int32_t) { ++later; });
                const std::int32_t earlier = std::int32_t(degree(i)) - later;
                plan_.chains[k] = earlier > later ? -earlier : std::max(later, 1);
            }
        });
    }

    // Lists the blocks by level and band of their senders, in both directions.
    void cut_bands() {
        const Banding banding(plan_.rows, plan_.row_start, plan_.nodes, level_, threads_);
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

    const Layout &lay_;
    const Index *level_, *key_;
    const bool leading_;
    const int threads_;
    const Deadline *deadline_;
    std::vector<std::uint8_t> side_;      // [m] side of each edge's early endpoint
    std::vector<std::int32_t> block_;     // [m] block of each edge
    std::vector<std::uint8_t> lane_;      // [m] its lane there
    std::vector<std::int32_t> strips_;    // first entries of the strips in `plan_.nodes`
    std::vector<Index> node_at_;          // [n] first entry of each node's costs by strip
    std::vector<std::int32_t> node_step_; // [n] their stride
    Index levels_ = 0;
    Plan plan_;
};

} // namespace softmap
