// The memory layout of a model for the GPU kernels.
//
// Nodes are stored in tiles of 32, one node per thread of a warp. The nodes of a tile have the same
// level, the same label count, and the same numbers of edges to earlier and to later levels. The
// j-th half-edges of a tile's nodes form a group of 32 slots: slot q = 32 · group + lane. Messages
// into a node are stored at the slots of its half-edges, so that reads are coalesced; `mate` is the
// slot of the opposite half-edge. See softmap.methods.cuda.tiling.
#pragma once

#include "base/layout.hpp"

#include <type_traits>

namespace softmap {
namespace device {

inline constexpr int tile_size = 32;

struct Tile {
    long long unary, message; // first entry of its node costs and of its messages
    int group;                // first group of slots
    int labels, width;        // label count of its nodes, and entries per message with padding
    int early, late;          // half-edges per node to earlier (listed first) and later levels
    int used;                 // number of lanes that hold a node
    double share;             // 1 / n_i, n_i being the number of chains through a node
};

// The properties of a model that kernels are compiled for. softmap.methods.cuda.shapes writes them
// with the same names.
struct Facts {
    bool doubles = false; // whether messages are stored in double precision
    int kind = -1;        // family of all edges if all nodes have the same label count, else -1
    int labels = 0;       // label count of every node (kind >= 0), or the largest one
    int reach = 0;        // reach of truncated costs if all edges have the same, else 0
    int early = 0;        // upper bounds on a node's half-edges to earlier and to later levels;
    int late = 0;         // kernels then use one thread per edge. 0, 0: no bound
    bool spread = false;  // entry x of all slots of a group is contiguous; else the entries of each
                          // slot are, which suits graphs with irregular edges
    bool plain = false;   // messages of every edge have the closed form of their family
    bool exact = false;   // tables do not change when rounded to the precision of passes
    bool ragged = false;  // nodes of a tile may have different degrees; the tile has slots for the
                          // largest number of half-edges in each direction
    bool linked = false;  // messages and tables are stored by edge: see links.hpp
};

template <Facts F> struct Shape {
    using S = std::conditional_t<F.doubles, double, float>;
    static constexpr int Kind = F.kind, N = F.labels, Reach = F.reach;
    static constexpr int Early = F.early, Late = F.late;
    static constexpr bool Spread = F.spread, Plain = F.plain, Exact = F.exact;
    static constexpr bool Ragged = F.ragged, Linked = F.linked;
    static constexpr bool uniform = Kind >= 0, bounded = Early + Late > 0;
    static constexpr int padded = Spread || Linked || N % 4 == 0 || N < 3 ? N : N + 4 - N % 4;
};

// Kinds: the indices of the families in families/all.hpp, and tables that many edges share.
enum : int { tables, potts, linear, quadratic, projection, shared_tables };

// Pointers to the arrays of a model, passed to every kernel by value. ARENA in
// softmap.methods.cuda.arena has the same members.
template <class S> struct Arena {
    const Tile *tiles;
    const double *unary;              // node costs, by tile
    const S *unary_single;            // node costs rounded to the precision of passes
    const unsigned *mate;             // by slot: slot of the opposite half-edge
    const int *group_tile;            // by group of slots: its tile
    const double *weight, *cut;       // by slot: weight and truncation of the edge
    const S *arranged;                // tables as the owner of each slot reads them (see `arrange`)
    const double *arranged_exact;     // the same tables, not rounded; unused if `Facts::exact`
    const unsigned char *kind, *side; // by slot: family, and side of the edge (0 or 1)
    const int *reach;                 // by slot: reach of truncated costs
    const long long *place;           // by slot: first entry of the table or map
    const double *table;
    const int *maps;
    const unsigned *halves; // ragged tiles, by node place: early + 65536 · late half-edges
    const unsigned *where;  // linked shapes, by slot: index of the message into its node
    int edges; // linked shapes: message k goes to the later endpoint of edge k, message edges + k
               // to its earlier endpoint
};

// Position of the entries of one message: entry x is at `at + x * step`.
struct Place {
    long long at;
    int step;
};

// The node that a thread works on.
template <class H> struct Node {
    int tile_number, lane;
    Tile tile;
    int early, late; // half-edges of this node to earlier and to later levels
    double share;    // 1 / n_i
    const unsigned *where;

    // Finds the node of this thread among tiles first .. first + count - 1; false if there is none.
    template <class S> bool find(const Arena<S> &arena, int first, int count) {
        const long long number = thread_number(), which = number / tile_size;
        return which < count && take(arena, first + int(which), int(number % tile_size));
    }
    template <class S> bool take(const Arena<S> &arena, int which, int in_tile) {
        tile_number = which;
        lane = in_tile;
        tile = arena.tiles[tile_number];
        early = tile.early;
        late = tile.late;
        share = tile.share;
        where = arena.where;
        if constexpr (H::Ragged) {
            const unsigned both = arena.halves[place()];
            early = int(both % 65536u);
            late = int(both / 65536u);
            const int chains = early > late ? early : late;
            share = 1.0 / double(chains > 1 ? chains : 1);
        }
        return lane < tile.used;
    }

    int labels() const { return H::uniform ? H::N : tile.labels; }
    long long place() const { return (long long)tile_number * tile_size + lane; }
    // Index of half-edge j's group within the tile; half-edges to earlier levels come first.
    int in_tile(int j) const { return H::Ragged && j >= early ? j - early + tile.early : j; }
    unsigned slot(int j) const { return unsigned(tile.group + in_tile(j)) * tile_size + lane; }
    // Number of chains whose first node is this one.
    double ends() const {
        const int chains = early > late ? early : late;
        return double((chains > 1 ? chains : 1) - early);
    }
    long long cost(int x) const { return tile.unary + (long long)x * tile_size + lane; }

    Place message(int j) const {
        if constexpr (H::Linked)
            return {(long long)where[slot(j)] * width(), 1};
        const long long begin = tile.message + (long long)in_tile(j) * tile_size * width();
        return H::Spread ? Place{begin + lane, tile_size} : Place{begin + lane * width(), 1};
    }
    int width() const { return H::uniform ? H::padded : tile.width; }
};

// Linked shapes: the opposite message along the edge of a message, and the index of that edge.
template <class S> inline unsigned across(const Arena<S> &arena, unsigned message) {
    const unsigned edges = unsigned(arena.edges);
    return message < edges ? message + edges : message - edges;
}
template <class S> inline unsigned edge_of(const Arena<S> &arena, unsigned message) {
    const unsigned edges = unsigned(arena.edges);
    return message < edges ? message : message - edges;
}

// The other endpoint of the edge of a slot.
template <class H> struct Far {
    int tile_number, lane, group;
    int labels_;
    long long message_;
    int width_;

    template <class S> Far(const Arena<S> &arena, unsigned slot) {
        const unsigned mate = arena.mate[slot];
        lane = int(mate % tile_size);
        group = int(mate / tile_size);
        if constexpr (H::uniform) {
            labels_ = H::N;
            width_ = H::padded;
            message_ = (long long)group * tile_size * H::padded;
            tile_number = -1;
            if constexpr (H::Linked)
                message_ = (long long)across(arena, arena.where[slot]) * H::padded;
        } else {
            tile_number = arena.group_tile[group];
            const Tile &tile = arena.tiles[tile_number];
            labels_ = tile.labels;
            width_ = tile.width;
            message_ = tile.message + (long long)(group - tile.group) * tile_size * tile.width;
        }
    }

    int labels() const { return H::uniform ? H::N : labels_; }
    Place message() const {
        if constexpr (H::Linked)
            return {message_, 1};
        return H::Spread ? Place{message_ + lane, tile_size}
                         : Place{message_ + (long long)lane * width_, 1};
    }
    template <class S> long long place(const Arena<S> &arena) const {
        return (long long)arena.group_tile[group] * tile_size + lane;
    }
    // Position of the cost of label 0; the stride between labels is tile_size.
    template <class S> long long cost(const Arena<S> &arena) const {
        return arena.tiles[arena.group_tile[group]].unary + lane;
    }
};

// Read and write the entries of one message, in words of 16 bytes if they are contiguous.
template <class H, bool Once = false, class S, class To>
inline void read(const S *from, const Place &p, int labels, To *to) {
#ifdef __CUDACC_RTC__
    if constexpr (H::uniform && !H::Spread && sizeof(S) == 4 && H::padded % 4 == 0) {
        const float4 *words = reinterpret_cast<const float4 *>(from + p.at);
        SOFTMAP_UNROLL_ALL
        for (int k = 0; k < H::padded / 4; ++k) {
            const float4 word = Once ? read_once(words + k) : words[k];
            const float part[4] = {word.x, word.y, word.z, word.w};
            SOFTMAP_UNROLL_ALL
            for (int l = 0; l < 4; ++l)
                if (4 * k + l < H::N)
                    to[4 * k + l] = To(part[l]);
        }
        return;
    }
#endif
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < (H::uniform ? H::N : labels); ++x)
        to[x] = To(from[p.at + (long long)x * p.step]);
}

template <class H, class S, class From>
inline void write(S *to, const Place &p, int labels, const From *from) {
#ifdef __CUDACC_RTC__
    if constexpr (H::uniform && !H::Spread && sizeof(S) == 4 && H::padded % 4 == 0) {
        float4 *words = reinterpret_cast<float4 *>(to + p.at);
        SOFTMAP_UNROLL_ALL
        for (int k = 0; k < H::padded / 4; ++k) {
            float part[4];
            SOFTMAP_UNROLL_ALL
            for (int l = 0; l < 4; ++l)
                part[l] = 4 * k + l < H::N ? float(from[4 * k + l].part[0]) : 0.0f;
            words[k] = make_float4(part[0], part[1], part[2], part[3]);
        }
        return;
    }
#endif
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < (H::uniform ? H::N : labels); ++x)
        to[p.at + (long long)x * p.step] = S(from[x].part[0]);
}

} // namespace device
} // namespace softmap
