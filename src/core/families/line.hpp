// Optimal transport between two label distributions p and q with cost weight · min(|x - y|, T).
//
// In units of the weight, mass moves between neighbouring labels at cost 1 per step, or through a
// hub at cost T / 2 in and T / 2 out. Let B[x] = Σ_{y <= x} p[y] - q[y], and let u[x] be the net
// mass that labels 0..x send into the hub. The rest steps from x to x + 1, so that the cost is
//
//     Σ |B[x] - u[x]| + T / 2 · Σ |u[x] - u[x - 1]|
//
// with u = 0 before the first label and at the last one. This is total variation denoising in one
// dimension, solved by dynamic programming. The least cost up to x is a convex piecewise linear
// function of u[x] with slopes from -T / 2 to T / 2; it is stored as the list of its breakpoints,
// where the slope rises by 1. A label adds two breakpoints at B[x]; minimising over u[x] given
// u[x + 1] then clips the slopes, which removes the smallest and the largest breakpoint. So the
// k-th breakpoint becomes B[x], or the previous one if that is larger, or the next one if that is
// smaller. In the backward pass each u[x] is u[x + 1] clamped to the two removed breakpoints.
//
// If T lies strictly between integers K and K + 1, the slope rises by T - K at K + 1 breakpoints
// and by 1 - (T - K) at K others. The two lists are updated independently, and the list of K
// determines u. The same u is optimal for all such T, and for T = K and T = K + 1.
#pragma once

#include "dense.hpp"

namespace softmap {

// Cost and plan of that transport problem, in all W lanes at once.
template <int W> class LineTransport {
  public:
    using P = Pack<W>;

    // `reach` is T rounded up to an integer, at most the number of labels.
    LineTransport(Index labels, Index reach, P *room)
        : labels_(labels), places_(reach - 1), hub_(room), high_(hub_ + labels),
          excess_(high_ + labels), place_(excess_ + labels) {}
    static constexpr Index room(Index labels) { return 4 * labels; }

    // An upper bound on the cost of the cheapest coupling, at `weight` per step and `ceiling`
    // through the hub.
    //
    // Let u = 2^-53 and let D be the mass that must move, half of Σ |p - q|. Moving it costs at
    // least D · min(weight, ceiling). Each difference p - q is rounded by at most u times itself,
    // and `find` carries the rounding errors of its sums along, so each B is wrong by at most 3 u
    // D, plus terms in u². The hub masses are values of B: they are compared, never computed with.
    //
    // - T >= 1: the same hub masses are feasible for the exact B, and cost more by at most the
    //   error of B at each label: 3 u D labels_ weight in total.
    // - T < 1: the hub masses equal B. The difference of two neighbours is wrong by at most 6 u D,
    //   at half of `ceiling`: 3 u D labels_ ceiling in total.
    //
    // Both are at most 3 u labels_ times the cost. The sums below have nonnegative terms, so each
    // of at most labels_ + 5 successive operations loses at most u times the cost. The last factor
    // adds 8 u labels_, which is more than all losses together.
    P price(const P *p, const P *q, const P &weight, const P &ceiling) const {
        find(p, q);
        P steps(0.0), visits(0.0), before(0.0);
        for (Index x = 0; x < labels_; ++x) {
            steps += size_of(excess_[x] - hub_[x]);
            visits += size_of(hub_[x] - before);
            before = hub_[x];
        }
        return (weight * steps + P(0.5) * ceiling * visits) * P(1.0 + double(labels_) * 0x1p-50);
    }

    // Calls put(x, y, mass) for all pairs. The mass min(p[x], q[x]) stays at x. The rest of p and
    // the outflow of the hub are matched, in the order of labels, with the rest of q and the inflow
    // of the hub. The mass that p sends into the hub is spread over the mass that q receives from
    // it in proportion.
    template <class Put> void masses(const P *p, const P *q, Put put) const {
        const P none(0.0);
        find(p, q);
        P *given = excess_, *taken = high_, *out = place_, *in = hub_; // given, taken: prefix sums
        P before(0.0), gave(0.0), took(0.0), missing(0.0);
        for (Index x = 0; x < labels_; ++x) {
            const P into = hub_[x] - before;
            before = hub_[x];
            given[x] = gave, taken[x] = took;
            gave += extra(p, q, x) + greatest(none - into, none);
            took += extra(q, p, x) + greatest(into, none);
        }
        const auto stepping = [&](Index x, Index y) {
            const P end = least(given[x] + extra(p, q, x), taken[y] + extra(q, p, y));
            return greatest(end - greatest(given[x], taken[y]), none);
        };
        for (Index x = 0; x < labels_; ++x) {
            out[x] = extra(p, q, x), in[x] = extra(q, p, x);
            for (Index y = 0; y < labels_; ++y) {
                out[x] -= stepping(x, y);
                in[x] -= stepping(y, x);
            }
            out[x] = greatest(out[x], none), in[x] = greatest(in[x], none);
            missing += out[x];
        }
        for (Index x = 0; x < labels_; ++x) {
            const P share = choose(none, missing, out[x] / missing, none);
            for (Index y = 0; y < labels_; ++y) {
                const P kept = x == y ? least(p[x], q[x]) : none;
                put(x, y, kept + stepping(x, y) + share * in[y]);
            }
        }
    }

  private:
    static P extra(const P *p, const P *q, Index x) { return p[x] - least(p[x], q[x]); }

    // Computes B into `excess_` and u into `hub_`.
    void find(const P *p, const P *q) const {
        P sum(0.0), errors(0.0);
        for (Index k = 0; k < places_; ++k)
            place_[k] = P(0.0);
        for (Index x = 0; x + 1 < labels_; ++x) {
            const P more = p[x] - q[x], next = sum + more, part = next - sum;
            errors += (sum - (next - part)) + (more - part); // the rounding error of `next`
            sum = next;
            add(x, sum + errors);
        }
        P u(0.0);
        excess_[labels_ - 1] = hub_[labels_ - 1] = u;
        for (Index x = labels_ - 2; x >= 0; --x)
            hub_[x] = u = greatest(hub_[x], least(u, high_[x]));
    }

    // Adds label x with B[x] = excess: the removed smallest and largest breakpoints go into hub_[x]
    // and high_[x].
    void add(Index x, const P &excess) const {
        excess_[x] = hub_[x] = high_[x] = excess;
        if (places_ == 0)
            return;
        hub_[x] = least(place_[0], excess);
        high_[x] = greatest(place_[places_ - 1], excess);
        P before = hub_[x];
        for (Index k = 0; k + 1 < places_; ++k) {
            const P own = place_[k];
            place_[k] = greatest(before, least(excess, place_[k + 1]));
            before = own;
        }
        place_[places_ - 1] = greatest(before, excess);
    }

    Index labels_, places_;
    P *hub_, *high_, *excess_, *place_;
};

} // namespace softmap
