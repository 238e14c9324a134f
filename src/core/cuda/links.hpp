// Half passes where messages lie by edge: nodes add up what they receive, then edges send.
//
// On a graph whose edges lead anywhere, a message and its node cannot both lie in order. Here edges
// are sorted by the levels of their ends and then by the earlier end, and everything about an edge
// lies at its place: the message to its later end, that to its earlier end with what momentum needs
// of it, and its table. An edge then reads and writes in order, but for the sum of the node that
// sends, and the sums of one level fit the cache. Out of order are only the messages that nodes
// receive from earlier levels; they come from few stretches of memory, which the cache holds, too.
#pragma once

#include "passes.hpp"

namespace softmap {
namespace device {

inline constexpr int at_once = 4; // messages of a node that are on their way at a time

// θ̂_i / n_i of the nodes of one level, by place.
template <class H, bool Forward, int Heat, bool Moving>
SOFTMAP_KERNEL add_up_nodes(Arena<typename H::S> arena, typename H::S *msg, typename H::S *prev,
                            const Control *control, typename H::S *sums, int first, int count) {
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

// All edges that one level sends along. Block b serves edges chunks[2b] .. chunks[2b + 1] - 1.
template <class H, bool Forward, int Heat, bool Moving>
SOFTMAP_KERNEL send_along(Arena<typename H::S> arena, typename H::S *msg, typename H::S *prev,
                          const Control *control, double *partial, typename H::S *shift,
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
        deliver<NearestSum>(partial, product);
}

} // namespace device
} // namespace softmap
