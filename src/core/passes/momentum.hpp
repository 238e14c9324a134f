// Nesterov momentum over whole passes, the same rule for chains and stars.
//
// A pass maps messages y to z; the previous pass ended at z_prev. The next pass starts at z + β D,
// with Nesterov's β and D = z - z_prev - relax · (y - z): that over-relaxes the step by a part of
// z - y, as in the optimised gradient method (Kim and Fessler 2016, where relax → 1 for gradient
// steps). Momentum restarts when ⟨y - z, z - z_prev - turn · (y - z)⟩ > 0.
//
// Only D, the *drift*, is stored, and in single precision: its rounding errors are relative to the
// steps, not to the messages. During a pass it is y - z_prev, so that z - z_prev = D - (y - z).
#pragma once

#include "base/momentum_rule.hpp"
#include "base/team.hpp"

#include <cmath>
#include <limits>

namespace softmap {

// The nearest numbers that single precision has room for.
template <int W> Pack<W> within_single(const Pack<W> &values) {
    constexpr double most = std::numeric_limits<float>::max();
    return least(greatest(values, Pack<W>(-most)), Pack<W>(most));
}

// Updates the drift while a pass replaces messages. If `drift` is null the pass has no momentum.
struct Momentum {
    float *drift = nullptr;
    MomentumRule rule{};

    // The contribution of the entries at `at`, which change from y to z, to the restart product.
    template <int W> Pack<W> observe(const Pack<W> &y, const Pack<W> &z, Index at) const {
        if (!drift)
            return 0.0;
        const Pack<W> step = y - z, before = Pack<W>::load(drift + at);
        within_single(fused(Pack<W>(-1.0 - rule.relax), step, before)).store(drift + at);
        return step * fused(Pack<W>(-1.0 - rule.turn), step, before);
    }
};

// Adds y - z to the drift: it tells how far back the messages were.
inline constexpr MomentumRule tracing{-2.0, 0.0};

// The state of momentum between passes: Nesterov's t, the number of restarts, and the restart
// product of the last pass.
struct Clock {
    double t, restarts, product;

    bool back() const { return product > 0.0; }
    double now() const { return back() ? 1.0 : t; }
    double following() const { return 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * now() * now())); }
};

// Calls f<W>(at) for one thread's part of the entries 0..count-1, W at a time.
template <class Function> void each_pack(Part part, Index count, Function f) {
    const Index last = part.last(0, count);
    Index k = part.first(0, count);
    for (; k + lanes <= last; k += lanes)
        f.template operator()<lanes>(k);
    for (; k < last; ++k)
        f.template operator()<1>(k);
}

// y = z + β D before a pass, with β = 0 if the last restart product is positive. Acts on the first
// `count` entries, the messages that the pass reads before it recomputes them.
inline void extrapolate(double *msg, float *drift, Index count, Clock &clock, Member &me) {
    me.phase([&](Part part) {
        const double beta = (clock.now() - 1.0) / clock.following();
        each_pack(part, count, [&]<int W>(Index at) {
            const Pack<W> ahead = beta * Pack<W>::load(drift + at);
            (Pack<W>::load(msg + at) + ahead).store(msg + at);
            ahead.store(drift + at);
        });
    });
    me.once([&] {
        const double following = clock.following();
        clock.restarts += clock.back();
        clock.t = following;
    });
}

// Rounds messages to single precision; the rests are added to the drift of `tracing`.
inline void round_off(double *msg, float *drift, Index count, Member &me) {
    me.phase([&](Part part) {
        each_pack(part, count, [&]<int W>(Index at) {
            const Pack<W> exact = Pack<W>::load(msg + at);
            float rounded[W];
            exact.store(rounded);
            const Pack<W> value = Pack<W>::load(rounded);
            (Pack<W>::load(drift + at) + (exact - value)).store(drift + at);
            value.store(msg + at);
        });
    });
}

// Moves messages back by the drift of `tracing`, which becomes 0.
inline void put_back(double *msg, float *drift, Index count, Member &me) {
    me.phase([&](Part part) {
        each_pack(part, count, [&]<int W>(Index at) {
            (Pack<W>::load(msg + at) + Pack<W>::load(drift + at)).store(msg + at);
            Pack<W>(0.0).store(drift + at);
        });
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
