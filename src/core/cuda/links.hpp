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

// Messages first .. last - 1 of a node, added to its sum; Moved: with momentum.
template <class H, bool Moved>
inline void add_messages(const Node<H> &node, int first, int last, const typename H::S *msg,
                         const typename H::S *prev, typename H::S beta, typename H::S *sum) {
    using S = typename H::S;
    constexpr int N = H::N, some = N <= 4 ? at_once : 1;
    for (int j = first; j < last; j += some) {
        S in[some][N], before[some][N];
        SOFTMAP_UNROLL_ALL
        for (int k = 0; k < some; ++k)
            if (j + k < last) {
                const Place place = node.message(j + k);
                read<H>(msg, place, N, in[k]);
                if constexpr (Moved)
                    read<H>(prev, place, N, before[k]);
            }
        SOFTMAP_UNROLL_ALL
        for (int k = 0; k < some; ++k)
            if (j + k < last)
                SOFTMAP_UNROLL_ALL
        for (int x = 0; x < N; ++x)
            sum[x] += Moved ? in[k][x] + beta * (in[k][x] - before[k][x]) : in[k][x];
    }
}

// θ̂_i / n_i of the nodes of one level, by place; Moved: messages from later levels with momentum.
template <class H, bool Moved>
SOFTMAP_KERNEL add_up_nodes(SOFTMAP_ARENA_PARAMETERS(typename H::S), const typename H::S *msg,
                            const typename H::S *prev, const Control *control, typename H::S *sums,
                            int first, int count) {
    using S = typename H::S;
    constexpr int N = H::N;
    const auto arena = SOFTMAP_ARENA(S);
    Node<H> node;
    if (!node.find(arena, first, count))
        return;
    const S beta = S(Moved ? control->beta : 0.0);
    S sum[N];
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < N; ++x)
        sum[x] = arena.unary_single[node.cost(x)];
    add_messages<H, false>(node, 0, node.early, msg, prev, beta, sum);
    add_messages<H, Moved>(node, node.early, node.early + node.late, msg, prev, beta, sum);
    Pack<exact> shared[N];
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < N; ++x)
        shared[x] = Pack<exact>(sum[x] * S(node.share));
    write<H>(sums, Place{node.place() * H::padded, 1}, N, shared);
}

// The message along one edge, to its later end (Forward) or its earlier one.
template <class H, bool Forward, int Heat, bool Moving>
inline double send_edge(const Arena<typename H::S> &arena, unsigned edge, typename H::S *msg,
                        typename H::S *prev, double eta, double beta, const typename H::S *sums,
                        const unsigned *receiver, typename H::S *shift) {
    using S = typename H::S;
    constexpr int N = H::N, W = numbers_of_passes<H>();
    constexpr bool replacing = Moving && !Forward;
    const unsigned later = edge, earlier = edge + unsigned(arena.edges);
    const unsigned own = Forward ? earlier : later, out = Forward ? later : earlier;
    const Place from{(long long)own * H::padded, 1}, to{(long long)out * H::padded, 1};
    S in[N], old[N], before[N], sum[N];
    read<H>(msg, from, N, in);
    if constexpr (Moving)
        read<H>(prev, Forward ? from : to, N, before);
    if constexpr (replacing)
        read<H>(msg, to, N, old);
    read<H>(sums, Place{(long long)receiver[own] * H::padded, 1}, N, sum);
    Pack<W> a[N], room[4 * N + 8];
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < N; ++x) {
        const S moved = Moving && Forward ? in[x] + S(beta) * (in[x] - before[x]) : in[x];
        a[x] = Pack<W>(sum[x] - moved);
    }
    constexpr long long row = N * tile_size, column = tile_size;
    const TableView<W, S, N, true> table{{N, N},
                                         arena.arranged + table_place<H>(edge),
                                         Forward ? row : column,
                                         Forward ? column : row,
                                         Pack<W>(1.0),
                                         false};
    Sent<H, W> sent;
    table.message(a, sent.value, reinterpret_cast<double *>(room), Heat == hard ? infinity : eta);
    sent.shift = normalise<W>(sent.value, N);
    sent.place = to;
    sent.labels = N;
    if (shift)
        shift[edge] = S(sent.shift);
    return replace<H, replacing>(sent, old, before, msg, prev, beta);
}

// All edges that one level sends along. Block b serves edges chunks[2b] .. chunks[2b + 1] - 1.
template <class H, bool Forward, int Heat, bool Moving>
SOFTMAP_KERNEL send_along(SOFTMAP_ARENA_PARAMETERS(typename H::S), typename H::S *msg,
                          typename H::S *prev, const Control *control, double *partial,
                          typename H::S *shift, const typename H::S *sums, const unsigned *receiver,
                          const int *chunks) {
    const auto arena = SOFTMAP_ARENA(typename H::S);
    const int edge = chunks[2 * block_number()] + thread_in_block();
    double product = 0.0;
    if (edge < chunks[2 * block_number() + 1])
        product = send_edge<H, Forward, Heat, Moving>(arena, unsigned(edge), msg, prev,
                                                      control->eta, Moving ? control->beta : 0.0,
                                                      sums, receiver, shift);
    if constexpr (Moving && !Forward)
        deliver<NearestSum>(partial, product);
}

} // namespace device
} // namespace softmap
