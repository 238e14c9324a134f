// Potts potentials: cost `weight` if the labels differ, 0 if they are equal.
#pragma once

#include "dense.hpp"

#include <algorithm>

namespace softmap {

// View of W edges; see EdgesBase.
template <int W> struct PottsEdges : EdgesBase<W, PottsEdges<W>> {
    static constexpr bool closed_transport = true;
    static constexpr bool often_dense = true; // for negative weights (antiferromagnetic models)

    Pack<W> weight;
    double greatest_weight;
    bool attractive; // weights in [0, ∞)
    bool plain;      // attractive, with equal label counts: messages have a closed form, O(labels)

    PottsEdges(Index senders, Index receivers, const Pack<W> &weights)
        : EdgesBase<W, PottsEdges<W>>{senders, receivers}, weight(weights),
          greatest_weight(largest(weights)) {
        attractive = largest(0.0 - weights) <= 0.0 && greatest_weight < infinity;
        plain = attractive && senders == receivers;
    }

    Pack<W> entry(Index x, Index y) const { return x == y ? Pack<W>(0.0) : weight; }

    void message(const Pack<W> *a, Pack<W> *out, double *room, double eta) const {
        plain ? plain_message(a, out, room, eta) : dense_message(*this, a, out, room, eta);
    }

    // The closed form of `message`; requires `plain`.
    void plain_message(const Pack<W> *a, Pack<W> *out, double *, double eta) const {
        eta == infinity ? hard(a, out) : soft(a, out, eta);
    }
    void mild_message(const Pack<W> *a, Pack<W> *out, double *room, double eta) const {
        plain_message(a, out, room, eta);
    }

    // Optimal plan: mass min(p[x], q[x]) stays at x, and the rest may move between any two labels.
    bool knows_transport() const { return attractive; }

    Pack<W> transport_cost(const Pack<W> *p, const Pack<W> *q, double *) const {
        return weight * moved(p, q);
    }

    template <class Put>
    void transport(const Pack<W> *p, const Pack<W> *q, double *, Put put) const {
        const Pack<W> none(0.0), all = moved(p, q);
        for (Index x = 0; x < this->senders; ++x) {
            // a quotient of at most 1: the reciprocal of a tiny mass is infinite
            const Pack<W> leaving = choose(none, all, (p[x] - kept(p, q, x)) / all, none);
            for (Index y = 0; y < this->receivers; ++y)
                put(x, y, x == y ? kept(p, q, x) : leaving * (q[y] - kept(p, q, y)));
        }
    }

    Softened<W> softened(const Pack<W> *row, const Pack<W> *col, const Pack<W> *p, const Pack<W> *q,
                         double *room, double eta) const;

  private:
    Index shared() const { return std::min(this->senders, this->receivers); }
    Pack<W> kept(const Pack<W> *p, const Pack<W> *q, Index x) const {
        return x < shared() ? least(p[x], q[x]) : Pack<W>(0.0);
    }
    Pack<W> moved(const Pack<W> *p, const Pack<W> *q) const {
        Pack<W> out(0.0);
        for (Index x = 0; x < this->senders; ++x)
            out += p[x] - kept(p, q, x);
        return out;
    }

    void hard(const Pack<W> *a, Pack<W> *out) const {
        const Pack<W> far = hard_minimum<W>(this->senders, [&](Index x) { return a[x]; }) + weight;
        SOFTMAP_UNROLL_ALL
        for (Index y = 0; y < this->receivers; ++y)
            out[y] = least(a[y], far);
    }

    // out[y] = -(1/η) log Σ_x exp(-η (a[x] + C(x, y))), with one exponential and one logarithm per
    // label unless η · weight > `safe`.
    void soft(const Pack<W> *a, Pack<W> *out, double eta) const {
        const Index labels = this->senders;
        const Pack<W> cold(-eta), small(-1.0 / eta);
        const Pack<W> low = hard_minimum<W>(labels, [&](Index x) { return a[x]; });
        Pack<W> mass(0.0);
        SOFTMAP_UNROLL_ALL
        for (Index x = 0; x < labels; ++x) {
            out[x] = exp(cold * (a[x] - low));
            mass += out[x];
        }
        if (eta * greatest_weight <= Pack<W>::safe) {
            const Pack<W> q = exp(cold * weight);
            const Pack<W> stay = 1.0 - q, leave = q * mass;
            SOFTMAP_UNROLL_ALL
            for (Index y = 0; y < labels; ++y)
                out[y] = fused(small, log(fused(stay, out[y], leave)), low);
            return;
        }
        const Pack<W> far = low + weight;
        SOFTMAP_UNROLL_ALL
        for (Index y = 0; y < labels; ++y) {
            const Pack<W> others = greatest(mass - out[y], Pack<W>(Pack<W>::tiny));
            const Pack<W> best = least(a[y], far);
            const Pack<W> both = fused(exp(cold * (far - best)), others, exp(cold * (a[y] - best)));
            out[y] = fused(small, log(both), best);
        }
    }
};

// In O(labels): the masses of pairs of unequal labels are a product G · E_x · F_y, whose sum over
// all pairs is corrected on the diagonal. Cancellation is harmless: with weights >= 0 the term
// subtracted for an equal pair is at most the mass of that pair.
template <int W>
Softened<W> PottsEdges<W>::softened(const Pack<W> *row, const Pack<W> *col, const Pack<W> *p,
                                    const Pack<W> *q, double *room, double eta) const {
    using P = Pack<W>;
    const Index rows = this->senders, cols = this->receivers, both = shared();
    const P none(0.0);
    const auto mass_of = [&](const P &value, const P &low) {
        const P mass = unless_infinite(value, exp(P(-eta) * (value - low)));
        return choose(P(trace), mass, mass, none);
    };
    const auto above = [](const P &value, const P &low) { return least(value - low, P(1e300)); };
    P *off = reinterpret_cast<P *>(room), *same = off + rows, *far = same + rows; // far: cols
    const P low_row = hard_minimum<W>(rows, [&](Index x) { return row[x]; });
    const P low_col = hard_minimum<W>(cols, [&](Index y) { return col[y]; });
    const P apart = low_row + low_col + weight;
    P low = apart;
    for (Index x = 0; x < both; ++x)
        low = least(row[x] + col[x], low);
    const P factor = mass_of(apart, low), base = apart - low;
    P sum(0.0), sum_above(0.0);
    for (Index y = 0; y < cols; ++y) {
        far[y] = mass_of(col[y], low_col);
        sum += far[y];
        sum_above = fused(far[y], above(col[y], low_col), sum_above);
    }
    P total(0.0), mean(0.0);
    for (Index x = 0; x < rows; ++x) {
        const P product = factor * mass_of(row[x], low_row);
        off[x] = choose(P(trace), product, product, none);
        same[x] = x < both ? mass_of(row[x] + col[x], low) : none;
        const P own = x < both ? far[x] : none, others = sum - own;
        total += fused(off[x], others, same[x]);
        mean += fused(off[x] * (base + above(row[x], low_row)), others, off[x] * sum_above);
        if (x < both) {
            mean -= off[x] * own * above(col[x], low_col);
            mean = fused(same[x], above(row[x] + col[x], low), mean);
        }
    }
    const P scale = 1.0 / total;
    P slack(0.0), all(0.0);
    for (Index x = 0; x < rows; ++x) {
        const P own = x < both ? far[x] : none;
        const P have = fused(off[x], sum - own, same[x]) * scale;
        const P shrunk = least(p[x] / have, P(1.0));
        slack += size_of(have - p[x]);
        off[x] *= shrunk;
        same[x] *= shrunk;
        all += off[x];
    }
    for (Index y = 0; y < cols; ++y) {
        const P others = y < both ? all - off[y] : all;
        const P have = fused(far[y], others, y < both ? same[y] : none);
        slack += size_of(have * scale - q[y]);
    }
    return {fused(P(eta) * mean, scale, log(total)), slack};
}

struct Potts : FamilyBase {
    static constexpr const char *name = "potts";

    // Edges with a weight outside [0, ∞) are kept apart: one of them would disable the closed forms
    // for all lanes.
    static bool alike(const Layout &lay, Index g, Index e, Index f) {
        const auto attractive = [](double w) { return 0.0 <= w && w < infinity; };
        return attractive(lay.weight_of(g, e)) == attractive(lay.weight_of(g, f));
    }

    template <int W>
    static PottsEdges<W> at(const Layout &lay, Index g, const auto *edges, int receiver) {
        const Index h = 2 * Index(edges[0]) + receiver;
        return {lay.labels_at(h ^ 1), lay.labels_at(h),
                Pack<W>::of([&](int k) { return lay.weight_of(g, edges[k]); })};
    }

    static PottsEdges<lanes> tile(const Layout &, const Schedule &plan, const Block &b,
                                  bool forward) {
        return {forward ? b.early : b.late, forward ? b.late : b.early,
                Pack<lanes>::load(plan.weights_of(b))};
    }

    static Index packed_size(Index, Index) { return 0; }
};

} // namespace softmap
