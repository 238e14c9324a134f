// Loops over the half-edges of each node: colouring, levels of an order, message slots.
#pragma once

#include "sorting.hpp"
#include "team.hpp"

#include <algorithm>
#include <compare>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace softmap {

// The half-edges of node i are half[start[i]..start[i + 1] - 1]; node[h] is the node of half-edge
// h.
struct Incidence {
    Index n;
    const std::int32_t *node;
    const Index *start;
    const std::int32_t *half;

    // Calls f(j) for each neighbour j of node i.
    template <class Function> void neighbours(Index i, Function f) const {
        for (Index k = start[i]; k < start[i + 1]; ++k)
            f(Index(node[half[k] ^ 1]));
    }
};

// Fills `start` and `half` of an Incidence, half-edges ascending at each node (counting sort).
inline void sort_halves(const std::int32_t *node, Index halves, Index n, Index *start,
                        std::int32_t *half) {
    std::fill_n(start, n + 1, Index(0));
    for (Index h = 0; h < halves; ++h)
        ++start[node[h] + 1];
    std::partial_sum(start, start + n + 1, start);
    std::vector<Index> next(start, start + n);
    for (Index h = 0; h < halves; ++h)
        half[next[node[h]]++] = std::int32_t(h);
}

// The number of columns if the edges (pairs of nodes) join neighbours of a grid whose nodes are
// numbered row by row, else 0.
inline Index grid_width(const std::int32_t *ends, Index edges) {
    const auto step = [&](Index e) { return std::abs(Index(ends[2 * e]) - ends[2 * e + 1]); };
    Index width = 0;
    for (Index e = 0; e < edges; ++e)
        width = std::max(width, step(e));
    if (width < 2)
        return 0;
    for (Index e = 0; e < edges; ++e) {
        const std::int32_t low = std::min(ends[2 * e], ends[2 * e + 1]);
        const bool along = step(e) == 1 && low % width != width - 1;
        if (!along && step(e) != width)
            return 0;
    }
    return width;
}

// First-fit colours in node order.
inline void greedy_colouring(const Incidence &graph, std::int32_t *colour) {
    Index widest = 0;
    for (Index i = 0; i < graph.n; ++i)
        widest = std::max(widest, graph.start[i + 1] - graph.start[i]);
    std::vector<Index> taken(widest + 1, -1); // by colour: the last node with such a neighbour
    std::fill_n(colour, graph.n, -1);
    for (Index i = 0; i < graph.n; ++i) {
        graph.neighbours(i, [&](Index j) {
            if (colour[j] >= 0)
                taken[colour[j]] = i;
        });
        std::int32_t c = 0;
        while (taken[c] == i)
            ++c;
        colour[i] = c;
    }
}

// chosen[k] = whether Kruskal's algorithm, which goes through the pairs (pairs[2k], pairs[2k + 1])
// in the order order[0..count - 1], takes pair k into the spanning forest of n nodes.
inline void spanning_forest(Index n, const Index *pairs, const Index *order, Index count,
                            bool *chosen) {
    std::vector<Index> above(static_cast<std::size_t>(n)); // towards the root of each tree
    std::iota(above.begin(), above.end(), Index(0));
    const auto root = [&](Index i) {
        while (above[i] != i)
            i = above[i] = above[above[i]];
        return i;
    };
    std::fill_n(chosen, count, false);
    for (Index k = 0; k < count; ++k) {
        const Index at = order[k], i = root(pairs[2 * at]), j = root(pairs[2 * at + 1]);
        chosen[at] = i != j;
        above[i] = j;
    }
}

// level[i] = length of the longest path to node i along edges of ascending `rank`. Two nodes of the
// same level share no edge.
inline void depth_levels(const Incidence &graph, const Index *rank, std::int32_t *level) {
    std::vector<Index> order(graph.n);
    std::iota(order.begin(), order.end(), Index(0));
    const auto earlier = [&](Index i, Index j) { return rank[i] < rank[j]; };
    if (!std::is_sorted(order.begin(), order.end(), earlier))
        std::sort(order.begin(), order.end(), earlier);
    std::fill_n(level, graph.n, 0);
    for (const Index i : order)
        graph.neighbours(i, [&](Index j) {
            if (rank[j] < rank[i])
                level[i] = std::max(level[i], level[j] + 1);
        });
}

// number[h] = index of half-edge h among the half-edges of its node; early[i] = how many half-edges
// of node i lead to an earlier node (one of lower `turn`). Half-edges to earlier nodes come first;
// then they are ordered by the level and the index of the other endpoint.
inline void order_halves(const Incidence &graph, const Index *level, const Index *turn,
                         std::int32_t *number, std::int32_t *early, int threads) {
    struct Way {
        bool later;
        Index level, far;
        std::int32_t half;
        auto operator<=>(const Way &) const = default;
    };
    split(threads, graph.n, [&](Index first, Index last) {
        std::vector<Way> ways;
        for (Index i = first; i < last; ++i) {
            ways.clear();
            for (Index k = graph.start[i]; k < graph.start[i + 1]; ++k) {
                const std::int32_t half = graph.half[k];
                const Index far = graph.node[half ^ 1];
                ways.push_back({turn[far] > turn[i], level[far], far, half});
            }
            std::sort(ways.begin(), ways.end());
            early[i] = 0;
            for (std::size_t k = 0; k < ways.size(); ++k) {
                number[ways[k].half] = std::int32_t(k);
                early[i] += !ways[k].later;
            }
        }
    });
}

// slot[h] = index of half-edge h in message arrays that store nodes in tiles of 32, and mate[s] =
// slot of the opposite half-edge of the one in slot s; see softmap.methods.cuda.tiling. `group` and
// `most_early` have one entry per tile.
inline void place_halves(const std::int32_t *node, Index halves, const std::int32_t *number,
                         const std::int32_t *early, const Index *place, const std::int32_t *group,
                         const std::int32_t *most_early, std::uint32_t *slot, std::uint32_t *mate,
                         int threads) {
    const auto slot_of = [&](Index h) {
        const Index i = node[h], tile = place[i] / 32, own = number[h];
        const Index k = own < early[i] ? own : own - early[i] + most_early[tile];
        return std::uint32_t((group[tile] + k) * 32 + place[i] % 32);
    };
    split(threads, halves / 2, [&](Index first, Index last) {
        for (Index e = first; e < last; ++e) {
            slot[2 * e] = slot_of(2 * e);
            slot[2 * e + 1] = slot_of(2 * e + 1);
            mate[slot[2 * e]] = slot[2 * e + 1];
            mate[slot[2 * e + 1]] = slot[2 * e];
        }
    });
}

// order = the items 0..count-1 sorted by their keys, ascending (stable).
inline void order_by(const Index *key, Index count, std::int32_t *order) {
    std::vector<Keyed> items(static_cast<std::size_t>(count));
    for (Index k = 0; k < count; ++k)
        items[std::size_t(k)] = {std::uint64_t(key[k]), std::int32_t(k), 0};
    sort_stably(items);
    for (Index k = 0; k < count; ++k)
        order[k] = items[std::size_t(k)].item;
}

} // namespace softmap
