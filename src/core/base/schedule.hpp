// The order in which a pass visits nodes and edges: levels of independent nodes, blocks of edges.
#pragma once

#include "layout.hpp"

namespace softmap {

// A block of edges between the same two levels. With count > 0 it is a tile: `count` edges (at most
// `lanes`), one per lane, of equal group, orientation, label counts and key. With count = 0 it is a
// single edge, whose message entries are contiguous (step = 1). The *early* endpoint of an edge is
// the one that comes first in the order, the *late* endpoint the other.
struct Block {
    Index kind, group;
    Index orientation; // side (0 or 1) of its edges on which the early endpoint is
    Index early, late; // label counts of the two endpoints
    Index key;         // value that the family's lanes must have in common (Potential.tile_key)
    Index count;
    Index early_at, late_at;             // first entry of the messages into each endpoint
    Index step;                          // stride between the entries of one message
    Index table_at;                      // first entry of the packed tables
    Index lane;                          // first entry in the arrays by lane
    Index straight_early, straight_late; // 1 if the costs of all lanes' endpoints are contiguous
    Index early_from, late_from;         // first entry in early_at and late_at of the schedule
};

// Up to `lanes` consecutive nodes of one strip that have the same degree.
struct Row {
    Index first, nodes; // first index in `Schedule::nodes`, and number of nodes
    Index labels, degree;
    Index place, step; // entry x of the row's k-th node is at place + x · step + k
    Index way;         // how messages into the nodes are read: alone, gathered or straight
};
enum : Index { alone, gathered, straight };

// The arrays of a schedule. softmap.methods.sweeps.planning builds them and documents each one.
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
    const double *weight, *truncation; // by lane; 0 in idle lanes. No truncation array if no edge
                                       // has a truncation
    const S *table;
    Index bands; // of each level: rows and blocks that mostly depend on the same band of the level
                 // before
    const Index *forward_start, *backward_start;    // starts by level and band
    const std::int32_t *forward, *backward, *later; // blocks by level and band, and by late level
    const std::uint64_t *forward_after, *backward_after; // sets of bands to wait for (wave.hpp)
    const std::int32_t *forward_ends; // [n] number of chains whose last node is node i

    // The rows of bands b..end-1 of a level are first_row(level, b)..first_row(level, end)-1.
    Index first_row(Index level, Index band) const {
        const Index begin = row_start[level];
        return begin + (row_start[level + 1] - begin) * band / bands;
    }
};

} // namespace softmap
