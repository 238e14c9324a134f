// Dense cost tables: one per edge, or a few tables that many edges share, each with its weight.
#pragma once

#include "dense.hpp"

namespace softmap {

// The tables of a tile, multiplied by their weights and interleaved: entry (x, y) of all lanes is
// contiguous.
struct PackedTables : EdgesBase<lanes, PackedTables> {
    static constexpr bool often_dense = true;

    const double *table;
    Index step_x, step_y;

    Pack<lanes> entry(Index x, Index y) const {
        return Pack<lanes>::load(table + x * step_x + y * step_y);
    }
    void message(const Pack<lanes> *a, Pack<lanes> *out, double *room, double eta) const {
        dense_message(*this, a, out, room, eta);
    }
};

// The tables of W edges, read in place from the arrays of the model.
template <int W> struct PlacedTables : EdgesBase<W, PlacedTables<W>> {
    const double *table[W];
    Pack<W> weight;
    Index step_x, step_y;

    Pack<W> entry(Index x, Index y) const {
        const Index at = x * step_x + y * step_y;
        return weight * Pack<W>::of([&](int k) { return double(table[k][at]); });
    }
    Pack<lanes> entries(Index x, Index y) const {
        static_assert(W == 1, "lanes are either edges or labels");
        const double *from = table[0] + x * step_x + y * step_y;
        const Index last = this->receivers - 1 - y;
        const Pack<lanes> factor(weight.part[0]);
        if (step_y == 1 && last >= lanes - 1)
            return factor * Pack<lanes>::load(from);
        return factor *
               Pack<lanes>::of([&](int k) { return double(from[(k < last ? k : last) * step_y]); });
    }
    void message(const Pack<W> *a, Pack<W> *out, double *room, double eta) const {
        if constexpr (W == 1)
            if (eta == infinity && step_y == 1 && this->receivers > strip)
                return least_of_rows(a, out);
        dense_message(*this, a, out, room, eta);
    }

  private:
    static constexpr Index strip = 512; // labels of the receiver whose minima stay in a cache

    // The hard message of one edge with many labels: a large table is read row by row.
    void least_of_rows(const Pack<1> *a, Pack<1> *out) const {
        double *low = &out->part[0];
        std::fill(low, low + this->receivers, infinity);
        for (Index first = 0; first < this->receivers; first += strip) {
            const Index last = std::min(first + strip, this->receivers);
            for (Index x = 0; x < this->senders; ++x) {
                const double *from = table[0] + x * step_x;
                const auto lower = [&]<int V>(Index y) __attribute__((always_inline)) {
                    const Pack<V> value =
                        Pack<V>(a[x].part[0]) + Pack<V>(weight.part[0]) * Pack<V>::load(from + y);
                    least(value, Pack<V>::load(low + y)).store(low + y);
                };
                Index y = first;
                for (; y + lanes <= last; y += lanes)
                    lower.template operator()<lanes>(y);
                for (; y < last; ++y)
                    lower.template operator()<1>(y);
            }
        }
    }
};

struct Tables : FamilyBase {
    static constexpr const char *name = "tables";
    static constexpr Index widest_tile = 24; // labels; edges with larger tables are faster alone

    template <int W>
    static PlacedTables<W> at(const Layout &lay, Index g, const auto *edges, int receiver) {
        const Index h = 2 * Index(edges[0]) + receiver;
        const Index cols = lay.labels_at(2 * Index(edges[0]) + 1);
        PlacedTables<W> out{{lay.labels_at(h ^ 1), lay.labels_at(h)}, {}, {}, 0, 0};
        out.step_x = receiver == 1 ? cols : 1;
        out.step_y = receiver == 1 ? 1 : cols;
        for (int k = 0; k < W; ++k)
            out.table[k] = lay.table + lay.begin_of(g, edges[k]);
        out.weight = Pack<W>::of([&](int k) { return lay.weight_of(g, edges[k]); });
        return out;
    }

    // The rows of a packed table are the labels of the early endpoint.
    static PackedTables tile(const Layout &, const Schedule &plan, const Block &b, bool forward) {
        const double *table = plan.table + b.table_at;
        const Index wide = b.late * lanes;
        return forward ? PackedTables{{b.early, b.late}, table, wide, lanes}
                       : PackedTables{{b.late, b.early}, table, lanes, wide};
    }

    // Size of a tile's packed tables, in entries.
    static Index packed_size(Index early, Index late) { return early * late * lanes; }
};

} // namespace softmap
