// A model as the kernels of a GPU read it.
//
// Nodes lie in tiles of 32, one per thread of a warp, that are alike in level, labels, and edges
// to earlier and to later levels. Half-edge j of the nodes of a tile is a group of 32 slots: slot
// q = 32 · group + lane. Messages into a node lie with its own slots, so that they are read in
// one go; `mate` says where the other half-edge of each edge is. See softmap.methods.cuda.tiling.
#pragma once

#include "base/layout.hpp"

#include <type_traits>

namespace softmap {
namespace device {

inline constexpr int tile_size = 32;

struct Tile {
    long long unary, message; // where its costs and messages begin
    int group;                // first group of slots
    int labels, width;        // and the numbers that a message takes up
    int early, late;          // half-edges to earlier levels come before those to later ones
    int used;                 // lanes that hold a node
    double share;             // 1 / n_i
};

// What is known when a kernel is compiled; softmap.methods.cuda.shapes writes it by these names.
struct Facts {
    bool doubles = false; // messages are held so
    int kind = -1;        // of all edges, and all nodes have the same labels; else -1
    int labels = 0;       // of every node, or at most
    int reach = 0;        // of truncated costs, if all have the same
    int early = 0;        // half-edges of every node to earlier levels, at most,
    int late = 0;         // and to later ones; a thread per edge then. 0, 0: any number
    bool spread = false;  // equal labels of the slots of a group lie side by side; else the labels
                          // of each slot do, which suits graphs whose edges lead anywhere
    bool plain = false;   // every edge has the closed forms of its family
    bool exact = false;   // tables are the same when rounded to the precision of passes
    bool ragged = false;  // nodes of a tile may differ in their half-edges; it has room for those
                          // of each direction that the richest of them has
    bool linked = false;  // messages and tables lie by edge: see links.hpp
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

// Kinds: the places of the families in families/all.hpp, and tables that many edges share.
enum : int { tables, potts, linear, quadratic, projection, shared_tables };

// Handed to every kernel by value; ARENA of softmap.methods.cuda.arena has the same members.
template <class S> struct Arena {
    const Tile *tiles;
    const double *unary;   // by tile
    const S *unary_single; // the same, rounded
    const unsigned *mate;  // by slot, as all below
    const int *group_tile; // by group of slots
    const double *weight, *cut;
    const S *arranged;            // tables of all edges, from each end
    const double *arranged_exact; // the same, not rounded, where that makes a difference
    const unsigned char *kind, *side;
    const int *reach;
    const long long *place; // where table or map begin
    const double *table;
    const int *maps;
    const unsigned *halves; // by place, of ragged tiles: early + 65536 · late
    const unsigned *where;  // by slot, of linked shapes: the message into its node
    int edges;              // message k goes to the later end of an edge, edges + k to the earlier
};

// Where the numbers of one slot are: entry x at `at + x * step`.
struct Place {
    long long at;
    int step;
};

// A node as one thread sees it.
template <class H> struct Node {
    int tile_number, lane;
    Tile tile;
    int early, late; // half-edges of this node
    double share;    // 1 / n_i
    const unsigned *where;

    // The node of this thread, of tiles first .. first + count - 1; false if there is none.
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
    // The group of half-edge j, those to earlier levels first, among the groups of the tile.
    int in_tile(int j) const { return H::Ragged && j >= early ? j - early + tile.early : j; }
    unsigned slot(int j) const { return unsigned(tile.group + in_tile(j)) * tile_size + lane; }
    // Chains that end here when they are run backward.
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

// The other message along the edge of a message, and the edge, of linked shapes.
template <class S> inline unsigned across(const Arena<S> &arena, unsigned message) {
    const unsigned edges = unsigned(arena.edges);
    return message < edges ? message + edges : message - edges;
}
template <class S> inline unsigned edge_of(const Arena<S> &arena, unsigned message) {
    const unsigned edges = unsigned(arena.edges);
    return message < edges ? message : message - edges;
}

// The far end of the edge of a slot.
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
    template <class S> long long cost(const Arena<S> &arena) const { // of label 0, step tile_size
        return arena.tiles[arena.group_tile[group]].unary + lane;
    }
};

// Numbers from and to memory; the labels of one slot in words of 16 bytes where they lie together.
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
