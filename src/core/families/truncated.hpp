// Truncated potentials: weight · min(distance(|x - y|), truncation), distance linear or quadratic.
#pragma once

#include "bands.hpp"
#ifndef SOFTMAP_DEVICE
#include "gaussians.hpp"
#endif
#include "line.hpp"
#include "potts.hpp"

#include <cmath>

namespace softmap {

struct LinearDistance {
    static constexpr const char *name = "linear";
    static constexpr bool linear = true;
    template <int W> using Band = LinearBand<W>;
    static double of(Index k) { return double(k); }
    static double inverse(double distance) { return distance; }
};

struct QuadraticDistance {
    static constexpr const char *name = "quadratic";
    static constexpr bool linear = false;
    template <int W> using Band = TableBand<W, QuadraticDistance>;
    static double of(Index k) { return double(k * k); }
    static double inverse(double distance) { return std::sqrt(distance); }
};

// View of W edges; see EdgesBase.
template <int W, class Distance> struct TruncatedEdges : EdgesBase<W, TruncatedEdges<W, Distance>> {
    static constexpr bool banded = true;
    static constexpr bool closed_transport = Distance::linear;
    using Band = typename Distance::template Band<W>;

    Pack<W> weight, truncation;
    Index reach;     // smallest label difference whose cost is truncated in every lane
    Pack<W> ceiling; // the cost of label pairs at least `reach` apart
    double steepest; // largest cost that the recursions over labels encounter
    bool plain;      // weights in [0, ∞) and equal label counts at both endpoints

    TruncatedEdges(Index senders, Index receivers, const Pack<W> &weights, const Pack<W> &cut,
                   Index reaches)
        : EdgesBase<W, TruncatedEdges<W, Distance>>{senders, receivers}, weight(weights),
          truncation(cut), reach(reaches) {
        ceiling = weight * least(Pack<W>(Distance::of(senders)), truncation);
        steepest = largest(greatest(weight * Pack<W>(double(reach)), ceiling));
        plain = senders == receivers && largest(0.0 - weights) <= 0.0;
    }

    Pack<W> entry(Index x, Index y) const {
        return weight * least(Pack<W>(Distance::of(x < y ? y - x : x - y)), truncation);
    }

    void message(const Pack<W> *a, Pack<W> *out, double *room, double eta) const {
        if (plain && Distance::linear && eta < infinity && eta * steepest > Pack<W>::safe)
            soft_scaled(a, out, reinterpret_cast<Pack<W> *>(room), eta);
#ifndef SOFTMAP_DEVICE
        else if (plain && !Distance::linear && reach >= wide)
            by_parabolas(a, out, room, eta);
#endif
        else if (plain)
            plain_message(a, out, room, eta);
        else
            dense_message(*this, a, out, room, eta);
    }

    // The message if `plain` holds. It needs little scratch memory, so that GPU kernels can call
    // it.
    void plain_message(const Pack<W> *a, Pack<W> *out, double *room, double eta) const {
        if (eta == infinity || (Distance::linear && eta * steepest <= Pack<W>::safe))
            mild_message(a, out, room, eta);
        else
            soft_window(a, out, reinterpret_cast<Pack<W> *>(room), eta);
    }

    // As `plain_message`, if the sums of exponentials are known to stay within range (η · steepest
    // <= `safe`).
    void mild_message(const Pack<W> *a, Pack<W> *out, double *room, double eta) const {
        const auto work = reinterpret_cast<Pack<W> *>(room);
        if constexpr (Distance::linear)
            eta == infinity ? hard_linear(a, out) : soft_linear(a, out, work, eta);
        else
            eta == infinity ? hard_window(a, out, work) : soft_window(a, out, work, eta);
    }

    // Whether couplings can be computed with `Band`.
    bool knows_band() const { return plain && steepest < infinity; }

    bool knows_transport() const { return plain; }

    Pack<W> transport_cost(const Pack<W> *p, const Pack<W> *q, double *room) const {
        return line(room).price(p, q, weight, ceiling);
    }
    template <class Put>
    void transport(const Pack<W> *p, const Pack<W> *q, double *room, Put put) const {
        line(room).masses(p, q, put);
    }

    static Index reach_of(double truncation, Index labels) {
        const double cut = Distance::inverse(truncation);
        Index reach = cut >= double(labels) ? labels : cut > 1.0 ? Index(std::ceil(cut)) : 1;
        while (reach < labels && Distance::of(reach) < truncation)
            ++reach; // corrects an inverse that was rounded down
        return reach;
    }

  private:
    LineTransport<W> line(double *room) const {
        return {this->senders, reach, reinterpret_cast<Pack<W> *>(room)};
    }
    Index first(Index y) const { return y - reach + 1 > 0 ? y - reach + 1 : 0; }
    Index last(Index y) const { return y + reach < this->senders ? y + reach : this->senders; }

    Pack<W> lowest(const Pack<W> *a) const {
        return hard_minimum<W>(this->senders, [&](Index x) { return a[x]; });
    }

    // out[k] = cost of label difference k for k <= reach; larger differences cost the same as
    // reach.
    void profile(Pack<W> *out) const {
        for (Index k = 0; k < reach; ++k)
            out[k] = weight * Pack<W>(Distance::of(k));
        out[reach] = ceiling;
    }

    // Hard message with a linear distance: forward and backward distance transform, then
    // truncation.
    void hard_linear(const Pack<W> *a, Pack<W> *out) const {
        Pack<W> low = a[0], value = a[0];
        out[0] = value;
        SOFTMAP_UNROLL_ALL
        for (Index y = 1; y < this->receivers; ++y) {
            low = least(a[y], low);
            value = least(a[y], value + weight);
            out[y] = value;
        }
        const Pack<W> far = low + ceiling;
        value += weight;
        SOFTMAP_UNROLL_ALL
        for (Index y = this->receivers - 1; y >= 0; --y) {
            value = least(out[y], value);
            out[y] = least(value, far);
            value += weight;
        }
    }

    void hard_window(const Pack<W> *a, Pack<W> *out, Pack<W> *near) const {
        profile(near);
        const Pack<W> far = lowest(a) + ceiling;
        for (Index y = 0; y < this->receivers; ++y) {
            out[y] = far;
            for (Index x = first(y); x < last(y); ++x)
                out[y] = least(a[x] + near[x < y ? y - x : x - y], out[y]);
        }
    }

#ifndef SOFTMAP_DEVICE
    // The smallest reach from which on a sum over a window takes longer, in all lanes at once, than
    // `Gaussians` and `Parabolas` lane by lane (decision 100).
    static constexpr Index wide = 96;

    // The quadratic message, one lane after the other.
    void by_parabolas(const Pack<W> *a, Pack<W> *out, double *room, double eta) const {
        const Index labels = this->senders;
        double weights[W], ceilings[W];
        weight.store(weights);
        ceiling.store(ceilings);
        const double *from = reinterpret_cast<const double *>(a);
        double *to = reinterpret_cast<double *>(out);
        if constexpr (W == 1) {
            one_by_parabolas(weights[0], ceilings[0], from, to, room, eta);
        } else {
            double *own = room, *found = own + labels, *work = found + labels;
            for (int k = 0; k < W; ++k) {
                for (Index x = 0; x < labels; ++x)
                    own[x] = from[x * W + k];
                one_by_parabolas(weights[k], ceilings[k], own, found, work, eta);
                for (Index y = 0; y < labels; ++y)
                    to[y * W + k] = found[y];
            }
        }
    }
    void one_by_parabolas(double factor, double top, const double *a, double *out, double *room,
                          double eta) const {
        const Index labels = this->senders;
        static_assert(Gaussians::room(wide) <= message_room(wide, 1));
        if (eta < infinity) {
            Gaussians(labels, reach, factor, top, room).message(a, out, eta);
            return;
        }
        Parabolas(labels, factor, a, out);
        const double far = *std::min_element(a, a + labels) + top;
        for (Index y = 0; y < labels; ++y)
            out[y] = std::min(out[y], far);
    }
#endif

    // Soft message in O(labels · reach): near labels one by one, far labels through prefix and
    // suffix sums of exponentials.
    void soft_window(const Pack<W> *a, Pack<W> *out, Pack<W> *work, double eta) const {
        const Index labels = this->senders;
        const Pack<W> cold(-eta), small(-1.0 / eta);
        Pack<W> *near = work, *before = work + labels + 1, *after = before + labels + 1;
        profile(near);
        const Pack<W> low = lowest(a);
        before[0] = Pack<W>(0.0);
        after[labels] = Pack<W>(0.0);
        for (Index x = 0; x < labels; ++x) {
            after[x] = exp(cold * (a[x] - low));
            before[x + 1] = before[x] + after[x];
        }
        for (Index x = labels - 1; x >= 0; --x)
            after[x] += after[x + 1];
        for (Index y = 0; y < labels; ++y) {
            Pack<W> best = low + ceiling;
            for (Index x = first(y); x < last(y); ++x)
                best = least(a[x] + near[x < y ? y - x : x - y], best);
            Pack<W> mass = (before[first(y)] + after[last(y)]) * exp(cold * (low + ceiling - best));
            for (Index x = first(y); x < last(y); ++x)
                mass += exp(cold * (a[x] + near[x < y ? y - x : x - y] - best));
            out[y] = fused(small, log(mass), best);
        }
    }

    // Soft message with a linear distance in O(labels), by recursion over sums of exponentials;
    // requires η · steepest <= Pack<W>::safe.
    //
    // Labels farther than the truncation are subtracted from the recursion and added at the
    // truncated cost, as the difference of two prefix sums. Cancellation is harmless, because the
    // total is at least the whole mass at the truncated cost.
    void soft_linear(const Pack<W> *a, Pack<W> *out, Pack<W> *work, double eta) const {
        const Index labels = this->senders;
        const Pack<W> cold(-eta), small(-1.0 / eta), low = lowest(a);
        Pack<W> *up = work, *down = work + labels, *mass = down + labels;
        const Pack<W> q = exp(cold * weight), cut = exp(cold * ceiling);
        const Pack<W> falling = 0.0 - exp(cold * weight * Pack<W>(double(reach)));
        const Pack<W> shy = 0.0 - exp(cold * weight * Pack<W>(double(reach - 1)));
        Pack<W> near(0.0), sum(0.0), behind(0.0);
        mass[0] = sum;
        SOFTMAP_UNROLL_ALL
        for (Index x = 0; x < labels; ++x) {
            out[x] = exp(cold * (a[x] - low));
            near = fused(near, q, out[x]);
            sum += out[x];
            up[x] = near; // Σ_{y <= x} q^(x - y) exp(-η (a[y] - low))
            mass[x + 1] = sum;
        }
        SOFTMAP_UNROLL_ALL
        for (Index y = labels - 1; y >= 0; --y) {
            const Index begin = first(y), end = last(y);
            Pack<W> value = fused(cut, sum - (mass[end] - mass[begin]), up[y] + behind);
            behind = (behind + out[y]) * q;
            down[y] = behind; // Σ_{x >= y} q^(x - y + 1) exp(-η (a[x] - low))
            if (begin > 0)
                value = fused(falling, up[begin - 1], value);
            if (end < labels)
                value = fused(shy, down[end], value);
            out[y] = fused(small, log(greatest(value, Pack<W>(Pack<W>::tiny))), low);
        }
    }

    // Soft message with a linear distance at any η: each sum is relative to the hard message to its
    // label, so that it neither overflows nor underflows.
    void soft_scaled(const Pack<W> *a, Pack<W> *out, Pack<W> *work, double eta) const {
        const Index labels = this->senders;
        const Pack<W> low = lowest(a), far = low + ceiling;
        const Slopes<W> slopes(labels, work);
        Pack<W> *mass = work + Slopes<W>::room(labels), *sum = mass + labels, *room = sum + labels;
        hard_linear(a, out);
        slopes.set(out, weight, eta);
        for (Index x = 0; x < labels; ++x)
            mass[x] = exp(Pack<W>(-eta) * (a[x] - low));
        far_sums(labels, reach, mass, sum);
        for (Index y = 0; y < labels; ++y) {
            mass[y] = mass_of(a[y] - out[y], eta);
            sum[y] = fused(sum[y], mass_of(far - out[y], eta), mass[y]);
        }
        const Flushed flushed;
        slopes.gather_plainly(mass, reach, room,
                              [&](Index y, const Pack<W> &one, const Pack<W> &) { sum[y] += one; });
        for (Index y = 0; y < labels; ++y)
            out[y] = fused(log(greatest(sum[y], Pack<W>(1e-300))), Pack<W>(-1.0 / eta), out[y]);
    }
};

template <class Distance> struct Truncated : FamilyBase {
    static constexpr const char *name = Distance::name;
    static constexpr Index widest_tile = 512;

    // Edges with a negative weight are kept apart: one of them would disable the closed forms for
    // all lanes. Lanes must also have the same `reach`, except in small quadratic tables, whose
    // couplings are computed without a band.
    static bool alike(const Layout &lay, Index g, Index e, Index f) {
        if ((lay.weight_of(g, e) < 0.0) != (lay.weight_of(g, f) < 0.0))
            return false;
        const Index labels = lay.labels_at(2 * e);
        const bool small = !Distance::linear && labels * labels <= exchanged;
        return small || reach_of(lay, g, e) == reach_of(lay, g, f);
    }

    template <int W>
    static TruncatedEdges<W, Distance> at(const Layout &lay, Index g, const auto *edges,
                                          int receiver) {
        const Index h = 2 * Index(edges[0]) + receiver, labels = lay.labels_at(h ^ 1);
        Index reach = 1;
        for (int k = 0; k < W; ++k)
            reach = std::max(reach, TruncatedEdges<W, Distance>::reach_of(
                                        lay.truncation_of(g, edges[k]), labels));
        return {labels, lay.labels_at(h),
                Pack<W>::of([&](int k) { return lay.weight_of(g, edges[k]); }),
                Pack<W>::of([&](int k) { return lay.truncation_of(g, edges[k]); }), reach};
    }

    static TruncatedEdges<lanes, Distance> tile(const Layout &, const Schedule &plan,
                                                const Block &b, bool forward) {
        return {forward ? b.early : b.late, forward ? b.late : b.early,
                Pack<lanes>::load(plan.weights_of(b)), Pack<lanes>::load(plan.truncations_of(b)),
                b.reach};
    }

    static Index packed_size(Index, Index) { return 0; }

  private:
    static Index reach_of(const Layout &lay, Index g, Index e) {
        return TruncatedEdges<1, Distance>::reach_of(lay.truncation_of(g, e), lay.labels_at(2 * e));
    }
};

} // namespace softmap
