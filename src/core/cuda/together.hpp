// Half passes of nodes with many half-edges: several warps work for a tile.
//
// Each of them adds up some of the messages into its nodes; the sums meet in the memory of the
// block, and each warp sends along the edges whose messages it has read. Whatever can be known
// before the sums are is loaded by then: messages, tables, where the new messages go and what they
// replace.
#pragma once

#include "passes.hpp"

namespace softmap {
namespace device {

#ifdef __CUDACC_RTC__
template <int Ways> inline constexpr int warps_of = Ways;
#else
template <int Ways> inline constexpr int warps_of = 1; // a block is one thread there
#endif
inline constexpr int most_warps = 16; // of a block

// Σ of what the warps of a team hold, known to all of them.
template <int N, int Ways, class S> inline void add_up(S *sum) {
#ifdef __CUDACC_RTC__
    __shared__ S part[most_warps][N][tile_size];
    const int warp = thread_in_block() / tile_size, lane = thread_in_block() % tile_size;
    __syncthreads(); // earlier sums may still be read
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < N; ++x)
        part[warp][x][lane] = sum[x];
    __syncthreads();
    const int first = warp / Ways * Ways;
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < N; ++x) {
        sum[x] = part[first][x][lane];
        SOFTMAP_UNROLL_ALL
        for (int w = 1; w < Ways; ++w)
            sum[x] += part[first + w][x][lane];
    }
#else
    (void)sum;
#endif
}

// An edge along which a thread sends, as far as it is known before the node's sum is.
template <class H, bool Replacing> struct Held {
    using S = typename H::S;
    static constexpr int N = H::N;
    static constexpr bool table_too = H::Kind == tables && N <= 4;
    S in[N], old[N], before[N], table[table_too ? N * N : 1];
    unsigned slot;
    Place place;

    template <bool Moved>
    void load(const Arena<S> &arena, const Node<H> &node, int j, const S *msg, const S *prev,
              double beta) {
        slot = node.slot(j);
        place = Far<H>(arena, slot).message();
        received<H, Moved>(msg, prev, node.message(j), N, beta, in);
        if constexpr (table_too) {
            const S *from = arena.arranged + table_place<H>(slot);
            SOFTMAP_UNROLL_ALL
            for (int k = 0; k < N * N; ++k)
                table[k] = read_once(from + k * tile_size);
        }
        if constexpr (Replacing) {
            read<H>(msg, place, N, old);
            read<H>(prev, place, N, before);
        }
    }

    template <int W, int Heat>
    void send_from(const Arena<S> &arena, const Pack<W> *a, Pack<W> *out, double eta) const {
        if constexpr (table_too) {
            Pack<W> room[4 * N + 8];
            const TableView<W, S, N, false> view{{N, N}, table, N, 1, Pack<W>(1.0), false};
            view.message(a, out, reinterpret_cast<double *>(room), eta);
        } else {
            send<H, W, true, Heat>(arena, slot, N, N, a, out, eta);
        }
    }
};

// What one thread does for its node in a half pass; all threads of a block come here together.
// `there`: whether it has a node.
template <class H, bool Forward, int Heat, bool Moving, int Ways>
inline double send_together(const Arena<typename H::S> &arena, const Node<H> &node, bool there,
                            typename H::S *msg, typename H::S *prev, double eta, double beta,
                            typename H::S *shift) {
    using S = typename H::S;
    constexpr int N = H::N, W = numbers_of_passes<H>(), step = warps_of<Ways>;
    constexpr bool moved = Forward && Moving, replacing = Moving && !Forward;
    const int way = thread_in_block() / tile_size % step;
    const int early = there ? node.early : 0, late = there ? node.late : 0;
    const int from = Forward ? early : 0, onwards = Forward ? late : early;
    const int begin = Forward ? 0 : early, others = Forward ? early : late;
    Held<H, replacing> held;
    S sum[N], in[N];
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < N; ++x)
        sum[x] = there && way == 0 ? arena.unary_single[node.cost(x)] : S(0);
    const auto add = [&](const S *more) {
        SOFTMAP_UNROLL_ALL
        for (int x = 0; x < N; ++x)
            sum[x] += more[x];
    };
    if (way < onwards) {
        held.template load<moved>(arena, node, from + way, msg, prev, beta);
        add(held.in);
    }
    for (int j = way; j < others; j += step) {
        received<H, false>(msg, prev, node.message(begin + j), N, beta, in);
        add(in);
    }
    for (int j = way + step; j < onwards; j += step) {
        received<H, moved>(msg, prev, node.message(from + j), N, beta, in);
        add(in);
    }
    add_up<N, Ways>(sum);
    double product = 0.0;
    for (int j = way; j < onwards; j += step) {
        if (j != way)
            held.template load<moved>(arena, node, from + j, msg, prev, beta);
        Pack<W> a[N];
        SOFTMAP_UNROLL_ALL
        for (int x = 0; x < N; ++x)
            a[x] = Pack<W>(sum[x] * S(node.share) - held.in[x]);
        Sent<H, W> sent;
        held.template send_from<W, Heat>(arena, a, sent.value, Heat == hard ? infinity : eta);
        sent.shift = normalise<W>(sent.value, N);
        sent.place = held.place;
        sent.labels = N;
        product += replace<H, replacing>(sent, held.old, held.before, msg, prev, beta);
        if (shift)
            shift[held.slot] = S(sent.shift);
    }
    return product;
}

// One level of a half pass.
template <class H, bool Forward, int Heat, bool Moving, int Ways>
SOFTMAP_KERNEL half_pass_together(SOFTMAP_ARENA_PARAMETERS(typename H::S), typename H::S *msg,
                                  typename H::S *prev, const Control *control, double *partial,
                                  typename H::S *shift, int first, int count) {
    const auto arena = SOFTMAP_ARENA(typename H::S);
    Node<H> node;
    const long long warp = thread_number() / tile_size;
    const int tile = int(warp / warps_of<Ways>);
    const bool there =
        tile < count && node.take(arena, first + tile, int(thread_number() % tile_size));
    const double product = send_together<H, Forward, Heat, Moving, Ways>(
        arena, node, there, msg, prev, control->eta, Moving ? control->beta : 0.0, shift);
    if constexpr (Moving && !Forward)
        deliver<NearestSum>(partial, product);
}

} // namespace device
} // namespace softmap
