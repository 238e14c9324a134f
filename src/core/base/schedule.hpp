// An order of the nodes, cut into levels of independent nodes and blocks of like messages.
#pragma once

#include "layout.hpp"

namespace softmap {

// Edges between the same two levels. With count > 0 it is a tile: `count` edges (at most `lanes`)
// that are alike in group, orientation, label counts and key, one per lane. With count = 0 it is a
// single edge, whose labels lie side by side (step = 1).
struct Block {
    Index kind, group;
    Index orientation; // which side of its edges the earlier end is
    Index early, late; // label counts of the two ends
    Index key;         // what the family asks its lanes to share (see Potential.tile_key)
    Index count;
    Index early_at, late_at;             // where the messages into the early and the late end begin
    Index step;                          // distance of a message's entries
    Index table_at;                      // where packed tables begin
    Index lane;                          // first entry in the lane arrays
    Index straight_early, straight_late; // whether all lanes of an end lie side by side
    Index early_from, late_from;         // first entry in the arrays of ends
};

// Up to `lanes` nodes of one strip and one degree.
struct Row {
    Index first, nodes; // in `Schedule::nodes`
    Index labels, degree;
    Index place, step; // entry x of the k-th of them lies at place + x · step + k
    Index way;         // how their messages are collected: one of the three below
};
enum : Index { alone, gathered, straight };

// See softmap.methods.sweeps.schedule, which builds it; arrays are documented there.
template <class S> struct Schedule {
    Index levels, num_blocks, num_rows, num_lanes, num_costs;
    const Index *row_start;
    const Row *rows;
    const Index *nodes, *node_at, *node_step;
    const double *unary, *share;
    const Index *pull_start, *pull_at;
    const std::int32_t *pull_step;
    const Block *blocks;
    const Index *edge;
    const Index *early_at;
    const std::int32_t *early_step;
    const Index *late_at;
    const std::int32_t *late_step;
    const double *weight, *truncation; // by lane; 0 in lanes without an edge, or no array at all
    const S *table;
    const Index *forward_start, *forward, *backward_start, *backward;
    const std::int32_t *forward_ends; // [n] chains that end at each node, gone through forward
};

} // namespace softmap
