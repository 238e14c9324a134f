// Passes over monotonic chains: smooth TRW-S at finite η, Kolmogorov's TRW-S at η = ∞.
//
// With messages M = -λ and θ̂_i = C_i + Σ_h M_h, a node sends along each edge that points onwards
// M(y) = softmin_x θ̂_i(x) / n_i - M_h(x) + C_e(x, y), up to a constant. Levels are walked through
// by all threads together; every message is computed the same way whatever their number.
#pragma once

#include "base/rounding.hpp"
#include "base/sums.hpp"
#include "packing.hpp"
#include "sending.hpp"

namespace softmap {

// θ̂_i / n_i for the nodes of one row, whose messages lie side by side.
template <class S>
void straight_row(const Schedule<S> &plan, const Row &row, const S *msg, double *theta) {
    const Pack<lanes> part = Pack<lanes>::load(plan.share + row.first);
    const Index pull = plan.pull_start[row.first];
    for (Index x = 0; x < row.labels; ++x) {
        const Index at = row.place + x * row.step;
        auto value = Pack<lanes>::load(plan.unary + at);
        fetch_ahead(plan.unary + at);
        for (Index p = pull; p < pull + row.degree; ++p) {
            const S *from = msg + plan.pull_at[p] + x * plan.pull_step[p];
            fetch_ahead(from);
            value += Pack<lanes>::load(from);
        }
        value *= part;
        if (row.nodes == lanes)
            value.store(theta + at);
        else
            value.each(int(row.nodes), [&](int k, double one) { theta[at + k] = one; });
    }
}

// The same, lane by lane.
template <class S>
void gathered_row(const Schedule<S> &plan, const Row &row, const S *msg, double *theta) {
    const Pack<lanes> part = Pack<lanes>::load(plan.share + row.first);
    const Index pull = plan.pull_start[row.first];
    for (Index x = 0; x < row.labels; ++x) {
        const Index at = row.place + x * row.step;
        auto value = Pack<lanes>::load(plan.unary + at);
        for (Index p = pull; p < pull + row.degree; ++p)
            value += Pack<lanes>::of([&](int k) {
                const Index q = p + (k < row.nodes ? k : row.nodes - 1) * row.degree;
                return double(msg[plan.pull_at[q] + x * plan.pull_step[q]]);
            });
        (value * part).each(int(row.nodes), [&](int k, double one) { theta[at + k] = one; });
    }
}

// The same for one node alone.
template <class S>
void lone_row(const Schedule<S> &plan, const Row &row, const S *msg, double *theta) {
    const Index k = row.first;
    double *own = theta + row.place;
    const double *unary = plan.unary + row.place;
    const Index step = row.step;
    for (Index x = 0; x < row.labels; ++x)
        own[x * step] = unary[x * step];
    for (Index p = plan.pull_start[k]; p < plan.pull_start[k + 1]; ++p)
        for (Index x = 0; x < row.labels; ++x)
            own[x * step] += double(msg[plan.pull_at[p] + x * plan.pull_step[p]]);
    for (Index x = 0; x < row.labels; ++x)
        own[x * step] *= plan.share[k];
}

// θ̂_i / n_i for the nodes of rows first..last-1, into `theta` by strip.
template <class S>
void shares(const Schedule<S> &plan, const S *msg, double *theta, Index first, Index last) {
    for (Index r = first; r < last; ++r) {
        const Row &row = plan.rows[r];
        if (row.way == straight)
            straight_row(plan, row, msg, theta);
        else if (row.way == gathered)
            gathered_row(plan, row, msg, theta);
        else
            lone_row(plan, row, msg, theta);
    }
}

// Arrays of a run; `shift` by lane, `dot` by block.
template <class S> struct ChainArrays {
    S *msg, *prev;
    Index moving; // length of prev: the messages into early ends, which take part in momentum
    double *theta, *shift, *dot, *sums;
    Clock *clock;
};

// One direction: levels in turn, every node sends along its onward edges.
template <class S>
void half_pass(const Layout<S> &lay, const Schedule<S> &plan, bool forward,
               const ChainArrays<S> &run, double eta, const Momentum<S> &momentum,
               const Scratch &room, Member &me) {
    const Index *start = forward ? plan.forward_start : plan.backward_start;
    const Index *listed = forward ? plan.forward : plan.backward;
    const Traffic<S> traffic{run.theta, run.msg, momentum, eta, run.shift, run.dot};
    for (Index step = 0; step < plan.levels; ++step) {
        const Index level = forward ? step : plan.levels - 1 - step;
        const Index row = plan.row_start[level], row_end = plan.row_start[level + 1];
        me.phase([&](Part part) {
            shares(plan, run.msg, run.theta, part.first(row, row_end), part.last(row, row_end));
        });
        const Index block = start[level], block_end = start[level + 1];
        me.phase([&](Part part) {
            send_blocks(lay, plan, listed, part.first(block, block_end),
                        part.last(block, block_end), forward, traffic, room);
        });
    }
}

// One half pass over the levels of a schedule, which may be some of the levels of a larger one.
template <class S>
void one_half(const Layout<S> &lay, const Schedule<S> &plan, bool forward,
              const ChainArrays<S> &run, double eta, bool momentum, Member &me) {
    const Scratch room(plan);
    const bool noting = momentum && !forward;
    half_pass(lay, plan, forward, run, eta,
              noting ? Momentum<S>{run.prev, chain_momentum} : Momentum<S>{}, room, me);
}

// `halves` half passes, forward first, with momentum over whole passes if asked for.
//
// Momentum is for the messages sent backward: those sent forward are all made anew before they are
// read.
template <class S>
void passes(const Layout<S> &lay, const Schedule<S> &plan, Index halves, const ChainArrays<S> &run,
            double eta, bool momentum, Member &me) {
    const Scratch room(plan);
    for (Index half = 0; half < halves; ++half) {
        const bool forward = half % 2 == 0;
        if (momentum && forward)
            extrapolate(run.msg, run.prev, run.moving, *run.clock, me);
        if (!momentum || forward) {
            half_pass(lay, plan, forward, run, eta, Momentum<S>{}, room, me);
            continue;
        }
        half_pass(lay, plan, forward, run, eta, Momentum<S>{run.prev, chain_momentum}, room, me);
        steady_sum(run.dot, plan.num_blocks, run.sums, run.clock->product, me);
    }
}

// A hard half pass forward, rounded down: what `chain_bound` adds up.
//
// With λ of `cut_chains` after it, no edge has a pair of labels of a lower cost than its shift. The
// share of the early end less the message from there, rounded down, is λ itself; what is sent from
// it is at most min_x C(x, y) + λ(x); and a message is at most that less the shift, when it is
// rounded down once more. This holds for all families, see minima.hpp.
template <class S>
void lowered_half(const Layout<S> &lay, const Schedule<S> &plan, const ChainArrays<S> &run,
                  Member &me) {
    const Scratch room(plan);
    const RoundedDown down;
    half_pass(lay, plan, true, run, infinity, Momentum<S>{}, room, me);
}

// At most min_x C_i - Σ λ over the allowed labels of the k-th node of a row, after `lowered_half`,
// while arithmetic rounds down; NaN where a message is no finite number.
//
// C_i + Σ M is at least share / part, with part as it was rounded, and every edge that leads
// onwards took at most the share less its message: the rest is (1 / part - onwards) · share.
template <class S>
double least_rest(const Schedule<S> &plan, const Row &row, Index k, const double *theta) {
    const double part = plan.share[row.first + k], chains = std::round(1.0 / part);
    const double onwards = chains - plan.forward_ends[plan.nodes[row.first + k]];
    // 1 / part lies between the neighbours of what division makes of it; it is exact for powers of
    // two
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
    if (least == 0.0 && most == 0.0) // all of it went onwards, whatever it is
        return spoilt;
    // Each product is rounded down by itself, and only a zero or NaN is added to the least of them:
    // rest is at most the true product, which is least at a corner of least..most × low..high.
    const double rest =
        std::min(std::min(least * low, most * low), std::min(least * high, most * high));
    return rest + spoilt;
}

// The same of all nodes of rows first..last-1, into `out` in the order of `Schedule::nodes`.
template <class S>
void least_rests(const Schedule<S> &plan, const double *theta, double *out, Index first,
                 Index last) {
    const RoundedDown down;
    for (Index r = first; r < last; ++r)
        for (Index k = 0; k < plan.rows[r].nodes; ++k)
            out[plan.rows[r].first + k] = least_rest(plan, plan.rows[r], k, theta);
}

// A number certainly <= the plain bound of λ of `cut_chains`: from the shifts of `lowered_half` and
// the rests at the nodes. Those products are rounded down already: here numbers are only added, and
// `LowerSum` takes off more than the additions can be wrong by.
template <class S>
double chain_bound(const Schedule<S> &plan, const double *rest, Index nodes, const double *shift,
                   double constant) {
    LowerSum sum;
    for (Index i = 0; i < nodes; ++i)
        sum.add(rest[i]);
    for (Index b = 0; b < plan.num_blocks; ++b)
        for (Index k = 0; k < std::max<Index>(plan.blocks[b].count, 1); ++k)
            sum.add(shift[plan.blocks[b].lane + k]);
    sum.add(constant);
    return sum.value();
}

// Costs of the nodes of rows first..last-1 from the order of strips to that of the model.
template <class S>
void by_node(const Layout<S> &lay, const Schedule<S> &plan, const double *theta, double *out,
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

// λ of the edges of blocks first..last-1 whose plain bound is the chain bound, after a hard forward
// half pass; rounded down, as in `lowered_half`. There is no product here: λ is one
// difference, rounded down, the same that `lowered_half` sends from.
//
// Each node's share θ̂_i / n_i goes to the edges that lead onwards from it: then every such edge has
// the least cost that its message took off, whatever the label of its far end. `theta` holds the
// shares in the order of the model, `rank` the order of the nodes along the chains.
template <class S>
void cut_chains(const Layout<S> &lay, const Schedule<S> &plan, const Index *rank, const S *msg,
                const double *theta, double *lam, Index first, Index last) {
    const RoundedDown down;
    each_half(lay, plan, msg, first, last, [&](Index h, const double *message) {
        const Index i = lay.node[h];
        const bool onwards = rank[i] < rank[lay.node[h ^ 1]];
        const double *share = theta + lay.node_offset[i];
        double *out = lam + lay.half_at(h);
        for (Index x = 0; x < lay.num_labels[i]; ++x)
            out[x] = !onwards ? -message[x] : share[x] < infinity ? share[x] - message[x] : 0.0;
    });
}

// κ_h = θ̂_i / n_i - M_h of blocks first..last-1: chain edge marginals are
// exp(-η (C_e + κ_h + κ_{h^1})). `theta` holds the shares in the order of the model.
template <class S>
void couplings(const Layout<S> &lay, const Schedule<S> &plan, const S *msg, const double *theta,
               double *out, Index first, Index last) {
    each_half(lay, plan, msg, first, last, [&](Index h, const double *message) {
        const double *share = theta + lay.node_offset[lay.node[h]];
        double *to = out + lay.half_at(h);
        for (Index x = 0; x < lay.labels_at(h); ++x)
            to[x] = share[x] < infinity ? share[x] - message[x] : 0.0;
    });
}

} // namespace softmap
