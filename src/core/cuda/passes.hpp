// Half passes over one level, and the clock of momentum: core/chains.hpp for a GPU.
//
// One thread serves one node: it adds up its messages and sends along the edges that point onwards.
// Everything is loaded before the first store, since the compiler cannot know that they do not
// meet. The messages sent backward take part in momentum: a forward half pass reads
// y = z + β (z - prev) in their place, and the backward one, which makes them anew, finds y the
// same way and notes what momentum needs.
#pragma once

#include "edges.hpp"
#include "families/dense.hpp"

namespace softmap {
namespace device {

// What a run carries along on the device.
struct Control {
    double eta;
    double t, restarts, product; // as Clock in core/momentum.hpp
    double beta;
    double longest; // t is at most this, looked at every few passes
    double passes;  // so far
    double samples; // of the averaged marginals
};

inline constexpr double relax = 0.75, turn = 0.3; // chain_momentum of core/momentum.hpp
inline constexpr int sampling = 5;                // passes between looks at `longest`

// Before a pass: β from the product of the last one.
inline void advance(Control &c) {
    const long long done = (long long)c.passes;
    if (done > 0 && done % sampling == 0 && c.t > c.longest)
        c.t = c.longest;
    const bool back = c.product > 0.0;
    const double t = back ? 1.0 : c.t;
    const double following = 0.5 * (1.0 + sqrt_double(1.0 + 4.0 * t * t));
    c.beta = (t - 1.0) / following;
    c.t = following;
    c.restarts += back;
    c.passes += 1.0;
}

SOFTMAP_KERNEL tick(Control *control, const double *partial, int count) {
    constexpr int ahead = 16; // one block has many parts to read, and is not to wait for each
    double sum = 0.0;
    for (int k = thread_in_block(); k < count; k += ahead * block_size()) {
        double part[ahead];
        SOFTMAP_UNROLL_ALL
        for (int l = 0; l < ahead; ++l)
            part[l] = k + l * block_size() < count ? partial[k + l * block_size()] : 0.0;
        SOFTMAP_UNROLL_ALL
        for (int l = 0; l < ahead; ++l)
            sum += part[l];
    }
    sum = block_sum<NearestSum>(sum);
    if (thread_in_block() != 0)
        return;
    if (control->passes > 0.0 && count > 0)
        control->product = sum;
    advance(*control);
}

// Least entry off all, 0 where no cost is known; what was taken off.
template <int W> inline double normalise(Pack<W> *out, int labels) {
    Pack<W> low = out[0];
    SOFTMAP_UNROLL_ALL
    for (int y = 1; y < labels; ++y)
        low = least(out[y], low);
    SOFTMAP_UNROLL_ALL
    for (int y = 0; y < labels; ++y) {
        const Pack<W> value = out[y] - low;
        out[y] = unless_infinite(value, value);
    }
    return double(low.part[0]);
}

// Messages that a node sends along one edge, and where they go.
template <class H, int W> struct Sent {
    Pack<W> value[H::N];
    Place place;
    int labels;
    double shift;
};

template <class H, bool Moving, int W>
double replace(const Sent<H, W> &sent, const typename H::S *old, const typename H::S *before,
               typename H::S *msg, typename H::S *prev, double beta);

// Store a message; with momentum, note what it replaces and return the part of the restart product.
template <class H, bool Moving, int W>
inline double replace(const Sent<H, W> &sent, typename H::S *msg, typename H::S *prev,
                      double beta) {
    using S = typename H::S;
    S old[H::N], before[H::N];
    if constexpr (Moving) {
        read<H>(msg, sent.place, sent.labels, old);
        read<H>(prev, sent.place, sent.labels, before);
    }
    return replace<H, Moving>(sent, old, before, msg, prev, beta);
}

// The same where the old message and what came before it were read already.
template <class H, bool Moving, int W>
inline double replace(const Sent<H, W> &sent, const typename H::S *old, const typename H::S *before,
                      typename H::S *msg, typename H::S *prev, double beta) {
    using S = typename H::S;
    double product = 0.0;
    if constexpr (Moving) {
        Pack<exact> noted[H::N];
        SOFTMAP_UNROLL_ALL
        for (int x = 0; x < (H::uniform ? H::N : sent.labels); ++x) {
            const S y = old[x] + S(beta) * (old[x] - before[x]);
            const S value = S(sent.value[x].part[0]), step = y - value;
            product += double(step * (value - old[x] - S(turn) * step));
            noted[x] = Pack<exact>(old[x] + S(relax) * step);
        }
        write<H>(prev, sent.place, sent.labels, noted);
    }
    write<H>(msg, sent.place, sent.labels, sent.value);
    return product;
}

// For nodes with few half-edges: all of them in registers.
template <class H, bool Forward, int Heat, bool Moving, int W>
inline double send_bounded(const Arena<typename H::S> &arena, const Node<H> &node,
                           typename H::S *msg, typename H::S *prev, double eta, double beta,
                           typename H::S *shift) {
    using S = typename H::S;
    constexpr int N = H::N, most = H::Early > H::Late ? H::Early : H::Late;
    const int early = node.early, late = node.late;
    S cost[N], in[H::Early + H::Late][N];
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < N; ++x)
        cost[x] = arena.unary_single[node.cost(x)];
    SOFTMAP_UNROLL_ALL
    for (int k = 0; k < H::Early; ++k)
        if (k < early)
            read<H>(msg, node.message(k), N, in[k]);
    SOFTMAP_UNROLL_ALL
    for (int k = 0; k < H::Late; ++k)
        if (k < late) {
            read<H>(msg, node.message(early + k), N, in[H::Early + k]);
            if constexpr (Forward && Moving) {
                S before[N];
                read<H>(prev, node.message(early + k), N, before);
                SOFTMAP_UNROLL_ALL
                for (int x = 0; x < N; ++x)
                    in[H::Early + k][x] += S(beta) * (in[H::Early + k][x] - before[x]);
            }
        }
    SOFTMAP_UNROLL_ALL
    for (int k = 0; k < H::Early + H::Late; ++k)
        if (k < H::Early ? k < early : k - H::Early < late)
            SOFTMAP_UNROLL_ALL
    for (int x = 0; x < N; ++x)
        cost[x] += in[k][x];
    constexpr int begin = Forward ? H::Early : 0, count = Forward ? H::Late : H::Early;
    const int onwards = Forward ? late : early, from = Forward ? early : 0;
    Sent<H, W> sent[most];
    SOFTMAP_UNROLL_ALL
    for (int k = 0; k < count; ++k)
        if (k < onwards) {
            Pack<W> a[N];
            SOFTMAP_UNROLL_ALL
            for (int x = 0; x < N; ++x)
                a[x] = Pack<W>(cost[x] * S(node.share) - in[begin + k][x]);
            const unsigned slot = node.slot(from + k);
            send<H, W, true, Heat>(arena, slot, N, N, a, sent[k].value,
                                   Heat == hard ? infinity : eta);
            sent[k].shift = normalise<W>(sent[k].value, N);
            sent[k].place = Far<H>(arena, slot).message();
            sent[k].labels = N;
        }
    double product = 0.0;
    SOFTMAP_UNROLL_ALL
    for (int k = 0; k < count; ++k)
        if (k < onwards) {
            product += replace < H, Moving && !Forward > (sent[k], msg, prev, beta);
            if (shift)
                shift[node.slot(from + k)] = S(sent[k].shift);
        }
    return product;
}

// A message into a node, as a half pass reads it.
template <class H, bool Moved>
inline void received(const typename H::S *msg, const typename H::S *prev, const Place &place,
                     int labels, double beta, typename H::S *to) {
    using S = typename H::S;
    read<H>(msg, place, labels, to);
    if constexpr (Moved) {
        S before[H::N];
        read<H, true>(prev, place, labels, before);
        SOFTMAP_UNROLL_ALL
        for (int x = 0; x < (H::uniform ? H::N : labels); ++x)
            to[x] += S(beta) * (to[x] - before[x]);
    }
}

// For any number of half-edges.
template <class H, bool Forward, int Heat, bool Moving, int W>
inline double send_any(const Arena<typename H::S> &arena, const Node<H> &node, typename H::S *msg,
                       typename H::S *prev, double eta, double beta, typename H::S *shift) {
    using S = typename H::S;
    constexpr int N = H::N;
    const int early = node.early, late = node.late, d = node.labels();
    S cost[N], in[N];
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < d; ++x)
        cost[x] = arena.unary_single[node.cost(x)];
    SOFTMAP_UNROLL(4)
    for (int j = 0; j < early; ++j) {
        received<H, false>(msg, prev, node.message(j), d, beta, in);
        SOFTMAP_UNROLL_ALL
        for (int x = 0; x < d; ++x)
            cost[x] += in[x];
    }
    SOFTMAP_UNROLL(4)
    for (int j = early; j < early + late; ++j) {
        received<H, Forward && Moving>(msg, prev, node.message(j), d, beta, in);
        SOFTMAP_UNROLL_ALL
        for (int x = 0; x < d; ++x)
            cost[x] += in[x];
    }
    double product = 0.0;
    for (int j = Forward ? early : 0; j < (Forward ? early + late : early); ++j) {
        received<H, Forward && Moving>(msg, prev, node.message(j), d, beta, in);
        Pack<W> a[N];
        SOFTMAP_UNROLL_ALL
        for (int x = 0; x < d; ++x)
            a[x] = Pack<W>(cost[x] * S(node.share) - in[x]);
        const unsigned slot = node.slot(j);
        const Far<H> far(arena, slot);
        Sent<H, W> sent;
        send<H, W, true, Heat>(arena, slot, d, far.labels(), a, sent.value,
                               Heat == hard ? infinity : eta);
        sent.shift = normalise<W>(sent.value, far.labels());
        sent.place = far.message();
        sent.labels = far.labels();
        product += replace < H, Moving && !Forward > (sent, msg, prev, beta);
        if (shift)
            shift[slot] = S(sent.shift);
    }
    return product;
}

