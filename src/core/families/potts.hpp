// Potts: a weight where labels differ, 0 where they agree.
#pragma once

#include "dense.hpp"

namespace softmap {

inline constexpr double safe_exponent = 600.0; // exp(-600) is far from underflow, products too

template <int W> struct PottsEdges : EdgesBase<W, PottsEdges<W>> {
    Pack<W> weight;
    double greatest_weight;
    bool plain; // weights in [0, ∞), equally many labels at both ends: closed form, O(labels)

    PottsEdges(Index senders, Index receivers, const Pack<W> &weights)
        : EdgesBase<W, PottsEdges<W>>{senders, receivers}, weight(weights),
          greatest_weight(largest(weights)) {
        plain = senders == receivers && largest(0.0 - weights) <= 0.0 && greatest_weight < infinity;
    }

    Pack<W> entry(Index x, Index y) const { return x == y ? Pack<W>(0.0) : weight; }

    void message(const Pack<W> *a, Pack<W> *out, double *room, double eta) const {
        if (!plain)
            dense_message(*this, a, out, room, eta);
        else if (eta == infinity)
            hard(a, out);
        else
            soft(a, out, eta);
    }

  private:
    void hard(const Pack<W> *a, Pack<W> *out) const {
        const Pack<W> far = hard_minimum<W>(this->senders, [&](Index x) { return a[x]; }) + weight;
        for (Index y = 0; y < this->receivers; ++y)
            out[y] = least(a[y], far);
    }

    // One exponential and one logarithm per label, unless η · weight is large.
    void soft(const Pack<W> *a, Pack<W> *out, double eta) const {
        const Index labels = this->senders;
        const Pack<W> cold(-eta), small(-1.0 / eta);
        const Pack<W> low = hard_minimum<W>(labels, [&](Index x) { return a[x]; });
        Pack<W> mass(0.0);
        for (Index x = 0; x < labels; ++x) {
            out[x] = exp(cold * (a[x] - low));
            mass += out[x];
        }
        if (eta * greatest_weight <= safe_exponent) {
            const Pack<W> q = exp(cold * weight);
            const Pack<W> stay = 1.0 - q, leave = q * mass;
            for (Index y = 0; y < labels; ++y)
                out[y] = low + small * log(stay * out[y] + leave);
            return;
        }
        const Pack<W> far = low + weight;
        for (Index y = 0; y < labels; ++y) {
            const Pack<W> others = greatest(mass - out[y], Pack<W>(1e-300));
            const Pack<W> best = least(a[y], far);
            const Pack<W> both = exp(cold * (a[y] - best)) + exp(cold * (far - best)) * others;
            out[y] = best + small * log(both);
        }
    }
};

struct Potts {
    static constexpr const char *name = "potts";

    template <int W, class S>
    static PottsEdges<W> at(const Layout<S> &lay, Index g, const Index *edges, int receiver) {
        const Index h = 2 * edges[0] + receiver;
        return {lay.labels_at(h ^ 1), lay.labels_at(h),
                Pack<W>::of([&](int k) { return lay.weight_of(g, edges[k]); })};
    }

    template <class S>
    static PottsEdges<lanes> tile(const Layout<S> &, const Schedule<S> &plan, const Block &b,
                                  bool forward) {
        return {forward ? b.early : b.late, forward ? b.late : b.early,
                Pack<lanes>::load(plan.weight + b.lane)};
    }

    static Index packed_size(Index, Index) { return 0; }
};

} // namespace softmap
