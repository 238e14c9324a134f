// Checks on the device: a dual bound rounded down, a point of the local polytope, and labels.
//
// The bound is that of λ as in `cut_chains` of passes/chains.hpp: the share θ̂_i / n_i of a node
// goes to each edge that leads forward from it. λ is a function of the messages, each operation
// rounded to nearest (`share_of`, `lam_of`). Everything after that is rounded down, so that the sum
// is at most the dual bound of this λ.
#pragma once

#include "coupling.hpp"
#include "passes.hpp"

namespace softmap {
namespace device {

// θ̂_i(x) / n_i in double precision, each operation rounded to nearest.
template <class H, class S>
inline double share_of(const Arena<S> &arena, const Node<H> &node, const S *msg, int x) {
    double sum = arena.unary[node.cost(x)];
    SOFTMAP_UNROLL(1)
    for (int j = 0; j < node.early + node.late; ++j) {
        const Place p = node.message(j);
        sum = add_nearest(sum, double(msg[p.at + (long long)x * p.step]));
    }
    return multiply_nearest(sum, node.share);
}

// λ of a half-edge at one label: share - M if the half-edge leads forward, else -M.
inline double lam_of(double share, double message, bool onwards) {
    if (!onwards)
        return -message;
    return share < infinity ? add_nearest(share, -message) : 0.0;
}

// A lower bound on the least reduced cost min_x C_i(x) - Σ λ(x) of a node; `share` gets its shares.
template <class H>
inline double own_bound(const Arena<typename H::S> &arena, const Node<H> &node,
                        const typename H::S *msg, double *share) {
    const int early = node.early, late = node.late;
    double sum = infinity;
    for (int x = 0; x < node.labels(); ++x) {
        const double cost = arena.unary[node.cost(x)];
        share[x] = share_of(arena, node, msg, x);
        double reduced = cost;
        SOFTMAP_UNROLL(1)
        for (int j = 0; j < early + late; ++j) {
            const Place p = node.message(j);
            const double own = double(msg[p.at + (long long)x * p.step]);
            reduced = add_down(reduced, -lam_of(share[x], own, j >= early));
        }
        if (cost < infinity)
            sum = smaller(reduced, sum);
    }
    return sum;
}

// A lower bound on the least reduced cost min C_e + λ_i + λ_j of half-edge j's edge, which must
// lead forward from the node.
template <class H>
inline double edge_bound(const Arena<typename H::S> &arena, const Node<H> &node, int j,
                         const typename H::S *msg, const double *share) {
    using Low = Pack<lowered>;
    const int d = node.labels();
    Low a[H::N], out[H::N];
    const Place p = node.message(j);
    for (int x = 0; x < d; ++x)
        a[x] = share[x] < infinity
                   ? Low(lam_of(share[x], double(msg[p.at + (long long)x * p.step]), true))
                   : Low(infinity);
    const unsigned slot = node.slot(j);
    const Far<H> far(arena, slot);
    // the tables of passes may be read only if they were not rounded
    constexpr bool arranged = H::Kind == tables && H::Exact;
    send<H, lowered, arranged, hard>(arena, slot, d, far.labels(), a, out, infinity);
    const Place q = far.message();
    const long long costs = far.cost(arena);
    double low = infinity;
    for (int y = 0; y < far.labels(); ++y) {
        const double got = double(msg[q.at + (long long)y * q.step]);
        if (arena.unary[costs + (long long)y * tile_size] < infinity)
            low = smaller(add_down(out[y].part[0], -got), low);
    }
    return low;
}

// The sum of `own_bound` and `edge_bound` over a node and the edges that lead forward from it,
// rounded down.
template <class H>
inline double node_bound(const Arena<typename H::S> &arena, const Node<H> &node,
                         const typename H::S *msg) {
    double share[H::N];
    double sum = own_bound(arena, node, msg, share);
    SOFTMAP_UNROLL(1)
    for (int j = node.early; j < node.early + node.late; ++j)
        sum = add_down(sum, edge_bound(arena, node, j, msg, share));
    return sum;
}

// partial[block] = lower bound on the sum of `node_bound` over the block's nodes.
template <class H>
SOFTMAP_KERNEL bounds(Arena<typename H::S> arena, const typename H::S *msg, double *partial,
                      int count) {
    Node<H> node;
    double sum = 0.0;
    if (node.find(arena, 0, count))
        sum = node_bound(arena, node, msg);
    deliver<RoundDown>(partial, sum);
}

// Terms of a check that are summed over nodes and edges.
struct CheckTerms {
    double cost = 0.0, entropy = 0.0, soft = 0.0, slack = 0.0;
};

// Stores the node marginals μ_i ∝ exp(-η share), the shares and the label of least share, by tile.
// Returns the cost Σ μ_i C_i, the entropy term (|N_i| - n_i) H(μ_i), and the soft minimum of the
// share times the number of chains that begin at the node (`Node::ends`).
template <class H>
inline CheckTerms soft_node(const Arena<typename H::S> &arena, const Node<H> &node,
                            const typename H::S *msg, double eta, double *share, double *mu,
                            int *label) {
    CheckTerms out;
    const int d = node.labels();
    double own[H::N], low = infinity, total = 0.0, mean = 0.0;
    int best = 0;
    for (int x = 0; x < d; ++x) {
        own[x] = share_of(arena, node, msg, x);
        share[node.cost(x)] = own[x];
        best = own[x] < low ? x : best;
        low = smaller(own[x], low);
    }
    for (int x = 0; x < d; ++x) {
        const double above = smaller(own[x] - low, excluded);
        double mass = own[x] < infinity ? Arithmetic<exact>::exp(-eta * above) : 0.0;
        mass = mass > trace ? mass : 0.0;
        own[x] = mass;
        total += mass;
        mean += mass > 0.0 ? mass * above : 0.0;
    }
    for (int x = 0; x < d; ++x) {
        const double one = own[x] / total;
        mu[node.cost(x)] = one;
        out.cost += priced(one, arena.unary[node.cost(x)]);
    }
    const double surplus = double(node.early + node.late) - 1.0 / node.share;
    out.entropy = surplus * (eta * mean / total + log_double(total));
    out.soft = node.ends() * (low - log_double(total) / eta);
    label[node.place()] = best;
    return out;
}

// `soft_node` for all nodes; rows 0 to 2 of `partial` get the block sums of cost, entropy and soft
// minimum.
template <class H>
SOFTMAP_KERNEL soft_nodes(Arena<typename H::S> arena, const typename H::S *msg,
                          const DeviceClock *control, double *share, double *mu, int *label,
                          double *partial, int blocks, int count) {
    Node<H> node;
    CheckTerms sum;
    if (node.find(arena, 0, count))
        sum = soft_node(arena, node, msg, control->eta, share, mu, label);
    deliver<RoundNearest>(partial, sum.cost);
    deliver<RoundNearest>(partial + blocks, sum.entropy);
    deliver<RoundNearest>(partial + 2 * blocks, sum.soft);
}

// Updates the weighted mean of node marginals over a run.
template <class H>
inline void sample_node(const Arena<typename H::S> &arena, const Node<H> &node,
                        const typename H::S *msg, const DeviceClock &control, float *mean,
                        double recent) {
    using S = typename H::S;
    const int d = node.labels();
    const double newest = (recent + 1.0) / (control.samples + 1.0 + recent);
    float own[H::N], low = float(infinity), total = 0.0f;
    for (int x = 0; x < d; ++x)
        own[x] = float(arena.unary_single[node.cost(x)]);
    SOFTMAP_UNROLL(1)
    for (int j = 0; j < node.early + node.late; ++j) {
        S in[H::N];
        read<H>(msg, node.message(j), d, in);
        for (int x = 0; x < d; ++x)
            own[x] += float(in[x]);
    }
    for (int x = 0; x < d; ++x)
        low = own[x] < low ? own[x] : low;
    const float cold = float(-control.eta * node.share);
    for (int x = 0; x < d; ++x) {
        own[x] = own[x] < float(infinity) ? Arithmetic<single>::exp(cold * (own[x] - low)) : 0.0f;
        total += own[x];
    }
    for (int x = 0; x < d; ++x) {
        float &kept = mean[node.cost(x)];
        kept += float(newest) * (own[x] / total - kept);
    }
}

// `sample_node` for all nodes; `sampled` then counts the sample.
template <class H>
SOFTMAP_KERNEL sample(Arena<typename H::S> arena, const typename H::S *msg,
                      const DeviceClock *control, float *mean, double recent, int count) {
    Node<H> node;
    if (node.find(arena, 0, count))
        sample_node(arena, node, msg, *control, mean, recent);
}

SOFTMAP_KERNEL sampled(DeviceClock *control) {
    if (thread_number() == 0)
        control->samples += 1.0;
}

// mu = the averaged marginals, normalised; returns their node cost.
template <class H>
inline double mean_node(const Arena<typename H::S> &arena, const Node<H> &node, const float *mean,
                        double *mu) {
    double total = 0.0, cost = 0.0;
    for (int x = 0; x < node.labels(); ++x)
        total += double(mean[node.cost(x)]);
    for (int x = 0; x < node.labels(); ++x) {
        const double one = double(mean[node.cost(x)]) / total;
        mu[node.cost(x)] = one;
        cost += priced(one, arena.unary[node.cost(x)]);
    }
    return cost;
}

// `mean_node` for all nodes; `partial` gets the block sums of the cost.
template <class H>
SOFTMAP_KERNEL mean_nodes(Arena<typename H::S> arena, const float *mean, double *mu,
                          double *partial, int count) {
    Node<H> node;
    double cost = 0.0;
    if (node.find(arena, 0, count))
        cost = mean_node(arena, node, mean, mu);
    deliver<RoundNearest>(partial, cost);
}

// One endpoint of an edge: loads its marginal p and κ = share - M.
struct End {
    long long cost;
    Place message;
    int labels;

