// Views of an arena's edges for the potential families of the core.
#pragma once

#include "arena.hpp"
#include "families/potts.hpp"
#include "families/projection.hpp"
#include "families/truncated.hpp"

namespace softmap {
namespace device {

// A table with any strides. Once: its entries are not read again soon, so they bypass the cache.
template <int W, class S, int N, bool Once>
struct TableView : EdgesBase<W, TableView<W, S, N, Once>> {
    static constexpr bool often_dense = false;
    const S *table;
    long long step_x, step_y;
    Pack<W> weight;
    bool weighted;

    Pack<W> entry(Index x, Index y) const {
        const S *place = table + x * step_x + y * step_y;
        const Pack<W> value(Once ? read_once(place) : *place);
        return weighted ? weight * value : value;
    }
    void message(const Pack<W> *a, Pack<W> *out, double *room, double eta) const {
        dense_by_edges<N, W>(*this, a, out, reinterpret_cast<Pack<W> *>(room), eta);
    }
};

inline constexpr int unrolled = 32; // label count up to which loops over tables are unrolled

// The arithmetic in which messages are computed: the precision of messages, except that sums over
// labels that span many orders of magnitude use `wide`.
template <class H> constexpr int numbers_of_passes() {
    if (sizeof(typename H::S) == 8)
        return exact;
    return H::Kind == linear || !H::uniform ? wide : single;
}

// The table of a slot in the arrays of the model, with the slot's owner by rows.
template <int W, int N, class S>
inline TableView<W, double, N, false> raw_table(const Arena<S> &arena, unsigned slot, int own,
                                                int other) {
    const bool first = arena.side[slot] == 0;
    return {{own, other},    arena.table + arena.place[slot], first ? other : 1,
            first ? 1 : own, Pack<W>(arena.weight[slot]),     true};
}

// table_of: the number of the table that a slot reads, one per slot, or one per edge in linked
// shapes. table_place: its first entry; 32 tables are interleaved.
template <class H, class S> inline unsigned table_of(const Arena<S> &arena, unsigned slot) {
    if constexpr (H::Linked)
        return edge_of(arena, arena.where[slot]);
    return slot;
}
template <class H> inline long long table_place(unsigned number) {
    return (long long)(number / tile_size) * tile_size * H::N * H::N + number % tile_size;
}

// Calls f(view) with the view of a slot's edge, the owner of the slot being the sender. Arranged:
// tables are read in the precision of passes.
template <class H, int W, bool Arranged, class S, class F>
inline void with_edge(const Arena<S> &arena, unsigned slot, int own, int other, F f) {
    constexpr int N = Arranged && H::uniform && H::N <= unrolled ? H::N : 0;
    if constexpr (H::Kind == tables) {
        const unsigned entry = table_of<H>(arena, slot);
        const long long at = table_place<H>(entry);
        const bool turned = H::Linked && arena.where[slot] == entry; // rows: earlier endpoint
        const long long row = turned ? tile_size : H::N * tile_size;
        const long long column = turned ? H::N * tile_size : tile_size;
        const Pack<W> one(1.0);
        if constexpr (Arranged || H::Exact)
            f(TableView<W, S, N, Arranged>{
                {own, other}, arena.arranged + at, row, column, one, false});
        else
            f(TableView<W, double, N, false>{
                {own, other}, arena.arranged_exact + at, row, column, one, false});
        return;
    }
    const int kind = H::uniform ? H::Kind : int(arena.kind[slot]);
    if constexpr (!H::uniform || H::Kind == shared_tables)
        if (kind == tables || kind == shared_tables)
            f(raw_table<W, N>(arena, slot, own, other));
    if constexpr (!H::uniform || H::Kind == potts)
        if (kind == potts)
            f(PottsEdges<W>(own, other, Pack<W>(arena.weight[slot])));
    const int reach = H::Reach > 0 ? H::Reach : 0;
    if constexpr (!H::uniform || H::Kind == linear)
        if (kind == linear)
            f(TruncatedEdges<W, LinearDistance>(own, other, Pack<W>(arena.weight[slot]),
                                                Pack<W>(arena.cut[slot]),
                                                reach ? reach : arena.reach[slot]));
    if constexpr (!H::uniform || H::Kind == quadratic)
        if (kind == quadratic)
            f(TruncatedEdges<W, QuadraticDistance>(own, other, Pack<W>(arena.weight[slot]),
                                                   Pack<W>(arena.cut[slot]),
                                                   reach ? reach : arena.reach[slot]));
    if constexpr (!H::uniform || H::Kind == projection)
        if (kind == projection)
            f(ProjectionEdges<W>{
                {own, other}, arena.maps + arena.place[slot], arena.side[slot] == 0});
}

// How messages are computed: hard minima; soft minima where η is small enough for the closed forms
// of all edges (`mild_message`); soft minima at any η.
enum : int { hard, mild, cold };

// out(y) = min over x of a(x) + C(x, y), soft at η or hard at η = ∞.
template <class H, int W, bool Arranged, int Heat, class S>
inline void send(const Arena<S> &arena, unsigned slot, int own, int other, const Pack<W> *a,
                 Pack<W> *out, double eta) {
    Pack<W> room[4 * H::N + 8];
    with_edge<H, W, Arranged>(arena, slot, own, other, [&](const auto &edge) {
        double *work = reinterpret_cast<double *>(room);
        if constexpr (!H::Plain)
            edge.message(a, out, work, eta);
        else if constexpr (Heat == cold)
            edge.plain_message(a, out, work, eta);
        else
            edge.mild_message(a, out, work, eta);
    });
}

} // namespace device
} // namespace softmap
