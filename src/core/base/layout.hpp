// The flat arrays of a model that every kernel reads.
#pragma once

#include "lanes.hpp"

#include <cstdint>

namespace softmap {

using Index = std::int64_t;

// The label counts of nodes, and the first entries of the nodes in arrays over node states. Neither
// is stored (`each` is null) if all nodes have the same number of labels.
struct LabelCounts {
    const Index *each;
    Index same;
    Index operator[](Index i) const { return each ? each[i] : same; }
};
struct NodeOffsets {
    const Index *each;
    Index same;
    Index operator[](Index i) const { return each ? each[i] : i * same; }
};

// Nodes, half-edges (h = 2e + side) and edge costs.
//
// Edge e of group g reads weight[weight_at[g] + k · weight_step[g]], its truncation and its table
// (or map) from table_at[g] + (offset[offset_at[g] + k] or stride[g] · k), where
// k = e - group_start[g]. A step of 0 says that all edges of the group have the same, a negative
// ..._at that the group has none. States whose unary cost is +inf are forbidden.
struct Layout {
    Index n, m, groups, widest; // nodes, edges, groups of edges, most labels of a node
    const std::int32_t *node;   // [2m] node of each half-edge
    LabelCounts num_labels;     // [n]
    NodeOffsets node_offset;    // [n + 1]
    const Index *half_offset;   // [2m + 1] first entry of each half-edge in λ-like arrays;
                                // null if all nodes have `widest` labels
    const double *unary;        // [Σ labels] node costs C_i(x)
    const Index *start;         // [n + 1] half-edges of node i: half[start[i]..start[i + 1] - 1]
    const std::int32_t *half;   // [2m]
    const Index *group_start;   // [groups + 1]
    const Index *kind;          // [groups] index in `Families` (families/all.hpp)
    const double *weight;
    const Index *weight_at, *weight_step;
    const double *truncation;
    const Index *truncation_at, *truncation_step;
    const Index *offset;
    const Index *offset_at;
    const Index *stride;
    const double *table;
    const std::int32_t *maps;
    const Index *table_at;

    // The group of edge e. A linear scan, because models have few groups.
    Index group_of(Index e) const {
        Index g = 0;
        while (group_start[g + 1] <= e)
            ++g;
        return g;
    }
    // First entry of half-edge h in λ-like arrays; h = 2m gives their length.
    Index half_at(Index h) const { return half_offset ? half_offset[h] : h * widest; }
    Index labels_at(Index h) const { return num_labels[node[h]]; }
    // About the work of a visit of node i and its edges, in table entries.
    Index work_at(Index i) const { return num_labels[i] * (start[i + 1] - start[i] + 1); }
    double weight_of(Index g, Index e) const {
        return weight_at[g] < 0 ? 1.0
                                : weight[weight_at[g] + (e - group_start[g]) * weight_step[g]];
    }
    double truncation_of(Index g, Index e) const {
        if (truncation_at[g] < 0)
            return 0.0;
        return truncation[truncation_at[g] + (e - group_start[g]) * truncation_step[g]];
    }
    // First entry of the table or map of edge e.
    Index begin_of(Index g, Index e) const {
        const Index k = e - group_start[g];
        return table_at[g] + (offset_at[g] < 0 ? stride[g] * k : offset[offset_at[g] + k]);
    }
    bool forbidden(Index i, Index x) const { return unary[node_offset[i] + x] == infinity; }
};

} // namespace softmap
