// Messages of any family from single entries: O(senders · receivers).
#pragma once

#include "base/schedule.hpp"

namespace softmap {

inline constexpr Index exchanged = 36; // entries up to which `exchange` costs a few messages only
inline constexpr double feasible = 1e-12;   // mass that may go missing from a coupling by rounding
inline constexpr double negligible = 1e-15; // mass that rounding alone explains
inline constexpr double barred = 1e300;     // stands for +inf, so that differences are numbers
inline constexpr double trace =
    1e-150; // less mass is none: products of such are too small, and slow

// Soft minimum of `count` packs value(0), value(1), ... with room for as many in `work`. The least
// term of each sum is 1; only the others are computed. N > 0 fixes the count at compile time.
template <int N, int W, class Value>
inline Pack<W> soft_minimum(Index count, Value value, Pack<W> *work, double eta) {
    const Pack<W> cold(-eta);
    Pack<W> low = value(0), mass(1.0);
    const auto gather = [&](Pack<W> *room, Index number) {
        SOFTMAP_UNROLL(N > 0 ? N : 1)
        for (Index x = 1; x < number; ++x) {
            const Pack<W> next = value(x);
            room[x] = greatest(next, low);
            low = least(next, low);
        }
        SOFTMAP_UNROLL(N > 0 ? N : 1)
        for (Index x = 1; x < number; ++x)
            mass += exp(cold * (room[x] - low));
    };
    if constexpr (N > 0) {
        Pack<W> room[N];
        gather(room, N);
    } else {
        gather(work, count);
    }
    return fused(log(mass), Pack<W>(-1.0 / eta), low);
}

template <int W, class Value> inline Pack<W> hard_minimum(Index count, Value value) {
    Pack<W> low = value(0);
    for (Index x = 1; x < count; ++x)
        low = least(value(x), low);
    return low;
}

// out[y] = min over x of a[x] + entry(x, y), soft at η or hard (η = ∞), for one label count N
// known at compile time or (0) for any. Lanes are edges.
template <int N, int W, class Edges>
void dense_by_edges(const Edges &edges, const Pack<W> *a, Pack<W> *out, Pack<W> *work, double eta) {
    const Index senders = N > 0 ? N : edges.senders, receivers = N > 0 ? N : edges.receivers;
    const auto from = [&](Index y) {
        return [&edges, a, y](Index x) { return a[x] + edges.entry(x, y); };
    };
    if (eta == infinity) {
        SOFTMAP_UNROLL(N > 0 ? N : 1)
        for (Index y = 0; y < receivers; ++y)
            out[y] = hard_minimum<W>(senders, from(y));
    } else {
        SOFTMAP_UNROLL(N > 0 ? N : 1)
        for (Index y = 0; y < receivers; ++y)
            out[y] = soft_minimum<N, W>(senders, from(y), work, eta);
    }
}

// The same for one edge: lanes are labels of the receiver, those past the last repeat it.
template <class Edge>
void dense_by_labels(const Edge &edge, const Pack<1> *a, Pack<1> *out, double *room, double eta) {
    const auto work = reinterpret_cast<Pack<lanes> *>(room);
    for (Index y = 0; y < edge.receivers; y += lanes) {
        const auto value = [&](Index x) { return Pack<lanes>(a[x].part[0]) + edge.entries(x, y); };
        const Pack<lanes> found = eta == infinity
                                      ? hard_minimum<lanes>(edge.senders, value)
                                      : soft_minimum<0, lanes>(edge.senders, value, work, eta);
        const Index left = edge.receivers - y;
        found.each(left < lanes ? int(left) : lanes,
                   [&](int k, double one) { out[y + k].part[0] = one; });
    }
}

// Where it is worth the time to compile, small label counts get loops of their own, unrolled.
template <int W, class Edges>
void dense_message(const Edges &edges, const Pack<W> *a, Pack<W> *out, double *room, double eta) {
    if constexpr (W == 1) {
        dense_by_labels(edges, a, out, room, eta);
    } else if constexpr (!Edges::often_dense) {
        dense_by_edges<0, W>(edges, a, out, reinterpret_cast<Pack<W> *>(room), eta);
    } else {
        const auto work = reinterpret_cast<Pack<W> *>(room);
        const Index d = edges.senders == edges.receivers ? edges.senders : 0;
        if (d == 2)
            dense_by_edges<2, W>(edges, a, out, work, eta);
        else if (d == 3)
            dense_by_edges<3, W>(edges, a, out, work, eta);
        else if (d == 4)
            dense_by_edges<4, W>(edges, a, out, work, eta);
        else if (d == 8)
            dense_by_edges<8, W>(edges, a, out, work, eta);
        else
            dense_by_edges<0, W>(edges, a, out, work, eta);
    }
}

// What every family has unless it says otherwise.
struct FamilyBase {
    static constexpr Index widest_tile = 64; // labels up to which lanes are edges, not labels
    // Whether two edges of a group, with equal label counts, may be lanes of one view.
    template <class S> static bool alike(const Layout<S> &, Index, Index, Index) { return true; }
};

// Entropy of the marginals exp(-η (C + κ_i + κ_j)), and their ℓ₁ distance from given ones of both
// ends, that of the receiver taken after the senders' excess was scaled away.
template <int W> struct Softened {
    Pack<W> entropy, slack;
};

// What every view of edges has: label counts, and eight entries of one edge from single ones.
//
// A view with `closed_transport` knows the cheapest coupling of marginals p and q where
// `knows_transport()`: its price `transport_cost(p, q, room)`, its masses `transport(p, q, room,
// put)` by calls of put(x, y, mass) for some pairs, all others being 0, and, unless it is `banded`,
// `softened(κ_i, κ_j, p, q, room, η)`; `room` is `transport_room` numbers. A view that is `banded`
// has a type `Band` (bands.hpp) for its near labels, those less than `reach` apart, `weight`, and a
// `ceiling` for what all others cost, where `knows_band()`.
template <int W, class Edges> struct EdgesBase {
    static constexpr int width = W;
    static constexpr bool closed_transport = false;
    static constexpr bool banded = false;
    static constexpr bool often_dense = false; // whether passes call dense_message for many lanes

    Index senders, receivers;

    // Entries (x, y), (x, y + 1), ... of one edge; past the last receiver the last one again.
    Pack<lanes> entries(Index x, Index y) const {
        static_assert(W == 1, "lanes are either edges or labels");
        const auto &self = static_cast<const Edges &>(*this);
        return Pack<lanes>::of([&](int k) {
            const Index label = y + k < receivers ? y + k : receivers - 1;
            return self.entry(x, label).part[0];
        });
    }
};

// Room that a message between nodes of up to `labels` labels may ask for, in numbers.
constexpr Index message_room(Index labels, int width) {
    return width == 1 ? lanes * labels + 8 * (labels + 2) : width * (8 * labels + 16);
}

// Room that the verbs of couplings may ask for, in numbers.
constexpr Index transport_room(Index senders, Index receivers, int width) {
    return width * 2 * (senders + receivers);
}

} // namespace softmap
