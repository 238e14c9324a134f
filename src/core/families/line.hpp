// The cheapest coupling of two distributions of labels where a pair costs weight · min(|x - y|, T).
//
// Mass goes from label to label at 1 a step, or through a hub at T / 2 in and T / 2 out. Let B[x]
// be what p has more than q up to label x, and u[x] what of it went into the hub. The rest of it
// steps from x to x + 1, so that the price is
//
//     Σ |B[x] - u[x]| + T / 2 · Σ |u[x] - u[x - 1]|
//
// with u = 0 before the first label and at the last: total variation in one dimension. The least
// price up to x is a convex function of u[x] whose slopes are from -T / 2 to T / 2, known by the
// places where its slope rises by 1. A label puts two more of them at B[x]. Then the least and the
// greatest are taken away, since the way to u[x + 1] leads through the hub. So the k-th place
// becomes B[x], or the place before it if that is greater, or the place after it if that is less.
// Backwards, each u[x] is as near to u[x + 1] as the two that were taken away allow.
//
// Where T is not a whole number but lies between K and K + 1, the slope rises by T - K at K + 1
// places and by the rest to 1 at K others; both kinds go their own way, and the K decide on u. The
// same u is cheapest for all such T, and for K and K + 1 themselves.
#pragma once

#include "dense.hpp"

namespace softmap {

template <int W> class LineTransport {
  public:
    using P = Pack<W>;

    // `reach` is the least whole number that is not less than T, or the number of labels.
    LineTransport(Index labels, Index reach, P *room)
        : labels_(labels), places_(reach - 1), hub_(room), high_(hub_ + labels),
          excess_(high_ + labels), place_(excess_ + labels) {}
    static constexpr Index room(Index labels) { return 4 * labels; }

    // The price in units of `weight` a step and `ceiling` through the hub, rounded up by more than
    // its sums may lose: their terms are not negative, so each of the labels_ + 5 operations that
    // follow each other loses at most 2^-53 of the price, and the factor allows for 8 labels_.
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

    // put(x, y, mass) for all pairs. What both have stays where it is. Of the rest, what p and the
    // hub give, label by label, goes to what q and the hub take in the same order; what the hub
    // takes of p goes anywhere it gives to q.
    template <class Put> void masses(const P *p, const P *q, Put put) const {
        const P none(0.0);
        find(p, q);
        P *given = excess_, *taken = high_, *out = place_, *in = hub_; // sums before each label
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

    // B into `excess_`, u into `hub_`.
    void find(const P *p, const P *q) const {
        P sum(0.0), errors(0.0);
        for (Index k = 0; k < places_; ++k)
            place_[k] = P(0.0);
        for (Index x = 0; x + 1 < labels_; ++x) {
            const P more = p[x] - q[x], next = sum + more, part = next - sum;
            errors += (sum - (next - part)) + (more - part); // what rounding took off
            sum = next;
            add(x, sum + errors);
        }
        P u(0.0);
        excess_[labels_ - 1] = hub_[labels_ - 1] = u;
        for (Index x = labels_ - 2; x >= 0; --x)
            hub_[x] = u = greatest(hub_[x], least(u, high_[x]));
    }

    // One label: what is taken away goes into `hub_` and `high_`.
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