    template <class H, class S>
    void load(const double *share, const double *mu, const S *msg, double *p, double *kappa) const {
        for (int x = 0; x < (H::uniform ? H::N : labels); ++x) {
            const double own = share[cost + (long long)x * tile_size];
            const double got = double(msg[message.at + (long long)x * message.step]);
            p[x] = mu[cost + (long long)x * tile_size];
            kappa[x] = own < infinity ? own - got : infinity;
        }
    }
};

// Adds to `out` the cost of the coupling of half-edge j's edge, which must lead forward, for the
// node marginals μ; the coupling is projected from exp(-η (C + κ_i + κ_j)) with κ = share - M. If
// `soft`, also adds its entropy, its slack and the shift of its message.
template <class H>
inline void couple_half(const Arena<typename H::S> &arena, const Node<H> &node, int j,
                        const typename H::S *msg, double eta, const double *share, const double *mu,
                        const typename H::S *shift, bool soft, CheckTerms &out) {
    const unsigned slot = node.slot(j), mate = arena.mate[slot];
    const Far<H> far(arena, slot);
    const End own{node.cost(0), node.message(j), node.labels()};
    const End other{far.cost(arena), far.message(), far.labels()};
    // rows are the labels of the edge's first endpoint, as on the host: the result depends on which
    // side is scaled first
    const bool first = arena.side[slot] == 0;
    const End from = first ? own : other, into = first ? other : own;
    double p[H::N], row[H::N], q[H::N], col[H::N];
    from.load<H>(share, mu, msg, p, row);
    into.load<H>(share, mu, msg, q, col);
    const Coupled found = couple_edge<H>(arena, first ? slot : mate, row, col, p, q, from.labels,
                                         into.labels, eta, soft);
    out.cost += found.cost;
    out.entropy += found.entropy;
    out.slack += found.slack;
    if (soft)
        out.soft += double(shift[H::Linked ? edge_of(arena, arena.where[slot]) : mate]);
}

// The sums of `couple_half` over all edges that lead forward from a node.
template <class H>
inline CheckTerms couple_node(const Arena<typename H::S> &arena, const Node<H> &node,
                              const typename H::S *msg, double eta, const double *share,
                              const double *mu, const typename H::S *shift, bool soft) {
    CheckTerms out;
    SOFTMAP_UNROLL(1)
    for (int j = node.early; j < node.early + node.late; ++j)
        couple_half(arena, node, j, msg, eta, share, mu, shift, soft, out);
    return out;
}

// `couple_node` for all nodes; rows 0 to 3 of `partial` get the block sums of cost, entropy, shift
// and slack.
template <class H>
SOFTMAP_KERNEL couple_edges(Arena<typename H::S> arena, const typename H::S *msg,
                            const DeviceClock *control, const double *share, const double *mu,
                            const typename H::S *shift, double *partial, int blocks, int soft,
                            int count) {
    Node<H> node;
    CheckTerms sum;
    if (node.find(arena, 0, count))
        sum = couple_node(arena, node, msg, control->eta, share, mu, shift, soft != 0);
    deliver<RoundNearest>(partial, sum.cost);
    deliver<RoundNearest>(partial + blocks, sum.entropy);
    deliver<RoundNearest>(partial + 2 * blocks, sum.soft);
    deliver<RoundNearest>(partial + 3 * blocks, sum.slack);
}

// The label of a node given those of later levels, from the messages of a hard forward half pass:
// it minimises the node's cost, plus the messages from earlier levels, plus the costs of the edges
// to later levels. Of labels that tie, within the rounding of messages, it is the first.
template <class H>
inline int decided(const Arena<typename H::S> &arena, const Node<H> &node, const typename H::S *msg,
                   const int *label) {
    constexpr double tie = sizeof(typename H::S) == 4 ? 1e-6 : 1e-9; // relative to messages
    const int d = node.labels();
    double cost[H::N], size = 0.0, low = infinity;
    for (int x = 0; x < d; ++x)
        cost[x] = arena.unary[node.cost(x)];
    SOFTMAP_UNROLL(1)
    for (int j = 0; j < node.early; ++j) {
        const Place p = node.message(j);
        for (int x = 0; x < d; ++x) {
            const double got = double(msg[p.at + (long long)x * p.step]);
            cost[x] += got;
            size = size < got ? got : size; // messages are not negative
        }
    }
    SOFTMAP_UNROLL(1)
    for (int j = node.early; j < node.early + node.late; ++j) {
        const unsigned slot = node.slot(j);
        const Far<H> far(arena, slot);
        const int other = label[far.place(arena)];
        with_edge<H, exact, false>(arena, slot, d, far.labels(), [&](const auto &edge) {
            for (int x = 0; x < d; ++x)
                cost[x] += edge.entry(x, other).part[0];
        });
    }
    for (int x = 0; x < d; ++x)
        low = smaller(cost[x], low);
    int best = 0;
    while (best + 1 < d && !(cost[best] <= low + tie * size))
        ++best;
    return best;
}

// `decided` for the nodes of tiles first .. first + count - 1, which are those of one level.
template <class H>
SOFTMAP_KERNEL decide(Arena<typename H::S> arena, const typename H::S *msg, int *label, int first,
                      int count) {
    Node<H> node;
    if (node.find(arena, first, count))
        label[node.place()] = decided(arena, node, msg, label);
}

// The cost of half-edge j's edge under the labels.
template <class H>
inline double edge_energy(const Arena<typename H::S> &arena, const Node<H> &node, int j,
                          const int *label) {
    const unsigned slot = node.slot(j);
    const Far<H> far(arena, slot);
    const int own = label[node.place()], other = label[far.place(arena)];
    double energy = 0.0;
    with_edge<H, exact, false>(arena, slot, node.labels(), far.labels(),
                               [&](const auto &edge) { energy = edge.entry(own, other).part[0]; });
    return energy;
}

// The cost of a node and of the edges that lead forward from it, under the labels.
template <class H>
inline double node_energy(const Arena<typename H::S> &arena, const Node<H> &node,
                          const int *label) {
    double energy = arena.unary[node.cost(label[node.place()])];
    SOFTMAP_UNROLL(1)
    for (int j = node.early; j < node.early + node.late; ++j)
        energy += edge_energy(arena, node, j, label);
    return energy;
}

// `partial` gets the block sums of `node_energy`: together, the energy of the labels.
template <class H>
SOFTMAP_KERNEL energies(Arena<typename H::S> arena, const int *label, double *partial, int count) {
    Node<H> node;
    double energy = 0.0;
    if (node.find(arena, 0, count))
        energy = node_energy(arena, node, label);
    deliver<RoundNearest>(partial, energy);
}

// total[row] = Σ of each row of `partial`; the sums of rows from index `nearest` on are rounded
// down.
SOFTMAP_KERNEL totals(const double *partial, double *total, int blocks, int rows, int nearest) {
    const int row = block_number();
    if (row >= rows)
        return;
    double sum = 0.0;
    for (int k = thread_in_block(); k < blocks; k += block_size()) {
        const double one = partial[(long long)row * blocks + k];
        sum = row < nearest ? add_nearest(sum, one) : add_down(sum, one);
    }
    sum = row < nearest ? block_sum<RoundNearest>(sum) : block_sum<RoundDown>(sum);
    if (thread_in_block() == 0)
        total[row] = sum;
}

} // namespace device
} // namespace softmap
