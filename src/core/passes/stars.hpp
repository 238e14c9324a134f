// Sweeps over stars, colour by colour: smooth and hard-min block updates, diffusion, gradients.
//
// Messages m = -λ are stored in pass order of a schedule whose levels are colours. All half-edges
// of a colour's nodes receive μ_h(x) = softmin_y C(x, y) - m_{h^1}(y) (min at η = ∞); then each
// node sets the messages m_h of its half-edges by one of the rules below. Nodes of one colour share
// no edge, so that the result does not depend on the number of threads.
#pragma once

#include "base/softmin.hpp"
#include "chains.hpp"

namespace softmap {

// The arguments of a rule for one half-edge: entry x of its messages is at at + x · step.
struct HalfView {
    const double *received, *origin; // μ_h, and m_h before the update
    Index at, step, labels;
    double before(Index x) const { return origin[at + x * step]; }
    double answer(Index x) const { return received[at + x * step]; }
};

// Minimises L over the star (node-wise MPLP at η = ∞): the belief θ̂ is divided equally among the
// node and its edges.
struct StarRule {
    static constexpr bool collects_received = true, later_colours_see = true;
    static void prepare(double *belief, Index d, double) { settle_at_zero(belief, d); }
    static void apply(const HalfView &h, double *belief, const double *, Index degree, double,
                      double *out) {
        for (Index x = 0; x < h.labels; ++x)
            out[x] = h.answer(x) - belief[x] / double(degree + 1);
    }
};

// Max-sum diffusion, one half-edge after the other: the reparametrised cost of the node and the
// minimum over the edge are averaged, and θ̂ is updated.
struct DiffusionRule {
    static constexpr bool collects_received = false, later_colours_see = true;
    static void prepare(double *belief, Index d, double) { settle_at_zero(belief, d); }
    static void apply(const HalfView &h, double *belief, const double *, Index, double,
                      double *out) {
        for (Index x = 0; x < h.labels; ++x) {
            out[x] = 0.5 * (h.before(x) + h.answer(x) - belief[x]);
            if (belief[x] < infinity)
                belief[x] += out[x] - h.before(x);
        }
    }
};

// One gradient step on L for all half-edges: m - rate · ν with ν = S_h - μ_i.
struct GradientRule {
    static constexpr bool collects_received = false, later_colours_see = false;
    static void prepare(double *belief, Index d, double eta) { to_probabilities(belief, d, eta); }
    static void apply(const HalfView &h, double *mu, const double *excluded, Index degree,
                      double eta, double *out) {
        for (Index x = 0; x < h.labels; ++x)
            out[x] = excluded[x] + h.answer(x) - h.before(x);
        to_probabilities(out, h.labels, eta);
        const double rate = 1.0 / (eta * (0.5 * double(degree) + 1.0));
        for (Index x = 0; x < h.labels; ++x)
            out[x] = h.before(x) - rate * (out[x] - mu[x]);
    }
};

// Arrays of a sweep. `bar` (by strip) is +inf on forbidden states and 0 elsewhere; `origin` holds
// the messages before the update; the others are as in ChainArrays, `dot` by node.
struct StarArrays {
    double *msg, *origin;
    float *drift;
    Index size; // length of msg, origin and drift
    const double *bar;
    double *theta, *shift, *dot, *unused, *sums;
    Clock *clock;
    PassStop *stop = nullptr;
};

// Scratch memory: three arrays of `widest` entries.
struct StarRoom {
    explicit StarRoom(Index widest) : memory(3 * std::size_t(widest)), stride(widest) {}
    double *row(int k) { return memory.data() + k * stride; }
    std::vector<double> memory;
    Index stride;
};

inline void take(const double *costs, Index place, Index step, Index d, double *out) {
    for (Index x = 0; x < d; ++x)
        out[x] = costs[place + x * step];
}

// Calls f(pull, i, place, step) for the nodes i of rows first..last-1; the messages into i are
// listed from entry `pull` of `pull_at` on, and its cost x is at place + x · step.
template <class F> void each_node(const Schedule &plan, Index first, Index last, F f) {
    for (Index r = first; r < last; ++r) {
        const Row &row = plan.rows[r];
        for (Index k = 0; k < row.nodes; ++k)
            f(row.pulls + k * row.degree, plan.nodes[row.first + k], row.place + k, row.step);
    }
}

// Applies the rule at the nodes of rows first..last-1. The new messages go into `origin`, and into
// `msg` if `Rule::later_colours_see`. dot[i] is the node's part of the restart product.
template <class Rule>
void settle(const Layout &lay, const Schedule &plan, const StarArrays &run, double eta,
            const Momentum &momentum, StarRoom &room, Index first, Index last) {
    shares(plan, Rule::collects_received ? run.msg : run.origin, run.theta, first, last);
    double *out = room.row(0), *belief = room.row(1), *excluded = room.row(2);
    each_node(plan, first, last, [&](Index pull, Index i, Index place, Index step) {
        const Index d = lay.num_labels[i], degree = lay.start[i + 1] - lay.start[i];
        take(run.theta, place, step, d, belief);
        take(run.bar, place, step, d, excluded);
        Rule::prepare(belief, d, eta);
        double product = 0.0;
        for (Index p = pull; p < pull + degree; ++p) {
            const HalfView half{run.msg, run.origin, plan.pull_at[p], plan.pull_step[p], d};
            Rule::apply(half, belief, excluded, degree, eta, out);
            for (Index x = 0; x < d; ++x) {
                const Index q = half.at + x * half.step;
                const double y = run.origin[q], z = excluded[x] == 0.0 ? out[x] : 0.0;
                product += momentum.observe(Pack<1>(y), Pack<1>(z), q).part[0];
                run.origin[q] = z;
                run.msg[q] = Rule::later_colours_see ? z : y;
            }
        }
        run.dot[i] = product;
    });
}

// Computes μ_h at the half-edges of one level's nodes that lead to earlier nodes and, if
// `from_later`, also at those that lead to later nodes.
inline void receive(const Layout &lay, const Schedule &plan, Index level, const StarArrays &run,
                    double eta, bool from_later, const Scratch &room, Member &me) {
    const Traffic traffic{run.bar, run.msg, {}, eta, run.shift, run.unused};
    me.phase([&](Part part) {
        for (int way = 0; way < (from_later ? 2 : 1); ++way) {
            const bool forward = way == 0; // lists sorted by the level of the receiving endpoint
            const Index *start = forward ? plan.backward_start : plan.forward_start;
            const std::int32_t *listed = forward ? plan.later : nullptr;
            const Index begin = start[level * plan.bands], end = start[(level + 1) * plan.bands];
            send_blocks(lay, plan, listed, part.first(begin, end), part.last(begin, end), forward,
                        traffic, room);
        }
    });
}

inline void copy(const double *from, double *to, Index count, Member &me) {
    me.phase([&](Part part) {
        std::copy(from + part.first(0, count), from + part.last(0, count),
                  to + part.first(0, count));
    });
}

// `count` sweeps over all colours by one rule, with momentum over whole sweeps if `moving`. They
// may stop before a sweep, or before a colour if that changes nothing else; `stop` counts colours.
template <class Rule>
void sweeps(const Layout &lay, const Schedule &plan, Index count, const StarArrays &run, double eta,
            bool moving, Member &me) {
    const Scratch room(plan);
    const auto momentum = moving ? Momentum{run.drift, star_momentum} : Momentum{};
    StarRoom nodes(lay.widest);
    const auto late = [&](Index colour) {
        me.once([&] {
            if (run.stop->deadline().passed())
                run.stop->set(colour);
        });
        return run.stop->in(colour);
    };
    for (Index sweep = 0; sweep < count; ++sweep) {
        if (run.stop != nullptr && late(sweep * plan.levels))
            return;
        if (moving)
            extrapolate(run.msg, run.drift, run.size, *run.clock, me);
        copy(run.msg, run.origin, run.size, me);
        for (Index level = 0; level < plan.levels; ++level) {
            if (run.stop != nullptr && level > 0 && !moving && Rule::later_colours_see &&
                late(sweep * plan.levels + level))
                return;
            receive(lay, plan, level, run, eta, true, room, me);
            const Index row = plan.row_start[level], end = plan.row_start[level + 1];
            me.phase([&](Part part) {
                settle<Rule>(lay, plan, run, eta, momentum, nodes, part.first(row, end),
                             part.last(row, end));
            });
        }
        if (moving)
            steady_sum(run.dot, lay.n, run.sums, run.clock->product, me);
        if (!Rule::later_colours_see)
            copy(run.origin, run.msg, run.size, me);
    }
}

// dot[i] = soft minimum of θ̂_i plus the soft minima of the edges from i to earlier nodes, up to the
// shifts of their messages: -L = Σ dot + Σ shift.
inline void evaluate(const Layout &lay, const Schedule &plan, const StarArrays &run, double eta,
                     StarRoom &room, Index first, Index last) {
    shares(plan, run.origin, run.theta, first, last);
    double *out = room.row(0), *belief = room.row(1), *excluded = room.row(2);
    each_node(plan, first, last, [&](Index pull, Index i, Index place, Index step) {
        const Index d = lay.num_labels[i], degree = lay.start[i + 1] - lay.start[i];
        take(run.theta, place, step, d, belief);
        take(run.bar, place, step, d, excluded);
        double value = soft_minimum_of(belief, d, eta);
        for (Index p = pull; p < pull + degree; ++p) {
            const Index h = lay.half[lay.start[i] + p - pull];
            if (lay.node[h ^ 1] >= i)
                continue;
            for (Index x = 0; x < d; ++x) {
                const Index q = plan.pull_at[p] + x * plan.pull_step[p];
                out[x] = excluded[x] + run.msg[q] - run.origin[q];
                run.msg[q] = run.origin[q];
            }
            value += soft_minimum_of(out, d, eta);
        }
        run.dot[i] = value;
    });
}

// Computes the terms of -L(λ) at η (of the dual bound at η = ∞) into `dot` and `shift`.
inline void star_values(const Layout &lay, const Schedule &plan, const StarArrays &run, double eta,
                        Member &me) {
    const Scratch room(plan);
    StarRoom nodes(lay.widest);
    copy(run.msg, run.origin, run.size, me);
    for (Index level = 0; level < plan.levels; ++level) {
        receive(lay, plan, level, run, eta, false, room, me);
        const Index row = plan.row_start[level], end = plan.row_start[level + 1];
        me.phase([&](Part part) {
            evaluate(lay, plan, run, eta, nodes, part.first(row, end), part.last(row, end));
        });
    }
}

} // namespace softmap
