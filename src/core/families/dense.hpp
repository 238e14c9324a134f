// Messages of any family, computed from single table entries in O(senders · receivers).
#pragma once

#include "base/schedule.hpp"

namespace softmap {

inline constexpr Index exchanged = 36; // table entries up to which `exchange` costs a few messages
inline constexpr double feasible = 1e-12;   // mass that a coupling may lose to rounding
inline constexpr double negligible = 1e-15; // mass that may come from rounding alone
inline constexpr double excluded = 1e300;   // used for +inf, so that differences are finite
inline constexpr double trace =
    1e-150; // smaller masses count as 0: their products would be denormal, hence slow

// Soft minimum -(1/η) log Σ_x exp(-η value(x)) over x < count, per lane. The smallest value
// contributes exactly 1 to the shifted sum, so its exponential is not computed. `work` has `count`
// packs. N > 0 fixes the count at compile time.
template <int N, int W, class Value>
SOFTMAP_IN_LINE inline Pack<W> soft_minimum(Index count, Value value, Pack<W> *work, double eta) {
    const Pack<W> cold(-eta);
    Pack<W> low = value(0), mass(1.0);
    const auto gather = [&](Pack<W> *room, Index number) {
        SOFTMAP_UNROLL(N > 0 ? N : 1)
        for (Index x = 1; x < number; ++x) {
            const Pack<W> next = value(x);
            room[x] = larger(next, low);
            low = smaller(next, low);
        }
        low += Pack<W>(0.0); // a zero gets the same sign on every machine
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

// out[y] = min over x of a[x] + entry(x, y), soft at finite η and hard at η = ∞. Lanes are edges. N
// is the label count of both endpoints if known at compile time, else 0.
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

// out[y] as in `dense_by_edges` for one edge. Lanes are labels of the receiver; lanes past the last
// label repeat it.
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

// The dense message of one edge (W = 1) or of W edges. Families with `often_dense` get unrolled
// loops for small label counts; for the others that would cost compile time without a gain.
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

// Defaults of a family.
struct FamilyBase {
    static constexpr Index widest_tile = 64; // label count up to which lanes are edges, not labels
    // Whether two edges of a group, with equal label counts, may be lanes of one view.
    static bool alike(const Layout &, Index, Index, Index) { return true; }
};

// Entropy of the edge marginal P ∝ exp(-η (C + κ_i + κ_j)), and the sum of the ℓ₁ distances of its
// row sums from p and of its column sums from q. The column sums are taken after rows with more
// mass than p allows were scaled down to p.
template <int W> struct Softened {
    Pack<W> entropy, slack;
};

// Base of a view of W edges: label counts, and `lanes` consecutive entries of one edge.
//
// A view with `closed_transport` computes the optimal transport plan between marginals p and q in
// closed form if `knows_transport()`: `transport_cost(p, q, room)` is its cost, and
// `transport(p, q, room, put)` calls put(x, y, mass) for its nonzero entries. Unless the view is
// `banded` it also has `softened(κ_i, κ_j, p, q, room, η)`. `room` has `transport_room` entries.
//
// A `banded` view has, if `knows_band()`, a type `Band` (bands.hpp) and a `weight` for near labels
// (|x - y| < `reach`), and a `ceiling`, the cost of all pairs of labels farther apart.
template <int W, class Edges> struct EdgesBase {
    static constexpr int width = W;
    static constexpr bool closed_transport = false;
    static constexpr bool banded = false;
    static constexpr bool often_dense = false; // whether passes often call dense_message with W > 1

    Index senders, receivers;

    // Entries (x, y), (x, y + 1), ... of one edge; lanes past the last label repeat the last entry.
    Pack<lanes> entries(Index x, Index y) const {
        static_assert(W == 1, "lanes are either edges or labels");
        const auto &self = static_cast<const Edges &>(*this);
        return Pack<lanes>::of([&](int k) {
            const Index label = y + k < receivers ? y + k : receivers - 1;
            return self.entry(x, label).part[0];
        });
    }
};

// Scratch size of a message between nodes of up to `labels` labels, in doubles.
constexpr Index message_room(Index labels, int width) {
    return width == 1 ? lanes * labels + 8 * (labels + 2) : width * (8 * labels + 16);
}

// Scratch size of the transport operations of a view, in doubles.
constexpr Index transport_room(Index senders, Index receivers, int width) {
    return width * 2 * (senders + receivers);
}

} // namespace softmap