// One of the messages that a node with few half-edges sends: as many threads work for it as it has
// edges onwards, and each adds up the messages by itself.
template <class H, bool Forward, int Heat, bool Moving, int W>
inline double send_split(const Arena<typename H::S> &arena, const Node<H> &node, int which,
                         typename H::S *msg, typename H::S *prev, double eta, double beta,
                         typename H::S *shift) {
    using S = typename H::S;
    constexpr int N = H::N;
    const int early = node.early, late = node.late;
    S cost[N], in[N];
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < N; ++x)
        cost[x] = arena.unary_single[node.cost(x)];
    SOFTMAP_UNROLL_ALL
    for (int k = 0; k < H::Early; ++k)
        if (k < early) {
            received<H, false>(msg, prev, node.message(k), N, beta, in);
            SOFTMAP_UNROLL_ALL
            for (int x = 0; x < N; ++x)
                cost[x] += in[x];
        }
    SOFTMAP_UNROLL_ALL
    for (int k = 0; k < H::Late; ++k)
        if (k < late) {
            received<H, Forward && Moving>(msg, prev, node.message(early + k), N, beta, in);
            SOFTMAP_UNROLL_ALL
            for (int x = 0; x < N; ++x)
                cost[x] += in[x];
        }
    const int j = Forward ? early + which : which;
    received<H, Forward && Moving>(msg, prev, node.message(j), N, beta, in);
    Pack<W> a[N];
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < N; ++x)
        a[x] = Pack<W>(cost[x] * S(node.share) - in[x]);
    const unsigned slot = node.slot(j);
    Sent<H, W> sent;
    send<H, W, true, Heat>(arena, slot, N, N, a, sent.value, Heat == hard ? infinity : eta);
    sent.shift = normalise<W>(sent.value, N);
    sent.place = Far<H>(arena, slot).message();
    sent.labels = N;
    if (shift)
        shift[slot] = S(sent.shift);
    return replace < H, Moving && !Forward > (sent, msg, prev, beta);
}

