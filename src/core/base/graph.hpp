// Loops over the half-edge incidence: colouring, levels of an order.
#pragma once

#include "layout.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace softmap {

// The half-edges of node i are half[start[i]..start[i + 1] - 1]; node[h] is where h belongs.
struct Incidence {
    Index n;
    const std::int32_t *node;
    const Index *start;
    const std::int32_t *half;

    // f(j) for the neighbours j of node i.
    template <class Function> void neighbours(Index i, Function f) const {
        for (Index k = start[i]; k < start[i + 1]; ++k)
            f(Index(node[half[k] ^ 1]));
    }
};

// The half-edges of every node, ascending: they are counted, then put in place.
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

// First-fit colours in node order.
inline void greedy_colouring(const Incidence &graph, std::int32_t *colour) {
    Index widest = 0;
    for (Index i = 0; i < graph.n; ++i)
        widest = std::max(widest, graph.start[i + 1] - graph.start[i]);
    std::vector<Index> taken(widest + 1, -1); // the last node that saw each colour next to it
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

// Depth of each node in the graph directed along `rank`: nodes of one level share no edge.
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

} // namespace softmap
