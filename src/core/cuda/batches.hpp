// Batches of small models: one thread block per model runs whole passes.
//
// The models are stored one after the other in an arena; the tiles of level l of model k begin at
// level_start[k · levels + l]. Each model has its own DeviceClock, so that it is annealed and
// stopped independently; `active` lists the models that are still running.
#pragma once

#include "links.hpp"
#include "transfer.hpp"

namespace softmap {
namespace device {

// Calls f(node) for the nodes of tiles first .. last - 1, distributed over the threads of a block.
template <class H, class F>
inline void each_node(const Arena<typename H::S> &arena, int first, int last, F f) {
    const int nodes = (last - first) * tile_size;
    for (int k = thread_in_block(); k < nodes; k += block_size()) {
        Node<H> node;
        if (node.take(arena, first + k / tile_size, k % tile_size))
            f(node);
    }
}

inline constexpr int batch_ways = 8; // warps that share the work of a tile if there are few labels
template <class H> inline constexpr bool teamed = H::uniform && !H::bounded && H::N <= 4;

// As `each_node`, with teams of warps: all threads of a block call f(node, there) together, with
// `there` false for threads without a node.
template <class H, class F>
inline void each_team(const Arena<typename H::S> &arena, int first, int last, F f) {
    constexpr int members = warps_of<batch_ways>;
    const int nodes = (last - first) * tile_size, thread = thread_in_block();
    const int at_once = block_size() / members;
    const int own = thread / (members * tile_size) * tile_size + thread % tile_size;
    for (int k = own; k - own < nodes; k += at_once) {
        Node<H> node;
        f(node, k < nodes && node.take(arena, first + k / tile_size, k % tile_size));
    }
}

// Calls f(node, j) for the edges that lead forward from the nodes of tiles first .. last - 1,
// distributed over the warps of a block.
template <class H, class F>
inline void each_onward(const Arena<typename H::S> &arena, int first, int last, F f) {
    const int lanes_at_once = block_size() < tile_size ? block_size() : tile_size;
    const int warps = block_size() / lanes_at_once, warp = thread_in_block() / tile_size;
    int turn = 0;
    for (int tile = first; tile < last; ++tile)
        for (int k = 0; k < arena.tiles[tile].late; ++k, turn = turn + 1 < warps ? turn + 1 : 0)
            for (int lane = thread_in_block() % tile_size; lane < tile_size && turn == warp;
                 lane += lanes_at_once) {
                Node<H> node;
                if (node.take(arena, tile, lane) && k < node.late)
                    f(node, node.early + k);
            }
}

// One half pass of one model; returns this thread's part of the restart product.
template <class Pass> inline double half_of(const Pass &pass, const int *start, int levels) {
    using H = typename Pass::H;
    double product = 0.0;
    for (int step = 0; step < levels; ++step) {
        const int level = Pass::Forward ? step : levels - 1 - step;
        if constexpr (teamed<H>) {
            const int way = thread_in_block() / tile_size % warps_of<batch_ways>;
            each_team<H>(pass.arena, start[level], start[level + 1],
                         [&](const Node<H> &node, bool there) {
                             product += send_node(pass, WarpTeam<batch_ways>{way}, node, there);
                         });
        } else {
            each_node<H>(pass.arena, start[level], start[level + 1], [&](const Node<H> &node) {
                product += send_node(pass, Alone{}, node, true);
            });
        }
        wait_for_block();
    }
    return product;
}

// `count` passes of every active model. `heats` has two entries per active model: η and the largest
// momentum parameter t (`longest`). If `mean` is not null, node marginals are averaged into it.
template <class H, int Heat>
SOFTMAP_MODEL_KERNEL
batch_passes(Arena<typename H::S> arena, typename H::S *msg, typename H::S *prev,
             DeviceClock *controls, const double *heats, typename H::S *shift, float *mean,
             double recent, const int *active, const int *level_start, int levels, int count) {
    const int model = active[block_number()];
    const int *start = level_start + model * levels;
    DeviceClock &control = controls[model];
    if (thread_in_block() == 0) {
        control.eta = heats[2 * block_number()];
        control.longest = heats[2 * block_number() + 1];
    }
    for (int pass = 0; pass < count; ++pass) {
        if (thread_in_block() == 0)
            advance(control);
        wait_for_block();
        const double eta = control.eta, beta = control.beta;
        const HalfPass<H, true, Heat, true> forward{arena, msg, prev, nullptr, eta, beta};
        const HalfPass<H, false, Heat, true> backward{arena, msg, prev, shift, eta, beta};
        half_of(forward, start, levels);
        const double part = half_of(backward, start, levels);
        const double product = block_sum<RoundNearest>(part);
        const bool sampled_now = mean && (long long)control.passes % sampling == 0;
        if (sampled_now)
            each_node<H>(arena, start[0], start[levels], [&](const Node<H> &node) {
                sample_node(arena, node, msg, control, mean, recent);
            });
        wait_for_block();
        if (thread_in_block() == 0) {
            control.product = product;
            control.samples += sampled_now;
        }
        wait_for_block();
    }
}

// Entries of `found` for each model: the results of a check; see softmap.methods.cuda.batch.
enum : int {
    found_cost,
    found_node_entropy,
    found_smoothed,
    found_edge_entropy,
    found_slack,
    found_energy,
    found_mean_cost,
    found_bound,
    found_size
};

// A check of every active model: hard passes on a copy `polished` of the messages, a dual bound
// rounded down, node marginals, labels and their energy, and the costs of the couplings. Each
// model's results go into its row of `found`.
template <class H>
SOFTMAP_MODEL_KERNEL batch_look(Arena<typename H::S> arena, const typename H::S *msg,
                                typename H::S *polished, const DeviceClock *controls,
                                const typename H::S *shift, double *share, double *mu, int *label,
                                const float *mean, double *mean_mu, double *found,
                                const int *active, const int *level_start, int levels) {
    const int model = active[block_number()];
    const int *start = level_start + model * levels;
    const int first = start[0], last = start[levels];
    const double eta = controls[model].eta;
    each_node<H>(arena, first, last, [&](const Node<H> &node) {
        for (int j = 0; j < node.early + node.late; ++j)
            for (int x = 0; x < node.labels(); ++x) {
                const Place p = node.message(j);
                polished[p.at + (long long)x * p.step] = msg[p.at + (long long)x * p.step];
            }
    });
    wait_for_block();
    const HalfPass<H, true, hard, false> forward{arena, polished, polished, nullptr, eta, 0.0};
    const HalfPass<H, false, hard, false> backward{arena, polished, polished, nullptr, eta, 0.0};
    half_of(forward, start, levels);
    half_of(backward, start, levels);
    half_of(forward, start, levels);
    double bound = 0.0, energy = 0.0, mean_cost = 0.0;
    CheckTerms nodes, edges;
    each_node<H>(arena, first, last, [&](const Node<H> &node) {
        double own[H::N];
        bound = add_down(bound, own_bound(arena, node, polished, own));
        const CheckTerms one = soft_node(arena, node, msg, eta, share, mu, label);
        nodes.cost += one.cost;
        nodes.entropy += one.entropy;
        nodes.soft += one.soft;
        if (mean)
            mean_cost += mean_node(arena, node, mean, mean_mu);
        energy += arena.unary[node.cost(label[node.place()])];
    });
    wait_for_block();
    each_onward<H>(arena, first, last, [&](const Node<H> &node, int j) {
        double own[H::N];
        for (int x = 0; x < node.labels(); ++x)
            own[x] = share_of(arena, node, polished, x);
        bound = add_down(bound, edge_bound(arena, node, j, polished, own));
        energy += edge_energy(arena, node, j, label);
        couple_half(arena, node, j, msg, eta, share, mu, shift, true, edges);
        if (mean) {
            CheckTerms mixed;
            couple_half(arena, node, j, msg, eta, share, mean_mu, shift, false, mixed);
            mean_cost += mixed.cost;
        }
    });
    const double sums[found_size] = {block_sum<RoundNearest>(nodes.cost + edges.cost),
                                     block_sum<RoundNearest>(nodes.entropy),
                                     block_sum<RoundNearest>(nodes.soft + edges.soft),
                                     block_sum<RoundNearest>(edges.entropy),
                                     block_sum<RoundNearest>(edges.slack),
                                     block_sum<RoundNearest>(energy),
                                     block_sum<RoundNearest>(mean_cost),
                                     block_sum<RoundDown>(bound)};
    if (thread_in_block() == 0)
        for (int k = 0; k < found_size; ++k)
            found[model * found_size + k] = sums[k];
}

// Stores the best results of each model so far. `what` has one bit mask per active model: 1 for λ,
// 2 for the point, 4 for the point of the averaged marginals, 8 for the labels.
template <class H>
SOFTMAP_MODEL_KERNEL
batch_keep(Arena<typename H::S> arena, const typename H::S *msg, const typename H::S *polished,
           const double *mu, const double *mean_mu, const int *label, typename H::S *best_lam,
           typename H::S *best_msg, double *best_mu, int *best_label, const int *what,
           const int *active, const int *level_start, int levels) {
    const int number = block_number(), model = active[number], kept = what[number];
    const int *start = level_start + model * levels;
    each_node<H>(arena, start[0], start[levels], [&](const Node<H> &node) {
        for (int x = 0; x < node.labels(); ++x) {
            for (int j = 0; j < node.early + node.late; ++j) {
                const Place p = node.message(j);
                const long long at = p.at + (long long)x * p.step;
                if (kept & 1)
                    best_lam[at] = polished[at];
                if (kept & 6)
                    best_msg[at] = msg[at];
            }
            if (kept & 6)
                best_mu[node.cost(x)] = kept & 4 ? mean_mu[node.cost(x)] : mu[node.cost(x)];
        }
        if (kept & 8)
            best_label[node.place()] = label[node.place()];
    });
}

} // namespace device
} // namespace softmap