// What a node does in a half pass.
template <class H, bool Forward, int Heat, bool Moving>
inline double send_node(const Arena<typename H::S> &arena, const Node<H> &node, typename H::S *msg,
                        typename H::S *prev, double eta, double beta, typename H::S *shift) {
    constexpr int W = numbers_of_passes<H>();
    if constexpr (H::bounded)
        return send_bounded<H, Forward, Heat, Moving, W>(arena, node, msg, prev, eta, beta, shift);
    else
        return send_any<H, Forward, Heat, Moving, W>(arena, node, msg, prev, eta, beta, shift);
}

// One level of a half pass; `partial` receives the parts of the restart product.
template <class H, bool Forward, int Heat, bool Moving>
SOFTMAP_KERNEL half_pass(SOFTMAP_ARENA_PARAMETERS(typename H::S), typename H::S *msg,
                         typename H::S *prev, const Control *control, double *partial,
                         typename H::S *shift, int first, int count) {
    const auto arena = SOFTMAP_ARENA(typename H::S);
    Node<H> node;
    double product = 0.0;
    const double eta = control->eta, beta = Moving ? control->beta : 0.0;
    if constexpr (H::Split) {
        constexpr int ways = Forward ? H::Late : H::Early, W = numbers_of_passes<H>();
        const long long warp = thread_number() / tile_size;
        const int tile = int(warp / (ways ? ways : 1)), which = int(warp % (ways ? ways : 1));
        if (tile < count && node.take(arena, first + tile, int(thread_number() % tile_size)) &&
            which < (Forward ? node.late : node.early))
            product = send_split<H, Forward, Heat, Moving, W>(arena, node, which, msg, prev, eta,
                                                              beta, shift);
    } else if (node.find(arena, first, count)) {
        product = send_node<H, Forward, Heat, Moving>(arena, node, msg, prev, eta, beta, shift);
    }
    if constexpr (Moving && !Forward)
        deliver<NearestSum>(partial, product);
}

} // namespace device
} // namespace softmap
