// Couplings of node marginals and their costs, one edge per thread; see proof/couplings.hpp.
//
// Masses exp(-η (C + κ_i + κ_j)) are recomputed whenever they are needed, so that no table is
// stored: `Proj` (Algorithm 4 of the paper) needs their row sums, then the column sums of the
// scaled rows, then the missing mass of each row. Small tables are stored and improved by
// `exchange`. There is no exact transport here: the cost is +inf if a forbidden pair would get
// mass.
#pragma once

#include "edges.hpp"
#include "proof/banded.hpp"

#include <type_traits>

namespace softmap {
namespace device {

struct Coupled {
    double cost, entropy, slack;
};

using Real = Pack<exact>;

inline double priced(double mass, double cost) { return mass > 0.0 ? mass * cost : 0.0; }
inline double smaller(double a, double b) { return a < b ? a : b; }
inline double larger(double a, double b) { return a > b ? a : b; }
inline double distance(double a, double b) { return a > b ? a - b : b - a; }

// Unroll counts of loops over labels: complete if the label count N is small and known (Fixed), so
// that arrays stay in registers. Inner loops are always unrolled twice at least, to overlap the
// latency of memory and of exponentials.
template <int N, bool Fixed> inline constexpr int outer_loop = Fixed ? N : 1;
template <int N, bool Fixed> inline constexpr int inner_loop = Fixed ? N : 2;

// The soft masses exp(-η (C + κ_i + κ_j - low)) of an edge; `find_low` sets `low` to the minimum.
template <class Edge> struct Masses {
    const Edge &edge;
    const double *row, *col; // κ
    double eta, low;

    double total(int x, int y) const { return edge.entry(x, y).part[0] + row[x] + col[y]; }
    double excess(int x, int y) const {
        const double above = total(x, y) - low;
        return above < excluded ? above : excluded;
    }
    double of(double above) const {
        const double mass = above < excluded ? Arithmetic<exact>::exp(-eta * above) : 0.0;
        return mass > trace ? mass : 0.0;
    }
    double at(int x, int y) const { return of(excess(x, y)); }

    template <int N, bool Fixed> void find_low(int rows, int cols) {
        SOFTMAP_UNROLL(outer_loop<N, Fixed>)
        for (int x = 0; x < rows; ++x)
            SOFTMAP_UNROLL(inner_loop<N, Fixed>)
        for (int y = 0; y < cols; ++y)
            low = smaller(total(x, y), low);
    }
};

// Exchanges mass between two rows and two columns, as `exchange` in proof/transport.hpp.
template <int N, bool Fixed>
inline void exchange(const double *cost, double *plan, int rows, int cols) {
    SOFTMAP_UNROLL(outer_loop<N, Fixed>)
    for (int x = 1; x < rows; ++x)
        SOFTMAP_UNROLL(outer_loop<N, Fixed>)
    for (int z = 0; z < x; ++z) {
        double *upper = plan + x * cols, *under = plan + z * cols;
        const double *above = cost + x * cols, *below = cost + z * cols;
        SOFTMAP_UNROLL(outer_loop<N, Fixed>)
        for (int y = 1; y < cols; ++y)
            SOFTMAP_UNROLL(outer_loop<N, Fixed>)
        for (int w = 0; w < y; ++w) {
            const double gain = (above[y] - below[y]) - (above[w] - below[w]);
            const double moved = gain > 0.0   ? smaller(upper[y], under[w])
                                 : gain < 0.0 ? -smaller(upper[w], under[y])
                                              : 0.0;
            upper[y] -= moved;
            under[w] -= moved;
            upper[w] += moved;
            under[y] += moved;
        }
    }
}

// Scaling factors of rows and columns in `Proj`, and the mass that they lack afterwards.
template <int N> struct Scaling {
    double row[N], col[N], rest_p[N], rest_q[N];
    double missing;
};

template <int N, bool Fixed, class Edge>
inline Coupled shrink(const Masses<Edge> &mass, const double *p, const double *q, int rows,
                      int cols, Scaling<N> &s) {
    Coupled out{0.0, 0.0, 0.0};
    double sum = 0.0, mean = 0.0;
    SOFTMAP_UNROLL(outer_loop<N, Fixed>)
    for (int x = 0; x < rows; ++x) {
        double of_row = 0.0;
        SOFTMAP_UNROLL(inner_loop<N, Fixed>)
        for (int y = 0; y < cols; ++y) {
            const double above = mass.excess(x, y), one = mass.of(above);
            of_row += one;
            mean += one > 0.0 ? one * above : 0.0;
        }
        s.row[x] = of_row;
        sum += of_row;
    }
    const double scale = 1.0 / sum;
    out.entropy = mass.eta * mean * scale + log_double(sum);
    SOFTMAP_UNROLL(outer_loop<N, Fixed>)
    for (int x = 0; x < rows; ++x) {
        const double have = s.row[x] * scale;
        out.slack += distance(have, p[x]);
        s.row[x] = have > 0.0 ? smaller(p[x] / have, 1.0) * scale : 0.0;
    }
    SOFTMAP_UNROLL(outer_loop<N, Fixed>)
    for (int y = 0; y < cols; ++y) {
        double have = 0.0;
        SOFTMAP_UNROLL(inner_loop<N, Fixed>)
        for (int x = 0; x < rows; ++x)
            have += mass.at(x, y) * s.row[x];
        out.slack += distance(have, q[y]);
        s.col[y] = have > 0.0 ? smaller(q[y] / have, 1.0) : 0.0;
        s.rest_q[y] = larger(q[y] - have * s.col[y], 0.0);
    }
    return out;
}

// Returns the cost of the coupling with its rank-one correction. If Kept, `plan` gets the coupling
// and `cost` the edge costs, row by row.
template <int N, bool Fixed, bool Kept, class Edge>
inline double complete(const Masses<Edge> &mass, const double *p, int rows, int cols, Scaling<N> &s,
                       double *plan, double *cost) {
    double price = 0.0;
    s.missing = 0.0;
    SOFTMAP_UNROLL(outer_loop<N, Fixed>)
    for (int x = 0; x < rows; ++x) {
        double have = 0.0;
        SOFTMAP_UNROLL(inner_loop<N, Fixed>)
        for (int y = 0; y < cols; ++y) {
            const double each = mass.edge.entry(x, y).part[0];
            const double one = mass.at(x, y) * s.row[x] * s.col[y];
            have += one;
            price += priced(one, each);
            if constexpr (Kept) {
                plan[x * cols + y] = one;
                cost[x * cols + y] = each;
            }
        }
        s.rest_p[x] = larger(p[x] - have, 0.0);
        s.missing += s.rest_p[x];
    }
    if (!(s.missing > negligible))
        return price;
    SOFTMAP_UNROLL(outer_loop<N, Fixed>)
    for (int x = 0; x < rows; ++x)
        SOFTMAP_UNROLL(inner_loop<N, Fixed>)
    for (int y = 0; y < cols; ++y) {
        const double one = s.rest_p[x] / s.missing * s.rest_q[y];
        price += priced(one, mass.edge.entry(x, y).part[0]);
        if constexpr (Kept)
            plan[x * cols + y] += one;
    }
    return price;
}

// The cost of the completed coupling after `exchange`.
template <int N, bool Fixed, class Edge>
inline double exchanged_price(const Masses<Edge> &mass, const double *p, int rows, int cols,
                              Scaling<N> &s) {
    constexpr int room = Fixed ? N * N : exchanged;
    double plan[room], cost[room], price = 0.0;
    complete<N, Fixed, true>(mass, p, rows, cols, s, plan, cost);
    exchange<N, Fixed>(cost, plan, rows, cols);
    SOFTMAP_UNROLL(Fixed ? N * N : 1)
    for (int k = 0; k < rows * cols; ++k)
        price += priced(plan[k], cost[k]);
    return price;
}

template <int N, bool Fixed, class Edge>
inline Coupled couple_table(const Edge &edge, const double *row, const double *col, const double *p,
                            const double *q, int some_rows, int some_cols, double eta) {
    const int rows = Fixed ? N : some_rows, cols = Fixed ? N : some_cols;
    Masses<Edge> mass{edge, row, col, eta, infinity};
    mass.template find_low<N, Fixed>(rows, cols);
    Scaling<N> s;
    Coupled out = shrink<N, Fixed>(mass, p, q, rows, cols, s);
    if (rows * cols <= exchanged)
        out.cost = exchanged_price<N, Fixed>(mass, p, rows, cols, s);
    else
        out.cost = complete<N, Fixed, false>(mass, p, rows, cols, s, nullptr, nullptr);
    return out;
}

// The arrays of one edge in one thread: the `Given` of BandedCoupling.
template <int N> struct Lone {
    Index rows;
    double *row, *col, *p, *q, *rest_p, *spare;
    const Real *packs(const double *array) const { return reinterpret_cast<const Real *>(array); }
};

// Smallest label count for which `BandedCoupling` is faster than tables, and the largest for which
// its scratch memory fits a thread.
inline constexpr int fewest_banded = 32, most_banded = 64;
template <class H>
inline constexpr bool banded_shape =
    H::Kind == linear && H::N >= fewest_banded && H::N <= most_banded;

// Entropy and slack in O(labels); returns false if one of them is not finite.
template <int N, class Edge>
inline bool soften_band(const Edge &edge, const double *row, const double *col, const double *p,
                        const double *q, double eta, Coupled &out) {
    double rest_p[N], spare[message_room(N, exact) + 14 * N + 2];
    const Lone<N> lone{N,
                       const_cast<double *>(row),
                       const_cast<double *>(col),
                       const_cast<double *>(p),
                       const_cast<double *>(q),
                       rest_p,
                       spare};
    BandedCoupling<exact, Edge, Lone<N>> made(lone, edge, eta);
    out.entropy = made.soften(true).part[0];
    out.slack = made.shrink().part[0];
    return distance(out.entropy, 0.0) < infinity && out.slack < infinity;
}

inline constexpr int most_fixed = 4; // label count up to which loops over labels are unrolled
template <class H> inline constexpr bool fixed_shape = H::uniform && H::N <= most_fixed;

// Entropy and slack of an edge whose coupling does not depend on its soft masses.
template <class H, class Edge>
inline void soften(const Edge &edge, const double *row, const double *col, const double *p,
                   const double *q, int rows, int cols, double eta, Coupled &out) {
    if constexpr (!Edge::banded) {
        Real room[4 * H::N + 4];
        const auto reals = [](const double *a) { return reinterpret_cast<const Real *>(a); };
        const auto found = edge.softened(reals(row), reals(col), reals(p), reals(q),
                                         reinterpret_cast<double *>(room), eta);
        out.entropy = found.entropy.part[0];
        out.slack = found.slack.part[0];
    } else {
        if constexpr (banded_shape<H>)
            if (soften_band<H::N>(edge, row, col, p, q, eta, out))
                return;
        Masses<Edge> mass{edge, row, col, eta, infinity};
        mass.template find_low<H::N, fixed_shape<H>>(rows, cols);
        Scaling<H::N> s;
        const Coupled found = shrink<H::N, fixed_shape<H>>(mass, p, q, rows, cols, s);
        out.entropy = found.entropy;
        out.slack = found.slack;
    }
}

// Cost of the coupling of one edge and, if `soft`, entropy and slack of its soft marginals.
template <class H, class S>
inline Coupled couple_edge(const Arena<S> &arena, unsigned slot, const double *row,
                           const double *col, const double *p, const double *q, int rows, int cols,
                           double eta, bool soft) {
    Coupled out{0.0, 0.0, 0.0};
    with_edge<H, exact, false>(arena, slot, rows, cols, [&](const auto &edge) {
        constexpr bool closed = std::remove_cvref_t<decltype(edge)>::closed_transport;
        if constexpr (closed) {
            if (H::Plain || edge.knows_transport()) {
                Real room[4 * H::N + 4];
                const auto reals = [](const double *a) {
                    return reinterpret_cast<const Real *>(a);
                };
                out.cost = edge.transport_cost(reals(p), reals(q), reinterpret_cast<double *>(room))
                               .part[0];
                if (soft)
                    soften<H>(edge, row, col, p, q, rows, cols, eta, out);
                return;
            }
        }
        if constexpr (!H::Plain || !closed)
            out = couple_table<H::N, fixed_shape<H>>(edge, row, col, p, q, rows, cols, eta);
    });
    return out;
}

} // namespace device
} // namespace softmap
