// The order in which a pass visits nodes and edges: levels of independent nodes, blocks of edges.
#pragma once

#include "layout.hpp"

namespace softmap {

// A block of edges between the same two levels. With count > 0 it is a tile: `count` edges (at most
// `lanes`), one per lane, of equal group, orientation, label counts and key. With count = 0 it is a
// single edge, whose message entries are contiguous (step = 1). The *early* endpoint of an edge is
// the one that comes first in the order, the *late* endpoint the other.
// A block fills one cache line.
struct Block {
    Index early_at, late_at;             // first entry of the messages into each endpoint
    Index table_at;                      // first entry of the packed tables
    std::uint32_t lane;                  // first entry in the arrays by lane
    std::uint32_t early_from, late_from; // first entry in early_at and late_at of the schedule
    std::int32_t step;                   // stride between the entries of one message
    std::int32_t early, late;            // label counts of the two endpoints
    std::int32_t group;
    std::int32_t reach; // key of its lanes (Potential.tile_key), at most 2³¹ - 1
    std::uint8_t kind, count;
    std::uint8_t orientation;           // side of its edges on which the early endpoint is
    bool straight_early, straight_late; // whether the costs of all lanes' endpoints are contiguous

    Index width() const { return count ? Index(lanes) : 1; } // lanes, with or without an edge
};
static_assert(sizeof(Block) == 64);

// Up to `lanes` consecutive nodes of one strip that have the same degree.
struct Row {
    Index place;               // entry x of the row's k-th node is at place + x · step + k
    Index pulls;               // first entry in pull_at; `degree` entries per node
    std::int32_t first, nodes; // first index in `Schedule::nodes`, and number of nodes
    std::int32_t labels, degree, step;
    std::int32_t way; // how messages into the nodes are read: alone, gathered or straight
};
static_assert(sizeof(Row) == 40);
enum : std::int32_t { alone, gathered, straight };

// The arrays of a schedule. softmap.methods.sweeps.planning builds them and documents each one.
struct Schedule {
    Index levels, num_blocks, num_rows, num_lanes, num_costs;
    Index widest_tile, widest_single; // most labels of a tile's and of a single edge's endpoints
    const Index *row_start;
    const Row *rows;
    const std::int32_t *nodes;
    const std::int32_t *chains; // [n + lanes] number of chains through the k-th of `nodes`, negated
                                // if more edges lead backward from it than forward
    const double *unary;
    const Index *pull_at;
    const std::int32_t *pull_step;
    const Block *blocks;
    const std::int32_t *edge;
    const Index *early_at;
    const std::int32_t *early_step;
    const Index *late_at;
    const std::int32_t *late_step;
    const double *weight, *truncation; // by lane, 0 in idle lanes; only those of one tile if all
                                       // edges have the same (one_weight, one_truncation). No
                                       // truncation array if no edge has a truncation
    bool one_weight, one_truncation;
    const double *table;
    Index bands; // of each level: rows and blocks that mostly depend on the same band of the level
                 // before
    const Index *forward_start, *backward_start;    // starts by level and band
    const std::int32_t *forward, *backward, *later; // blocks by level and band, and by late level
    const std::uint64_t *forward_after, *backward_after; // sets of bands to wait for (wave.hpp)

    Index chains_at(Index k) const { return chains[k] < 0 ? -chains[k] : chains[k]; }
    // The number of edges that lead forward from the k-th of `nodes`, in a schedule of chains.
    Index onwards_at(Index k, Index degree) const {
        return chains[k] < 0 ? degree + chains[k] : chains[k] < degree ? chains[k] : degree;
    }
    // The parameters of the lanes of a tile.
    const double *weights_of(const Block &b) const { return weight + (one_weight ? 0 : b.lane); }
    const double *truncations_of(const Block &b) const {
        return truncation + (one_truncation ? 0 : b.lane);
    }
    // The rows of bands b..end-1 of a level are first_row(level, b)..first_row(level, end)-1.
    Index first_row(Index level, Index band) const {
        const Index begin = row_start[level];
        return begin + (row_start[level + 1] - begin) * band / bands;
    }
};

} // namespace softmap
