// Edge marginals for given node marginals: one code makes them, prices them and hands them out.
//
// From the marginals exp(-η (C + κ_i + κ_j)) of an edge, `Proj` (Algorithm 4 of the paper,
// Algorithm 2 of Altschuler et al.) makes a coupling of those of its ends; where that would need a
// forbidden pair, the edge gets its cheapest transport instead; small tables are improved by
// `exchange`. Families that know the cheapest coupling in closed form give that one. At η = ∞ every
// edge gets its cheapest transport. The price is +inf where no coupling avoids the forbidden pairs.
#pragma once

#include "tiles.hpp"
#include "transport.hpp"

namespace softmap {

inline constexpr double negligible = 1e-15; // mass that rounding alone explains

// What is asked about, and where the answers go; a null pointer says: not wanted.
struct Couplings {
    const double *kappa; // by half-edge
    const double *nodes; // by node
    double eta;
    double *cost;         // [edges]
    double *entropy;      // [edges] before anything is moved
    double *slack;        // [edges] ℓ₁, of both ends
    double *plan;         // row-major tables one after the other
    const Index *plan_at; // where the tables begin
};

// Couplings of the lanes of one view. Lanes are edges (W = lanes), or labels of the second end of a
// single edge (W = 1): a cell is `lanes` numbers in either case, and a table has `cells` of them in
// each row, +inf standing in the cost of labels that are not there.
template <int W> class Cells {
  public:
    using Cell = Pack<lanes>;

    // `tables`: whether costs and plans need room.
    Cells(double *room, const Layout<double> &lay, const Run &run, const Couplings &ask,
          bool tables)
        : rows(run.rows), cols(run.cols), cells(width_of(cols)),
          cost(reinterpret_cast<Cell *>(room)), plan(cost + (tables ? rows * cells : 0)),
          ahead(plan + (tables ? rows * cells : 0)) {
        const Index high = (rows * W + lanes - 1) / lanes;
        double *at = reinterpret_cast<double *>(ahead + cells);
        for (double **array : {&row, &p, &rest_p})
            *array = at, at += high * lanes;
        for (double **array : {&col, &q, &rest_q})
            *array = at, at += cells * lanes;
        spare = at;
        load(Side<W>(lay, run, 0), lay, ask, rows, high, row, p);
        load(Side<W>(lay, run, 1), lay, ask, cols, cells, col, q);
    }

    static Index room_for(Index rows, Index cols, bool tables) {
        const Index cells = width_of(cols);
        return lanes * ((tables ? 2 * rows * cells : 0) + cells) + 3 * W * (rows + cols) +
               6 * lanes + transport_room(rows, cols, W);
    }

    Cell in_row(const double *array, Index x) const {
        return W > 1 ? Cell::load(array + lanes * x) : Cell(array[x]);
    }
    Cell in_col(const double *array, Index c) const { return Cell::load(array + lanes * c); }
    void put_row(double *array, Index x, const Cell &value) const {
        if constexpr (W > 1)
            value.store(array + lanes * x);
        else
            value.each(1, [&](int, double one) { array[x] = one; });
    }
    // Sums and minima over labels, in every lane.
    static Cell summed(const Cell &a) { return W > 1 ? a : Cell(total(a)); }
    static Cell lowered(const Cell &a) { return W > 1 ? a : Cell(-largest(0.0 - a)); }

    const Pack<W> *packs(const double *array) const {
        return reinterpret_cast<const Pack<W> *>(array);
    }
    double &entry(Cell *table, Index x, Index y, int lane) const {
        const auto numbers = reinterpret_cast<double *>(table + x * cells);
        return W > 1 ? numbers[lanes * y + lane] : numbers[y];
    }

    const Index rows, cols, cells;
    Cell *const cost, *const plan, *const ahead;
    double *row, *col, *p, *q, *rest_p, *rest_q; // κ with +inf at forbidden labels; marginals
    double *spare;

  private:
    static Index width_of(Index cols) { return W > 1 ? cols : (cols + lanes - 1) / lanes; }

    static void load(const Side<W> &side, const Layout<double> &lay, const Couplings &ask,
                     Index labels, Index width, double *kappa, double *nodes) {
        for (Index x = 0; x < labels; ++x) {
            side.free(lay, ask.kappa, x).store(kappa + W * x);
            across<W>(ask.nodes, side.node, x).store(nodes + W * x);
        }
        for (Index k = W * labels; k < lanes * width; ++k) {
            kappa[k] = infinity;
            nodes[k] = 0.0;
        }
    }
};

template <int W, class Edges> void fill_costs(const Cells<W> &t, const Edges &edges) {
    for (Index x = 0; x < t.rows; ++x) {
        for (Index c = 0; c < t.cells; ++c) {
            if constexpr (W > 1) {
                t.cost[x * t.cells + c] = edges.entry(x, c);
            } else {
                t.cost[x * t.cells + c] = edges.entries(x, c * lanes);
            }
        }
        for (Index y = t.cols; W == 1 && y < t.cells * lanes; ++y)
            t.entry(t.cost, x, y, 0) = infinity;
    }
}

// plan ∝ exp(-η (C + κ_i + κ_j)); returns its entropy.
template <int W> Pack<lanes> soften(const Cells<W> &t, double eta) {
    using Cell = Pack<lanes>;
    Cell low(infinity), mass_of_all(0.0), mean(0.0);
    for (Index x = 0; x < t.rows; ++x) {
        const Cell here = t.in_row(t.row, x);
        for (Index c = 0; c < t.cells; ++c) {
            const Index k = x * t.cells + c;
            t.plan[k] = t.cost[k] + here + t.in_col(t.col, c);
            low = least(t.plan[k], low);
        }
    }
    low = t.lowered(low);
    for (Index k = 0; k < t.rows * t.cells; ++k) {
        const Cell excess = least(t.plan[k] - low, Cell(barred));
        Cell mass = unless_infinite(t.plan[k], exp(Cell(-eta) * excess));
        mass = choose(Cell(trace), mass, mass, Cell(0.0));
        t.plan[k] = mass;
        mass_of_all += mass;
        mean += mass * excess;
    }
    mass_of_all = t.summed(mass_of_all);
    const Cell scale = 1.0 / mass_of_all;
    for (Index k = 0; k < t.rows * t.cells; ++k)
        t.plan[k] *= scale;
    return Cell(eta) * t.summed(mean) * scale + log(mass_of_all);
}

// Scale rows, then columns, down to at most p and q; what is missing goes into `rest_*`. The first
// half of Algorithm 2 of Altschuler et al.; returns the slack before.
template <int W> Pack<lanes> shrink(const Cells<W> &t) {
    using Cell = Pack<lanes>;
    const Cell one(1.0), none(0.0);
    Cell slack(0.0), slack_of_cols(0.0);
    double *have = t.rest_q, *scale = t.col; // κ was used for the last time
    for (Index c = 0; c < t.cells; ++c)
        none.store(have + lanes * c);
    for (Index x = 0; x < t.rows; ++x) {
        Cell sum(0.0), want = t.in_row(t.p, x);
        Cell *line = t.plan + x * t.cells;
        for (Index c = 0; c < t.cells; ++c)
            sum += line[c];
        sum = t.summed(sum);
        slack += size_of(sum - want);
        const Cell less = least(want / sum, one);
        for (Index c = 0; c < t.cells; ++c) {
            line[c] *= less;
            (t.in_col(have, c) + line[c]).store(have + lanes * c);
        }
    }
    for (Index c = 0; c < t.cells; ++c) {
        const Cell sum = t.in_col(have, c), want = t.in_col(t.q, c), less = least(want / sum, one);
        slack_of_cols += size_of(sum - want);
        less.store(scale + lanes * c);
        greatest(want - sum * less, none).store(t.rest_q + lanes * c);
    }
    for (Index x = 0; x < t.rows; ++x) {
        Cell sum(0.0);
        Cell *line = t.plan + x * t.cells;
        for (Index c = 0; c < t.cells; ++c) {
            line[c] *= t.in_col(scale, c);
            sum += line[c];
        }
        t.put_row(t.rest_p, x, greatest(t.in_row(t.p, x) - t.summed(sum), none));
    }
    return slack + t.summed(slack_of_cols);
}

// Add the rank-one correction: the second half of Algorithm 2 of Altschuler et al.
template <int W> void complete(const Cells<W> &t) {
    using Cell = Pack<lanes>;
    const Cell none(0.0);
    Cell missing(0.0);
    for (Index x = 0; x < t.rows; ++x)
        missing += t.in_row(t.rest_p, x);
    const Cell scale = choose(Cell(negligible), missing, 1.0 / missing, none);
    for (Index x = 0; x < t.rows; ++x) {
        const Cell share = t.in_row(t.rest_p, x) * scale;
        for (Index c = 0; c < t.cells; ++c) {
            Cell &mass = t.plan[x * t.cells + c];
            mass += share * t.in_col(t.rest_q, c);
            const Cell speck = choose(mass, Cell(negligible), none, mass); // NaN stays NaN
            mass = choose(t.cost[x * t.cells + c], Cell(infinity), mass, speck);
        }
    }
}

// Σ plan · cost; not a finite number where mass lies on forbidden pairs or is none.
template <int W> Pack<lanes> price(const Cells<W> &t) {
    using Cell = Pack<lanes>;
    const Cell tiny(std::numeric_limits<double>::denorm_min());
    Cell sum(0.0);
    for (Index k = 0; k < t.rows * t.cells; ++k)
        sum += choose(t.plan[k], tiny, Cell(0.0), t.plan[k] * t.cost[k]);
    return t.summed(sum);
}

// Exact transport for a lane; returns whether there is one.
template <int W> bool transported(const Cells<W> &t, int lane, Transport &solve) {
    const Index size = t.rows * t.cols;
    std::vector<double> cost(size), plan(size), p(t.rows), q(t.cols);
    for (Index x = 0; x < t.rows; ++x)
        p[x] = t.p[W * x + lane];
    for (Index y = 0; y < t.cols; ++y)
        q[y] = t.q[W * y + lane];
    for (Index x = 0; x < t.rows; ++x)
        for (Index y = 0; y < t.cols; ++y)
            cost[x * t.cols + y] = t.entry(t.cost, x, y, lane);
    const double stranded = solve(cost.data(), p.data(), q.data(), t.rows, t.cols, plan.data());
    for (Index x = 0; x < t.rows; ++x)
        for (Index c = 0; c < t.cells * (W > 1 ? 1 : lanes); ++c)
            t.entry(t.plan, x, c, lane) = c < t.cols ? plan[x * t.cols + c] : 0.0;
    return stranded <= feasible;
}

// Whether `exchange` applies: small tables whose finite costs it can tell from forbidden ones.
template <int W> bool exchangeable(const Cells<W> &t) {
    if (t.rows * t.cols > exchanged)
        return false;
    Pack<lanes> top(0.0);
    for (Index k = 0; k < t.rows * t.cells; ++k)
        top = greatest(unless_infinite(t.cost[k], size_of(t.cost[k])), top);
    return largest(top) < barred;
}

template <int W> void exchange_cells(const Cells<W> &t) {
    if constexpr (W > 1) {
        exchange<lanes>(t.cost, t.plan, t.ahead, t.rows, t.cols);
    } else {
        Pack<1> cost[exchanged]{}, plan[exchanged]{}, ahead[exchanged]{};
        for (Index k = 0; k < t.rows * t.cols; ++k) {
            cost[k] = Pack<1>(t.entry(t.cost, k / t.cols, k % t.cols, 0));
            plan[k] = Pack<1>(t.entry(t.plan, k / t.cols, k % t.cols, 0));
        }
        exchange<1>(cost, plan, ahead, t.rows, t.cols);
        for (Index k = 0; k < t.rows * t.cols; ++k)
            t.entry(t.plan, k / t.cols, k % t.cols, 0) = plan[k].part[0];
    }
}

// The answers for the edges of a run.
template <int W> struct Answers {
    const Run &run;
    const Couplings &ask;

    template <int V> void put(double *array, const Pack<V> &value) const {
        if (array)
            value.each(int(run.count), [&](int k, double one) { array[run.first + k] = one; });
    }
    void put_plan(const Cells<W> &t) const {
        for (int k = 0; ask.plan && k < int(run.count); ++k) {
            double *out = ask.plan + ask.plan_at[run.first + k];
            for (Index x = 0; x < t.rows; ++x)
                for (Index y = 0; y < t.cols; ++y)
                    *out++ = t.entry(t.plan, x, y, k);
        }
    }
};

// Lanes for which `Proj` is no coupling, or all of them (η = ∞), by exact transport.
template <int W>
Pack<lanes> mended(const Cells<W> &t, const Run &run, const Pack<lanes> &found, bool all,
                   Transport &solve) {
    double price_of[lanes];
    found.store(price_of);
    bool fits[lanes];
    for (int k = 0; k < lanes; ++k)
        fits[k] = true;
    for (int k = 0; k < int(run.count); ++k)
        if (all || !(std::abs(price_of[k]) < infinity))
            fits[k] = transported(t, k, solve);
    if (!all && exchangeable(t))
        exchange_cells(t);
    const Pack<lanes> again = price(t);
    again.store(price_of);
    return Pack<lanes>::of([&](int k) { return fits[k] ? price_of[k] : infinity; });
}

template <int W, class Edges>
void couple_generally(const Cells<W> &t, const Edges &edges, const Run &run, const Couplings &ask,
                      Transport &solve) {
    using Cell = Pack<lanes>;
    const Answers<W> answers{run, ask};
    fill_costs(t, edges);
    const bool exactly = ask.eta == infinity;
    Cell entropy(0.0), slack(0.0), found(0.0);
    if (!exactly) {
        entropy = soften(t, ask.eta);
        slack = shrink(t);
        complete(t);
        found = price(t);
    }
    answers.put(ask.cost, mended(t, run, found, exactly, solve));
    answers.put(ask.entropy, entropy);
    answers.put(ask.slack, slack);
    answers.put_plan(t);
}

template <int W, class Edges>
void couple_in_closed_form(const Cells<W> &t, const Edges &edges, const Run &run,
                           const Couplings &ask) {
    const Answers<W> answers{run, ask};
    const Pack<W> *p = t.packs(t.p), *q = t.packs(t.q);
    answers.put(ask.cost, edges.transport_cost(p, q, t.spare));
    if (ask.entropy || ask.slack) {
        Softened<W> soft{Pack<W>(0.0), Pack<W>(0.0)};
        if (ask.eta < infinity)
            soft = edges.softened(t.packs(t.row), t.packs(t.col), p, q, t.spare, ask.eta);
        answers.put(ask.entropy, soft.entropy);
        answers.put(ask.slack, soft.slack);
    }
    if (!ask.plan)
        return;
    for (int k = 0; k < int(run.count); ++k) {
        double *out = ask.plan + ask.plan_at[run.first + k];
        std::fill(out, out + t.rows * t.cols, 0.0);
    }
    edges.transport(p, q, t.spare, [&](Index x, Index y, const Pack<W> &mass) {
        mass.each(int(run.count), [&](int k, double one) {
            ask.plan[ask.plan_at[run.first + k] + x * t.cols + y] = one;
        });
    });
}

template <class Edges> bool closed(const Edges &edges) {
    if constexpr (Edges::closed_transport)
        return edges.knows_transport();
    else
        return false;
}

template <int W, class Edges>
void couple_run(const Cells<W> &t, const Edges &edges, const Run &run, const Couplings &ask,
                Transport &solve) {
    if constexpr (Edges::closed_transport) {
        if (edges.knows_transport()) {
            couple_in_closed_form(t, edges, run, ask);
            return;
        }
    }
    couple_generally(t, edges, run, ask, solve);
}

// Couplings of the edges at positions first..last-1 of the list.
inline void couple(const Layout<double> &lay, const EdgeList &list, const Couplings &ask,
                   Index first, Index last) {
    Index numbers = 0;
    each_run(lay, list, first, last, 1, [&](const auto &edges, const Run &run) {
        constexpr int W = std::decay_t<decltype(edges)>::width;
        numbers = std::max(numbers, Cells<W>::room_for(run.rows, run.cols, !closed(edges)));
    });
    Room room(numbers);
    Transport solve;
    each_run(lay, list, first, last, 1, [&](const auto &edges, const Run &run) {
        constexpr int W = std::decay_t<decltype(edges)>::width;
        const Cells<W> cells(room.numbers(), lay, run, ask, !closed(edges));
        couple_run(cells, edges, run, ask, solve);
    });
}

} // namespace softmap
