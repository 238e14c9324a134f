// Nesterov momentum over whole passes, the same rule for chains and stars.
//
// A pass maps messages y to z; the previous pass ended at z_prev. The next pass starts at
// z + β (z - prev), with Nesterov's β and prev = z_prev + relax · (y - z): that over-relaxes the
// step by a part of z - y, as in the optimised gradient method (Kim and Fessler 2016, where
// relax → 1 for gradient steps). Momentum restarts when ⟨y - z, z - prev - turn · (y - z)⟩ > 0.
#pragma once

#include "base/momentum_rule.hpp"
#include "base/team.hpp"

#include <cmath>

namespace softmap {

// Updates `prev` while a pass replaces messages. If `prev` is null the pass has no momentum.
template <class S> struct Momentum {
    S *prev = nullptr;
    MomentumRule rule{};

    // The contribution of the entries at `at`, which change from y to z, to the restart product.
    template <int W> Pack<W> observe(const Pack<W> &y, const Pack<W> &z, Index at) const {
        if (!prev)
            return 0.0;
        const Pack<W> step = y - z, before = Pack<W>::load(prev + at);
        if (rule.relax != 0.0)
            fused(Pack<W>(rule.relax), step, before).store(prev + at);
        return step * fused(Pack<W>(-rule.turn), step, z - before);
    }
};

// The state of momentum between passes: Nesterov's t, the number of restarts, and the restart
// product of the last pass.
struct Clock {
    double t, restarts, product;

    bool back() const { return product > 0.0; }
    double now() const { return back() ? 1.0 : t; }
    double following() const { return 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * now() * now())); }
};

// y = z + β (z - prev) before a pass, with β = 0 if the last restart product is positive. Acts on
// the first `count` entries, the messages that the pass reads before it recomputes them.
template <class S> void extrapolate(S *msg, S *prev, Index count, Clock &clock, Member &me) {
    me.phase([&](Part part) {
        const double beta = (clock.now() - 1.0) / clock.following();
        const auto move = [&]<int W>(Index at) {
            const auto z = Pack<W>::load(msg + at);
            fused(Pack<W>(beta), z - Pack<W>::load(prev + at), z).store(msg + at);
            z.store(prev + at);
        };
        const Index last = part.last(0, count);
        Index k = part.first(0, count);
        for (; k + lanes <= last; k += lanes)
            move.template operator()<lanes>(k);
        for (; k < last; ++k)
            move.template operator()<1>(k);
    });
    me.once([&] {
        const double following = clock.following();
        clock.restarts += clock.back();
        clock.t = following;
    });
}

inline constexpr Index partial_sums = 64;

// total = Σ values, summed in `partial_sums` fixed blocks: the same for any number of threads.
inline void steady_sum(const double *values, Index count, double *sums, double &total, Member &me) {
    const Index size = (count + partial_sums - 1) / partial_sums;
    const auto bound = [&](Index block) { return block * size < count ? block * size : count; };
    me.phase([&](Part part) {
        for (Index block = part.index; block < partial_sums; block += part.parts) {
            double sum = 0.0;
            for (Index k = bound(block); k < bound(block + 1); ++k)
                sum += values[k];
            sums[block] = sum;
        }
    });
    me.once([&] {
        total = 0.0;
        for (Index block = 0; block < partial_sums; ++block)
            total += sums[block];
    });
}

} // namespace softmap
