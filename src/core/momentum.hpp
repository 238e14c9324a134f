// Momentum over whole passes: one rule for chains and stars.
//
// A pass leads from messages y to z; the last one led to z_prev. The next pass starts at
// z + β (z - prev), with Nesterov's β, where `prev` is z_prev + relax · (y - z): that over-relaxes
// the step by a part of z - y, as in the optimised gradient method (Kim and Fessler 2016, where
// relax → 1 for gradient steps). Momentum restarts when ⟨y - z, z - prev - turn · (y - z)⟩ > 0.
#pragma once

#include "team.hpp"

#include <cmath>

namespace softmap {

struct MomentumRule {
    double relax; // at 1 some directions would only swing to and fro
    double turn;  // how far momentum has to point back for a restart; at 0 noise restarts
};
inline constexpr MomentumRule chain_momentum{0.75, 0.3};
inline constexpr MomentumRule star_momentum{0.0, 0.0};

// Notes the messages that a pass replaces; without `prev` the pass has no momentum.
template <class S> struct Momentum {
    S *prev = nullptr;
    MomentumRule rule{};

    // The part of the restart product of entries `at` that change from y to z.
    template <int W> Pack<W> observe(const Pack<W> &y, const Pack<W> &z, Index at) const {
        if (!prev)
            return 0.0;
        const Pack<W> step = y - z, before = Pack<W>::load(prev + at);
        if (rule.relax != 0.0)
            (before + Pack<W>(rule.relax) * step).store(prev + at);
        return step * (z - before - Pack<W>(rule.turn) * step);
    }
};

// What momentum carries from pass to pass: Nesterov's t, restarts so far, the last product.
struct Clock {
    double t, restarts, product;
};

// y = z + β (z - prev) before a pass, restarted when the last product is positive. Only the first
// `count` messages take part: those read before they are made anew.
template <class S> void extrapolate(S *msg, S *prev, Index count, Clock &clock, Member me) {
    const bool back = clock.product > 0.0;
    const double t = back ? 1.0 : clock.t;
    const double following = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * t * t));
    const double beta = (t - 1.0) / following;
    const auto move = [&]<int W>(Index at) {
        const auto z = Pack<W>::load(msg + at);
        (z + Pack<W>(beta) * (z - Pack<W>::load(prev + at))).store(msg + at);
        z.store(prev + at);
    };
    const Index last = me.last(0, count);
    Index k = me.first(0, count);
    for (; k + lanes <= last; k += lanes)
        move.template operator()<lanes>(k);
    for (; k < last; ++k)
        move.template operator()<1>(k);
    me.barrier.wait();
    if (me.thread == 0) {
        clock.t = following;
        clock.restarts += back;
    }
    me.barrier.wait();
}

inline constexpr Index partial_sums = 64;

// Σ values by fixed blocks: the same on every thread and for any number of threads.
inline double steady_sum(const double *values, Index count, double *sums, Member me) {
    const Index size = (count + partial_sums - 1) / partial_sums;
    const auto bound = [&](Index block) { return block * size < count ? block * size : count; };
    for (Index block = me.thread; block < partial_sums; block += me.threads) {
        double sum = 0.0;
        for (Index k = bound(block); k < bound(block + 1); ++k)
            sum += values[k];
        sums[block] = sum;
    }
    me.barrier.wait();
    double sum = 0.0;
    for (Index block = 0; block < partial_sums; ++block)
        sum += sums[block];
    me.barrier.wait();
    return sum;
}

} // namespace softmap
