// Dense cost tables: one per edge, or a few tables that many edges share, each with its weight.
#pragma once

#include "dense.hpp"

namespace softmap {

// The tables of a tile, multiplied by their weights and interleaved: entry (x, y) of all lanes is
// contiguous.
template <class S> struct PackedTables : EdgesBase<lanes, PackedTables<S>> {
    static constexpr bool often_dense = true;

    const S *table;
    Index step_x, step_y;

    Pack<lanes> entry(Index x, Index y) const {
        return Pack<lanes>::load(table + x * step_x + y * step_y);
    }
    void message(const Pack<lanes> *a, Pack<lanes> *out, double *room, double eta) const {
        dense_message(*this, a, out, room, eta);
    }
};

// The tables of W edges, read in place from the arrays of the model.
template <class S, int W> struct PlacedTables : EdgesBase<W, PlacedTables<S, W>> {
    const S *table[W];
    Pack<W> weight;
    Index step_x, step_y;

    Pack<W> entry(Index x, Index y) const {
        const Index at = x * step_x + y * step_y;
        return weight * Pack<W>::of([&](int k) { return double(table[k][at]); });
    }
    Pack<lanes> entries(Index x, Index y) const {
        static_assert(W == 1, "lanes are either edges or labels");
        const S *from = table[0] + x * step_x + y * step_y;
        const Index last = this->receivers - 1 - y;
        const Pack<lanes> factor(weight.part[0]);
        if (step_y == 1 && last >= lanes - 1)
            return factor * Pack<lanes>::load(from);
        return factor *
               Pack<lanes>::of([&](int k) { return double(from[(k < last ? k : last) * step_y]); });
    }
    void message(const Pack<W> *a, Pack<W> *out, double *room, double eta) const {
        dense_message(*this, a, out, room, eta);
    }
};

struct Tables : FamilyBase {
    static constexpr const char *name = "tables";
    static constexpr Index widest_tile = 24; // labels; edges with larger tables are faster alone

    template <int W, class S>
    static PlacedTables<S, W> at(const Layout<S> &lay, Index g, const auto *edges, int receiver) {
        const Index h = 2 * Index(edges[0]) + receiver;
        const Index cols = lay.labels_at(2 * Index(edges[0]) + 1);
        PlacedTables<S, W> out{{lay.labels_at(h ^ 1), lay.labels_at(h)}, {}, {}, 0, 0};
        out.step_x = receiver == 1 ? cols : 1;
        out.step_y = receiver == 1 ? 1 : cols;
        for (int k = 0; k < W; ++k)
            out.table[k] = lay.table + lay.begin_of(g, edges[k]);
        out.weight = Pack<W>::of([&](int k) { return lay.weight_of(g, edges[k]); });
        return out;
    }

    // The rows of a packed table are the labels of the early endpoint.
    template <class S>
    static PackedTables<S> tile(const Layout<S> &, const Schedule<S> &plan, const Block &b,
                                bool forward) {
        const S *table = plan.table + b.table_at;
        const Index wide = b.late * lanes;
        return forward ? PackedTables<S>{{b.early, b.late}, table, wide, lanes}
                       : PackedTables<S>{{b.late, b.early}, table, lanes, wide};
    }

    // Size of a tile's packed tables, in entries.
    static Index packed_size(Index early, Index late) { return early * late * lanes; }
};

} // namespace softmap
