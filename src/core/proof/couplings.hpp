// Couplings (edge marginals with given node marginals) and their costs. The same code computes the
// cost of a coupling and the coupling that is returned.
//
// `Proj` (Algorithm 4 of the paper, Algorithm 2 of Altschuler et al.) rounds the soft edge
// marginals exp(-η (C + κ_i + κ_j)) to a coupling of the node marginals. If that coupling has mass
// on a forbidden pair, it is replaced by an optimal transport plan. Small tables are improved by
// `exchange`. Families with `closed_transport` return their optimal plan. At η = ∞ every edge gets
// an optimal plan. The cost is +inf if no coupling avoids the forbidden pairs.
#pragma once

#include "banded.hpp"
#include "cells.hpp"
#include "transport.hpp"

namespace softmap {

// t.cost = the costs of all label pairs; +inf at padding labels.
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

// Result of `soften`: plan ∝ exp(-η (C + κ_i + κ_j)), its row sums in `rest_p`.
template <int W> struct Soft {
    Pack<lanes> entropy;
    Pack<lanes> scale; // factor that makes the masses of the plan sum to 1
};

template <int W> Soft<W> soften(const Cells<W> &t, double eta) {
    using Cell = Pack<lanes>;
    Cell low(infinity), sum(0.0), mean(0.0);
    for (Index x = 0; x < t.rows; ++x) {
        const Cell here = t.in_row(t.row, x);
        Cell *line = t.plan + x * t.cells;
        for (Index c = 0; c < t.cells; ++c) {
            line[c] = t.cost[x * t.cells + c] + here + t.in_col(t.col, c);
            low = least(line[c], low);
        }
    }
    low = t.lowered(low);
    for (Index x = 0; x < t.rows; ++x) {
        Cell *line = t.plan + x * t.cells, sum_of_row(0.0);
        for (Index c = 0; c < t.cells; ++c) {
            const Cell excess = least(line[c] - low, Cell(excluded));
            Cell mass = unless_infinite(line[c], exp(Cell(-eta) * excess));
            mass = choose(Cell(trace), mass, mass, Cell(0.0));
            line[c] = mass;
            sum_of_row += mass;
            mean = fused(mass, excess, mean);
        }
        sum_of_row = t.summed(sum_of_row);
        t.put_row(t.rest_p, x, sum_of_row);
        sum += sum_of_row;
    }
    const Cell scale = 1.0 / sum;
    return {fused(Cell(eta) * t.summed(mean), scale, log(sum)), scale};
}

// Scales rows down to at most p, then columns to at most q; the missing mass goes into `rest_p` and
// `rest_q`. The first half of Algorithm 2 of Altschuler et al. Returns the ℓ₁ slack before scaling.
template <int W> Pack<lanes> shrink(const Cells<W> &t, const Pack<lanes> &scale) {
    using Cell = Pack<lanes>;
    const Cell one(1.0), none(0.0);
    Cell slack(0.0), slack_of_cols(0.0);
    double *have = t.rest_q, *scale_of = t.col; // κ is not read again: its memory is reused
    for (Index c = 0; c < t.cells; ++c)
        none.store(have + lanes * c);
    for (Index x = 0; x < t.rows; ++x) {
        const Cell sum = t.in_row(t.rest_p, x) * scale, want = t.in_row(t.p, x);
        slack += size_of(sum - want);
        const Cell less = least(want / sum, one) * scale;
        Cell *line = t.plan + x * t.cells;
        for (Index c = 0; c < t.cells; ++c) {
            line[c] *= less;
            (t.in_col(have, c) + line[c]).store(have + lanes * c);
        }
    }
    for (Index c = 0; c < t.cells; ++c) {
        const Cell sum = t.in_col(have, c), want = t.in_col(t.q, c), less = least(want / sum, one);
        slack_of_cols += size_of(sum - want);
        less.store(scale_of + lanes * c);
        greatest(want - sum * less, none).store(t.rest_q + lanes * c);
    }
    for (Index x = 0; x < t.rows; ++x) {
        Cell *line = t.plan + x * t.cells, sum(0.0);
        for (Index c = 0; c < t.cells; ++c) {
            line[c] *= t.in_col(scale_of, c);
            sum += line[c];
        }
        t.put_row(t.rest_p, x, greatest(t.in_row(t.p, x) - t.summed(sum), none));
    }
    return slack + t.summed(slack_of_cols);
}

// mass · cost, and 0 if the mass is 0 (also at cost +inf); NaN stays NaN.
inline Pack<lanes> priced(const Pack<lanes> &mass, const Pack<lanes> &cost) {
    const Pack<lanes> tiny(std::numeric_limits<double>::denorm_min());
    return choose(mass, tiny, Pack<lanes>(0.0), mass * cost);
}

// Adds the rank-one correction, the second half of Algorithm 2 of Altschuler et al. Returns the
// cost, which is not finite if there is mass on forbidden pairs.
template <int W> Pack<lanes> complete(const Cells<W> &t) {
    using Cell = Pack<lanes>;
    const Cell none(0.0), speck(negligible);
    Cell missing(0.0), price(0.0);
    for (Index x = 0; x < t.rows; ++x)
        missing += t.in_row(t.rest_p, x);
    const Cell scale = choose(speck, missing, 1.0 / missing, none);
    for (Index x = 0; x < t.rows; ++x) {
        const Cell share = t.in_row(t.rest_p, x) * scale;
        for (Index c = 0; c < t.cells; ++c) {
            const Cell cost = t.cost[x * t.cells + c];
            Cell &mass = t.plan[x * t.cells + c];
            mass = fused(share, t.in_col(t.rest_q, c), mass);
            mass = choose(cost, Cell(infinity), mass, choose(mass, speck, none, mass));
            price += priced(mass, cost);
        }
    }
    return t.summed(price);
}

// Σ plan · cost.
template <int W> Pack<lanes> price(const Cells<W> &t) {
    Pack<lanes> sum(0.0);
    for (Index k = 0; k < t.rows * t.cells; ++k)
        sum += priced(t.plan[k], t.cost[k]);
    return t.summed(sum);
}

// Replaces the plan of one lane by an optimal transport plan; returns whether there is one.
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

// Whether `exchange` applies: a small table, and all finite costs are below `excluded`.
template <int W> bool exchangeable(const Cells<W> &t) {
    if (t.rows * t.cols > exchanged)
        return false;
    Pack<lanes> top(0.0);
    for (Index k = 0; k < t.rows * t.cells; ++k)
        top = greatest(unless_infinite(t.cost[k], size_of(t.cost[k])), top);
    return largest(top) < excluded;
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

// Stores the results for the edges of a run.
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

// Recomputes the lanes for which `Proj` failed (cost not finite), or all lanes (η = ∞), by exact
// transport. Returns the costs.
template <int W>
Pack<lanes> mended(const Cells<W> &t, const Run &run, const Pack<lanes> &found, bool all,
                   Transport &solve) {
    double price_of[lanes];
    found.store(price_of);
    bool fits[lanes], changed = false;
    for (int k = 0; k < lanes; ++k) {
        const bool redo = k < int(run.count) && (all || !(std::abs(price_of[k]) < infinity));
        fits[k] = redo ? transported(t, k, solve) : true;
        changed = changed || redo;
    }
    if (!all && exchangeable(t)) {
        exchange_cells(t);
        changed = true;
    }
    if (changed)
        price(t).store(price_of);
    return Pack<lanes>::of([&](int k) { return fits[k] ? price_of[k] : infinity; });
}

// Couplings by full tables: `Proj`, exact transport where it fails, and `exchange` in small tables.
template <int W, class Edges>
void couple_generally(const Cells<W> &t, const Edges &edges, const Run &run, const Couplings &ask,
                      Transport &solve) {
    using Cell = Pack<lanes>;
    const Answers<W> answers{run, ask};
    fill_costs(t, edges);
    const bool exactly = ask.eta == infinity;
    Cell entropy(0.0), slack(0.0), found(0.0);
    if (!exactly) {
        const Soft<W> soft = soften(t, ask.eta);
        entropy = soft.entropy;
        slack = shrink(t, soft.scale);
        found = complete(t);
    }
    answers.put(ask.cost, mended(t, run, found, exactly, solve));
    answers.put(ask.entropy, entropy);
    answers.put(ask.slack, slack);
    answers.put_plan(t);
}

template <int W, class Edges>
Softened<W> softened(const Cells<W> &t, const Edges &edges, double eta) {
    if constexpr (Edges::banded) {
        const Flushed flushed;
        BandedCoupling<W, Edges, Cells<W>> made(t, edges, eta);
        const Pack<W> entropy = made.soften(true);
        return {entropy, made.shrink()};
    } else {
        return edges.softened(t.packs(t.row), t.packs(t.col), t.packs(t.p), t.packs(t.q), t.spare,
                              eta);
    }
}

template <int W> bool are_numbers(const Pack<W> &a) {
    return largest(size_of(a)) < infinity && total(a) == total(a);
}

// A function that reads κ and the marginals into cells.
template <int W> using Load = Task<const Cells<W> &>;

// Stores entropy and slack of the soft masses for edges whose coupling does not depend on them.
// Uses full tables if the family's closed form gives a number that is not finite.
template <int W, class Edges>
void answer_softly(const Cells<W> &t, const Edges &edges, const Run &run, const Couplings &ask,
                   const Load<W> &load) {
    const Answers<W> answers{run, ask};
    Softened<W> soft{Pack<W>(0.0), Pack<W>(0.0)};
    if (ask.eta < infinity)
        soft = softened(t, edges, ask.eta);
    if (are_numbers(soft.entropy) && are_numbers(soft.slack)) {
        answers.put(ask.entropy, soft.entropy);
        answers.put(ask.slack, soft.slack);
        return;
    }
    Room own(Cells<W>::room_for(run.rows, run.cols, true));
    const Cells<W> tables(own.numbers(), run, true);
    load(tables);
    fill_costs(tables, edges);
    const Soft<W> anew = soften(tables, ask.eta);
    answers.put(ask.entropy, anew.entropy);
    answers.put(ask.slack, shrink(tables, anew.scale));
}

// Couplings of families that know their optimal transport plan.
template <int W, class Edges>
void couple_in_closed_form(const Cells<W> &t, const Edges &edges, const Run &run,
                           const Couplings &ask) {
    const Answers<W> answers{run, ask};
    const Pack<W> *p = t.packs(t.p), *q = t.packs(t.q);
    answers.put(ask.cost, edges.transport_cost(p, q, t.spare));
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

// Couplings of families with a band, in time proportional to the size of the band. Returns false
// without storing anything if a cost is not finite.
template <int W, class Edges>
bool couple_in_bands(const Cells<W> &t, const Edges &edges, const Run &run, const Couplings &ask) {
    const Answers<W> answers{run, ask};
    const Flushed flushed;
    BandedCoupling<W, Edges, Cells<W>> made(t, edges, ask.eta);
    const Pack<W> entropy = made.soften(ask.entropy != nullptr), slack = made.shrink();
    const Pack<W> price = made.complete();
    if (!are_numbers(price))
        return false;
    answers.put(ask.cost, price);
    answers.put(ask.entropy, entropy);
    answers.put(ask.slack, slack);
    if (ask.plan)
        made.masses([&](Index x, Index y, const Pack<W> &mass) {
            mass.each(int(run.count), [&](int k, double one) {
                ask.plan[ask.plan_at[run.first + k] + x * t.cols + y] = one;
            });
        });
    return true;
}

enum class Way { closed, banded, general };

template <class Edges> Way way_of(const Edges &edges, const Run &run, double eta) {
    if constexpr (Edges::closed_transport) {
        if (edges.knows_transport())
            return Way::closed;
    } else if constexpr (Edges::banded) {
        if (edges.knows_band() && eta < infinity && run.rows * run.cols > exchanged)
            return Way::banded;
    }
    return Way::general;
}

// Couplings of the edges of a run; load(cells) reads κ and the marginals. Not inlined, so that it
// is compiled once per kind of edges and not once per caller.
template <int W, class Edges>
[[gnu::noinline]] void couple_run(double *room, const Edges &edges, const Run &run,
                                  const Couplings &ask, Transport &solve, const Load<W> &load) {
    const Way way = way_of(edges, run, ask.eta);
    const Cells<W> cells(room, run, way == Way::general);
    load(cells);
    if constexpr (Edges::closed_transport) {
        if (way == Way::closed) {
            couple_in_closed_form(cells, edges, run, ask);
            if (ask.entropy || ask.slack)
                answer_softly(cells, edges, run, ask, load);
            return;
        }
    } else if constexpr (Edges::banded) {
        if (way == Way::banded) {
            if (couple_in_bands(cells, edges, run, ask))
                return;
            Room own(Cells<W>::room_for(run.rows, run.cols, true));
            const Cells<W> tables(own.numbers(), run, true);
            load(tables);
            return couple_generally(tables, edges, run, ask, solve);
        }
    }
    couple_generally(cells, edges, run, ask, solve);
}

template <int W, class Edges> Index room_of(const Edges &edges, const Run &run, double eta) {
    const Way way = way_of(edges, run, eta);
    Index numbers = Cells<W>::room_for(run.rows, run.cols, way == Way::general);
    if constexpr (Edges::banded)
        if (way != Way::general)
            numbers += message_room(run.rows, W) +
                       BandedCoupling<W, Edges, Cells<W>>::room(run.rows, edges.reach);
    return numbers;
}

// Couplings of the edges at positions first..last-1 of the list.
inline void couple(const Layout &lay, const EdgeList &list, const Couplings &ask, Index first,
                   Index last) {
    Index numbers = 0;
    each_run(lay, list, first, last, 1, [&](const auto &edges, const Run &run) {
        constexpr int W = std::decay_t<decltype(edges)>::width;
        numbers = std::max(numbers, room_of<W>(edges, run, ask.eta));
    });
    Room room(numbers);
    Transport solve;
    each_run(lay, list, first, last, 1, [&](const auto &edges, const Run &run) {
        constexpr int W = std::decay_t<decltype(edges)>::width;
        couple_run<W>(room.numbers(), edges, run, ask, solve,
                      [&](const Cells<W> &cells) { cells.load(lay, run, ask); });
    });
}

} // namespace softmap
