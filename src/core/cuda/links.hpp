// Half passes with messages stored by edge: one kernel sums the messages of nodes, one sends.
//
// On an irregular graph the accesses by node and by edge cannot both be contiguous. Here edges are
// sorted by the levels of their endpoints, then by the earlier endpoint, and all data of an edge
// are stored at its index: its two messages, `prev` for momentum, and its table. A thread per edge
// then reads and writes contiguously, except for the sum of the sending node; the sums of one level
// fit into the cache. Only the messages that nodes receive from earlier levels are read out of
// order; they come from few ranges of memory, which fit into the cache, too.
#pragma once

#include "passes.hpp"

namespace softmap {
namespace device {

inline constexpr int at_once = 4; // messages of a node that are loaded before they are added

// sums = θ̂_i / n_i of the nodes of one level, by place.
template <class H, bool Forward, int Heat, bool Moving>
SOFTMAP_KERNEL add_up_nodes(Arena<typename H::S> arena, typename H::S *msg, typename H::S *prev,
                            const DeviceClock *control, typename H::S *sums, int first, int count) {
    using S = typename H::S;
    constexpr int N = H::N;
    Node<H> node;
    if (!node.find(arena, first, count))
        return;
    const HalfPass<H, Forward, Heat, Moving> pass{
        arena, msg, prev, nullptr, control->eta, Moving ? control->beta : 0.0};
    S sum[N];
    costs_of(arena, node, sum);
    pass.template add_all<N <= 4 ? at_once : 1>(node, sum);
    Pack<exact> shared[N];
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < N; ++x)
        shared[x] = Pack<exact>(sum[x] * S(node.share));
    write<H>(sums, Place{node.place() * H::padded, 1}, N, shared);
}

// Sends along all edges of one level. Block b handles edges chunks[2b] .. chunks[2b + 1] - 1.
template <class H, bool Forward, int Heat, bool Moving>
SOFTMAP_KERNEL send_along(Arena<typename H::S> arena, typename H::S *msg, typename H::S *prev,
                          const DeviceClock *control, double *partial, typename H::S *shift,
                          const typename H::S *sums, const unsigned *receiver, const int *chunks) {
    using S = typename H::S;
    using Pass = HalfPass<H, Forward, Heat, Moving>;
    const int edge = chunks[2 * block_number()] + thread_in_block();
    double product = 0.0;
    if (edge < chunks[2 * block_number() + 1]) {
        const Pass pass{arena, msg, prev, shift, control->eta, Moving ? control->beta : 0.0};
        Outgoing<Pass, true> out;
        out.load_edge(pass, unsigned(edge));
        const unsigned sender = receiver[edge + (Forward ? arena.edges : 0)];
        S sum[H::N];
        read<H>(sums, Place{(long long)sender * H::padded, 1}, H::N, sum);
        product = out.send(pass, sum, S(1), H::N);
    }
    if constexpr (Moving && !Forward)
        deliver<RoundNearest>(partial, product);
}

} // namespace device
} // namespace softmap
