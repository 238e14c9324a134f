// Passes over monotonic chains: smooth TRW-S at finite η, Kolmogorov's TRW-S at η = ∞.
//
// With messages M = -λ and θ̂_i = C_i + Σ_h M_h, a node on n_i chains sends along each edge that
// points forward in the order of the nodes (backward in a backward half pass) the message
// M(y) = softmin_x θ̂_i(x) / n_i - M_h(x) + C_e(x, y), up to a constant. All threads work on one
// level at a time, and a message does not depend on the number of threads. θ̂_i / n_i is called the
// *share* of node i.
#pragma once

#include "base/rounding.hpp"
#include "base/sums.hpp"
#include "packing.hpp"
#include "sending.hpp"
#include "stopping.hpp"

#include <array>
#include <utility>

namespace softmap {

// The messages into the n nodes of a row. The entries after those of a short row belong to another
// row, which another thread may be writing: they are not read.
template <int n> SOFTMAP_IN_LINE inline Pack<lanes> messages_of(const double *from) {
    constexpr int width = Pack<lanes>::width;
    return Pack<lanes>::by_parts([=](int p) -> Pack<lanes>::Part {
        if ((p + 1) * width <= n)
            return detail::load_part(from + p * width);
        Pack<lanes>::Part own{};
#pragma GCC unroll 8
        for (int k = 0; k < width; ++k)
            if (p * width + k < n)
                own[k] = from[p * width + k];
        return own;
    });
}

// θ̂_i / n_i for the n nodes of one row whose messages are contiguous across lanes.
template <int n>
inline void straight_row(const Schedule &plan, const Row &row, const double *msg, double *theta) {
    const Pack<lanes> part = 1.0 / size_of(Pack<lanes>::load(plan.chains + row.first));
    const Index pull = row.pulls;
    for (Index x = 0; x < row.labels; ++x) {
        const Index at = row.place + x * row.step;
        auto value = Pack<lanes>::load(plan.unary + at);
        fetch_ahead(plan.unary + at);
        for (Index p = pull; p < pull + row.degree; ++p) {
            const double *from = msg + plan.pull_at[p] + x * plan.pull_step[p];
            fetch_ahead(from);
            value += messages_of<n>(from);
        }
        value *= part;
        if constexpr (n == lanes)
            value.store(theta + at);
        else
            value.each(n, [&](int k, double one) { theta[at + k] = one; });
    }
}

// `straight_row` for rows of 1, 2, ... nodes: a loop over a number of lanes that the compiler does
// not know costs up to a tenth of a pass over short rows.
inline constexpr auto straight_rows = []<int... n>(std::integer_sequence<int, n...>) {
    return std::array{&straight_row<n + 1>...};
}(std::make_integer_sequence<int, lanes>{});

// θ̂_i / n_i for the nodes of one row whose messages lie apart, node by node: nothing is gained by
// collecting them into packs for so little arithmetic.
inline void gathered_row(const Schedule &plan, const Row &row, const double *msg, double *theta) {
    for (Index k = 0; k < row.nodes; ++k) {
        const Index pull = row.pulls + k * row.degree;
        const double part = 1.0 / double(plan.chains_at(row.first + k));
        for (Index x = 0; x < row.labels; ++x) {
            const Index at = row.place + x * row.step + k;
            double value = plan.unary[at];
            for (Index p = pull; p < pull + row.degree; ++p)
                value += double(msg[plan.pull_at[p] + x * plan.pull_step[p]]);
            theta[at] = value * part;
        }
    }
}

// θ̂_i / n_i for a row of one node.
inline void lone_row(const Schedule &plan, const Row &row, const double *msg, double *theta) {
    const double part = 1.0 / double(plan.chains_at(row.first));
    double *own = theta + row.place;
    const double *unary = plan.unary + row.place;
    const Index step = row.step;
    for (Index x = 0; x < row.labels; ++x)
        own[x * step] = unary[x * step];
    for (Index p = row.pulls; p < row.pulls + row.degree; ++p)
        for (Index x = 0; x < row.labels; ++x)
            own[x * step] += double(msg[plan.pull_at[p] + x * plan.pull_step[p]]);
    for (Index x = 0; x < row.labels; ++x)
        own[x * step] *= part;
}

// theta = θ̂_i / n_i, in the order of strips, for the nodes of rows first..last-1.
inline void shares(const Schedule &plan, const double *msg, double *theta, Index first,
                   Index last) {
    for (Index r = first; r < last; ++r) {
        const Row &row = plan.rows[r];
        if (row.way == straight)
            straight_rows[row.nodes - 1](plan, row, msg, theta);
        else if (row.way == gathered)
            gathered_row(plan, row, msg, theta);
        else
            lone_row(plan, row, msg, theta);
    }
}

// Arrays of a run: messages `msg`, the drift of momentum, shares `theta` (by strip), sums of the
// normalisers of messages `shift` and parts of the restart product `dot` (both by block), scratch
// `sums` for their total (`partial_sums` entries), and where to stop, or null.
struct ChainArrays {
    double *msg;
    float *drift;
    Index moving; // length of drift: momentum acts on the messages into early endpoints only
    double *theta, *shift, *dot, *sums;
    Clock *clock;
    PassStop *stop = nullptr;
};

// One half pass: level by level, every node computes its share and sends along its forward edges
// (backward edges if not `forward`). The two steps of each level are those of a wavefront.
//
// It is the half pass number `half` of a call, and may stop there: shares and messages that are
// left are those from before. Returns whether it did.
inline bool half_pass(const Layout &lay, const Schedule &plan, bool forward, const ChainArrays &run,
                      double eta, const Momentum &momentum, const Scratch &room, Member &me,
                      Index half = 0) {
    const Index *start = forward ? plan.forward_start : plan.backward_start;
    const bool alone = me.threads() == 1; // reads blocks in the order in which they are stored
    const std::int32_t *listed =
        forward ? (alone ? nullptr : plan.forward) : (alone ? plan.later : plan.backward);
    const Bands *after = forward ? plan.forward_after : plan.backward_after;
    const Traffic traffic{run.theta, run.msg, momentum, eta, run.shift, run.dot};
    const Grouping group(int(plan.bands), me.threads());
    const Index widest = std::max(plan.widest_tile, plan.widest_single);
    const HalfWatch watch(run.stop, half, lanes * widest * widest);
    const auto level_of = [&](Index step) {
        return forward ? step / 2 : plan.levels - 1 - step / 2;
    };
    const auto waits_for = [&](Index step, int g) {
        const Bands *own = after + 2 * (level_of(step) * plan.bands + g * group.size) + step % 2;
        Bands set = 0;
        for (int k = 0; k < group.size; ++k)
            set |= own[2 * k];
        return group.of(set);
    };
    me.wave(2 * plan.levels, group.groups, waits_for, [&](Index step, int g, int end) {
        const Index level = level_of(step), band = g * group.size, band_end = end * group.size;
        if (step % 2 == 0)
            return watch.pieces(
                plan.first_row(level, band), plan.first_row(level, band_end),
                [&](Index first, Index last) { shares(plan, run.msg, run.theta, first, last); });
        watch.pieces(start[level * plan.bands + band], start[level * plan.bands + band_end],
                     [&](Index first, Index last) {
                         send_blocks(lay, plan, listed, first, last, forward, traffic, room);
                     });
    });
    return watch.stopped();
}

// Undoes `extrapolate` at the entries at..at+count-1 of a pass that has not reached them.
inline void withdraw(const ChainArrays &run, Index at, Index count) {
    const double beta = run.stop->beta;
    for (Index k = at; k < at + count; ++k) {
        run.msg[k] -= double(run.drift[k]);
        run.drift[k] = beta != 0.0 ? float(double(run.drift[k]) / beta) : 0.0f;
    }
}

// A pass that stopped while it sent forward has changed nothing that the next pass reads.
inline void withdraw_all(const ChainArrays &run, Member &me) {
    me.phase([&](Part part) {
        const Index first = part.first(0, run.moving);
        withdraw(run, first, part.last(0, run.moving) - first);
    });
    me.once([&] { *run.clock = run.stop->before; });
}

// Before messages are sent backward: a part of the restart product that is not a number marks a
// block that was not reached.
inline void mark_blocks(const Schedule &plan, const ChainArrays &run, Member &me) {
    me.phase([&](Part part) {
        std::fill(run.dot + part.first(0, plan.num_blocks), run.dot + part.last(0, plan.num_blocks),
                  std::numeric_limits<double>::quiet_NaN());
    });
}
inline void withdraw_marked(const Schedule &plan, const ChainArrays &run, Member &me) {
    me.phase([&](Part part) {
        for (Index b = part.first(0, plan.num_blocks); b < part.last(0, plan.num_blocks); ++b) {
            if (!std::isnan(run.dot[b]))
                continue;
            const Block &block = plan.blocks[b];
            run.dot[b] = 0.0;
            for (Index x = 0; x < block.early; ++x)
                withdraw(run, block.early_at + x * block.step, block.width());
        }
    });
}

// One half pass over the levels of a schedule, which may be a part of a larger schedule.
inline void one_half(const Layout &lay, const Schedule &plan, bool forward, const ChainArrays &run,
                     double eta, bool momentum, Member &me) {
    const Scratch room(plan);
    const bool noting = momentum && !forward;
    half_pass(lay, plan, forward, run, eta,
              noting ? Momentum{run.drift, chain_momentum} : Momentum{}, room, me);
}

// `count` hard passes. What they subtract from the messages into early endpoints is added to the
// drift.
inline void traced_passes(const Layout &lay, const Schedule &plan, Index count,
                          const ChainArrays &run, Member &me) {
    const Scratch room(plan);
    bool stopped = false;
    for (Index half = 0; half < 2 * count && !stopped; ++half) {
        const bool forward = half % 2 == 0;
        stopped = half_pass(lay, plan, forward, run, infinity,
                            forward ? Momentum{} : Momentum{run.drift, tracing}, room, me, half);
    }
}

// `halves` half passes, beginning with a forward one, with momentum over whole passes if
// `momentum`. Shifts are those of the last one.
//
// Momentum acts on the messages sent backward only: the messages sent forward are all recomputed
// before they are read. A pass may stop within a half pass: the messages into early endpoints, the
// drift and the clock are then those of a pass that left out the blocks that it had not reached;
// messages sent forward, shares and shifts are to be recomputed.
inline void passes(const Layout &lay, const Schedule &plan, Index halves, const ChainArrays &run,
                   double eta, bool momentum, Member &me) {
    const Scratch room(plan);
    ChainArrays now = run;
    for (Index half = 0; half < halves; ++half) {
        const bool forward = half % 2 == 0;
        now.shift = half + 1 == halves ? run.shift : nullptr;
        if (!momentum) {
            if (half_pass(lay, plan, forward, now, eta, Momentum{}, room, me, half))
                return;
        } else if (forward) {
            if (run.stop != nullptr) {
                me.once([&] {
                    run.stop->note(*run.clock);
                    if (run.stop->deadline().passed())
                        run.stop->set(half);
                });
                if (run.stop->in(half))
                    return;
            }
            extrapolate(run.msg, run.drift, run.moving, *run.clock, me);
            if (half_pass(lay, plan, forward, now, eta, Momentum{}, room, me, half))
                return withdraw_all(run, me);
        } else {
            if (run.stop != nullptr)
                mark_blocks(plan, run, me);
            const Momentum noting{run.drift, chain_momentum};
            const bool stopped = half_pass(lay, plan, forward, now, eta, noting, room, me, half);
            if (stopped)
                withdraw_marked(plan, run, me);
            steady_sum(run.dot, plan.num_blocks, run.sums, run.clock->product, me);
            if (stopped)
                return;
        }
    }
}

// A hard forward half pass with all arithmetic rounded down; `chain_bound` sums its shifts. Of one
// that has stopped nothing is of use: messages into early endpoints are as before.
//
// Let λ be the multipliers of `cut_chains` afterwards. Then C(x, y) + λ_early(x) + λ_late(y) >=
// shift for all label pairs of an edge. Proof: λ_early is the share minus the message, rounded
// down. The message computed from it is at most min_x C(x, y) + λ_early(x). The stored message
// -λ_late(y) is at most that minus the shift, because the subtraction is rounded down, too. This
// holds for all families, see minima.hpp.
inline void lowered_half(const Layout &lay, const Schedule &plan, const ChainArrays &run,
                         Member &me) {
    const Scratch room(plan);
    const RoundedDown down;
    half_pass(lay, plan, true, run, infinity, Momentum{}, room, me);
}

// A lower bound on min_x C_i(x) - Σ_h λ_h(x) over the allowed labels of the k-th node of a row, for
// λ of `cut_chains` after `lowered_half`; NaN if a message is not finite. Must be called with
// rounding towards -inf.
//
// Let part = fl(1 / n_i), rounded down here as in `lowered_half`. C_i + Σ M is at least share /
// part, and each of the `onwards` edges that lead forward received at most the share minus its
// message as λ. So (1 / part - onwards) · share is left at the node.
inline double least_rest(const Schedule &plan, const Row &row, Index k, const double *theta) {
    const double part = 1.0 / double(plan.chains_at(row.first + k));
    const double onwards = double(plan.onwards_at(row.first + k, row.degree));
    // the exact quotient lies between the two neighbours of fl(1 / part); for powers of two the
    // division is exact
    const double whole = 1.0 / part;
    const bool exact = part * whole == 1.0 && (std::bit_cast<std::uint64_t>(part) << 12) == 0;
    const double least = exact ? whole - onwards : next_below(whole) - onwards;
    const double most = exact ? least : next_above(next_above(whole) - onwards);
    double low = infinity, high = -infinity, spoilt = 0.0;
    for (Index x = 0; x < row.labels; ++x) {
        const Index at = row.place + x * row.step + k;
        const bool allowed = plan.unary[at] < infinity;
        const double share = allowed ? theta[at] : infinity;
        spoilt += allowed ? share * 0.0 : 0.0;
        low = share < low ? share : low;
        high = allowed && share > high ? share : high;
    }
    if (least == 0.0 && most == 0.0) // forward edges received the whole cost: nothing is left
        return spoilt;
    // Each product is rounded down on its own, and only 0 or NaN is added to their minimum. The
    // exact product is smallest at a corner of [least, most] × [low, high], so `rest` is a lower
    // bound.
    const double rest =
        std::min(std::min(least * low, most * low), std::min(least * high, most * high));
    return rest + spoilt;
}

// out = `least_rest` of the nodes of rows first..last-1; returns their number.
inline Index least_rests(const Schedule &plan, const double *theta, double *out, Index first,
                         Index last) {
    const RoundedDown down;
    Index count = 0;
    for (Index r = first; r < last; ++r)
        for (Index k = 0; k < plan.rows[r].nodes; ++k)
            out[count++] = least_rest(plan, plan.rows[r], k, theta);
    return count;
}

// A lower bound on the dual objective at λ of `cut_chains`: the sum of the shifts of
// `lowered_half`, of `least_rests` and of the constant. All terms are already rounded down, and
// `LowerSum` subtracts more than the rounding errors of the additions.
//
// The terms are summed in `partial_sums` fixed portions, whatever the number of threads.
// rests(out, first, last) calls `least_rests`.
template <class Rests>
double chain_bound(const Schedule &plan, Rests rests, const double *shift, double constant,
                   int threads) {
    LowerSum sums[partial_sums];
    const auto add_portion = [&](Part part) {
        constexpr Index some = 64; // rows
        double rest[some * lanes];
        LowerSum sum;
        const Index end = part.last(0, plan.num_rows);
        for (Index r = part.first(0, plan.num_rows); r < end; r += some) {
            const Index count = rests(rest, r, std::min(r + some, end));
            for (Index k = 0; k < count; ++k)
                sum.add(rest[k]);
        }
        part.each(0, plan.num_blocks, [&](Index b) { sum.add(shift[b]); });
        sums[part.index] = sum;
    };
    split_portions(threads, partial_sums, plan.num_rows + plan.num_blocks, add_portion);
    LowerSum sum;
    for (const LowerSum &one : sums)
        sum.add(one);
    sum.add(constant);
    return sum.value();
}

// Copies the costs of the nodes of rows first..last-1 from the order of strips to model order.
inline void by_node(const Layout &lay, const Schedule &plan, const double *theta, double *out,
                    Index first, Index last) {
    std::vector<double> room(std::size_t(lanes * lay.widest));
    for (Index r = first; r < last; ++r) {
        const Row &row = plan.rows[r];
        side_by_side(theta + row.place, row.step, row.nodes, row.labels, room.data());
        for (Index k = 0; k < row.nodes; ++k)
            std::copy_n(room.data() + k * row.labels, row.labels,
                        out + lay.node_offset[plan.nodes[row.first + k]]);
    }
}

// λ of the edges of blocks first..last-1, after a hard forward half pass, such that the dual bound
// of λ equals the bound of the chains. Each λ is one difference, rounded down: the same number that
// `lowered_half` computed its messages from.
//
// λ_h = θ̂_i / n_i - M_h if half-edge h leads forward from node i, else -M_h. Then
// min_x C_e(x, y) + λ_h(x) + λ_{h^1}(y) is the shift of the message for every label y. `theta`
// holds the shares in model order.
inline void cut_chains(const Layout &lay, const Schedule &plan, const double *msg,
                       const double *theta, double *lam, Index first, Index last) {
    const RoundedDown down;
    each_half(lay, plan, msg, first, last, [&](Index h, const double *message, bool onwards) {
        const Index i = lay.node[h];
        const double *share = theta + lay.node_offset[i];
        double *out = lam + lay.half_at(h);
        for (Index x = 0; x < lay.num_labels[i]; ++x)
            out[x] = !onwards ? -message[x] : share[x] < infinity ? share[x] - message[x] : 0.0;
    });
}

// κ_h = θ̂_i / n_i - M_h of blocks first..last-1: the edge marginals of the chains are proportional
// to exp(-η (C_e + κ_h + κ_{h^1})). `theta` holds the shares in model order.
inline void couplings(const Layout &lay, const Schedule &plan, const double *msg,
                      const double *theta, double *out, Index first, Index last) {
    each_half(lay, plan, msg, first, last, [&](Index h, const double *message, bool) {
        const double *share = theta + lay.node_offset[lay.node[h]];
        double *to = out + lay.half_at(h);
        for (Index x = 0; x < lay.labels_at(h); ++x)
            to[x] = share[x] < infinity ? share[x] - message[x] : 0.0;
    });
}

} // namespace softmap
