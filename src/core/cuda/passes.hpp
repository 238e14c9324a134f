// Half passes over one level, and the state of momentum: passes/chains.hpp for a GPU.
//
// A node sums its messages and sends along the edges of the pass's direction. Momentum acts on the
// messages sent backward: a forward half pass reads y = z + β (z - prev) in their place, and the
// backward half pass, which recomputes them, evaluates y in the same way and updates `prev`.
//
// `HalfPass::receive` reads a message, and `Outgoing` sends one. A policy (`Alone`, `PerEdge`,
// `WarpTeam`) says how the threads of a node share the work. If messages are stored by edge, sums
// and messages have a kernel each (links.hpp), because an edge needs the sum of a node that another
// block computes.
#pragma once

#include "base/momentum_rule.hpp"
#include "edges.hpp"
#include "families/dense.hpp"

namespace softmap {
namespace device {

// The state of a run on the device.
struct DeviceClock {
    double eta;
    double t, restarts, product; // as Clock in passes/momentum.hpp
    double beta;
    double longest; // upper limit on t, enforced every `sampling` passes
    double passes;  // number of passes so far
    double samples; // number of samples in the averaged marginals
};

inline constexpr int sampling = 5; // passes between samples, as Averaging.every in
                                   // softmap.methods.sweeps.chains

// Before a pass: computes β and t from the restart product of the last pass.
inline void advance(DeviceClock &c) {
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

// One block. Sums the `count` parts of the last pass's restart product and calls `advance`.
SOFTMAP_KERNEL tick(DeviceClock *control, const double *partial, int count) {
    constexpr int ahead = 16; // loads in flight per thread, to hide the latency of memory
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
    sum = block_sum<RoundNearest>(sum);
    if (thread_in_block() != 0)
        return;
    if (control->passes > 0.0 && count > 0)
        control->product = sum;
    advance(*control);
}

// Subtracts the minimum from all entries and returns it; entries of +inf become 0.
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

// A half pass: its direction, how messages are computed (Heat), and the arrays it reads and writes.
template <class Shape_, bool Forward_, int Heat_, bool Moving_> struct HalfPass {
    using H = Shape_;
    using S = typename H::S;
    static constexpr bool Forward = Forward_;
    static constexpr int Heat = Heat_, N = H::N, W = numbers_of_passes<H>();
    static constexpr bool moved = Forward && Moving_;      // reads messages with momentum
    static constexpr bool replacing = Moving_ && !Forward; // updates `prev` and the product

    const Arena<S> &arena;
    S *msg, *prev, *shift; // shift: normaliser of each message; null if not needed
    double eta, beta;

    // Reads a message into a node, extrapolated by momentum if Moved.
    template <bool Moved> void receive(const Place &place, int labels, S *to) const {
        read<H>(msg, place, labels, to);
        if constexpr (Moved) {
            S before[N];
            read<H, !H::Linked>(prev, place, labels, before);
            SOFTMAP_UNROLL_ALL
            for (int x = 0; x < (H::uniform ? N : labels); ++x)
                to[x] += S(beta) * (to[x] - before[x]);
        }
    }

    // Adds messages first, first + step, ... before `last` to the sum of a node. Most > 0 is an
    // upper bound on their number, for which the loop is unrolled. `Some` messages are loaded
    // before they are added.
    template <bool Moved, int Most, int Some = 1>
    void add(const Node<H> &node, int first, int last, int step, S *sum) const {
        [[maybe_unused]] constexpr int unrolled_by = Most > 0 ? Most : Some > 1 ? 1 : 4;
        const int labels = node.labels();
        SOFTMAP_UNROLL(unrolled_by)
        for (int k = 0; Most > 0 ? k < Most : first + k * step < last; k += Some) {
            S in[Some][N];
            SOFTMAP_UNROLL_ALL
            for (int l = 0; l < Some; ++l)
                if (first + (k + l) * step < last)
                    receive<Moved>(node.message(first + (k + l) * step), labels, in[l]);
            SOFTMAP_UNROLL_ALL
            for (int l = 0; l < Some; ++l)
                if (first + (k + l) * step < last)
                    SOFTMAP_UNROLL_ALL
            for (int x = 0; x < labels; ++x)
                sum[x] += in[l][x];
        }
    }

    // Adds all messages of a node to its sum.
    template <int Some = 1> void add_all(const Node<H> &node, S *sum) const {
        add<false, H::Early, Some>(node, 0, node.early, 1, sum);
        add<moved, H::Late, Some>(node, node.early, node.early + node.late, 1, sum);
    }
};

// A message to be sent: `in` is the message that the sender received along the same edge, `old` and
// `before` are the replaced entries of msg and prev. Ahead: these are loaded before the sender's
// sum is known.
template <class Pass, bool Ahead> struct Outgoing {
    using H = typename Pass::H;
    using S = typename Pass::S;
    static constexpr int N = Pass::N, W = Pass::W;
    static constexpr bool table_too = Ahead && !H::Linked && H::Kind == tables && N <= 4;
    S in[N], old[N], before[N], table[table_too ? N * N : 1];
    unsigned slot; // slot of the sender; index of the edge in linked shapes
    Place place;

    // Label count of the receiver; a constant in uniform shapes, so that arrays stay in registers.
    int labels() const { return H::uniform ? N : labels_; }

    // Prepares the message along half-edge j of a node.
    void load(const Pass &pass, const Node<H> &node, int j) {
        slot = node.slot(j);
        const Far<H> far(pass.arena, slot);
        place = far.message();
        labels_ = far.labels();
        pass.template receive<Pass::moved>(node.message(j), node.labels(), in);
        if constexpr (table_too) {
            const S *from = pass.arena.arranged + table_place<H>(slot);
            SOFTMAP_UNROLL_ALL
            for (int k = 0; k < N * N; ++k)
                table[k] = read_once(from + k * tile_size);
        }
        if constexpr (Ahead)
            load_replaced(pass);
    }

    // Linked shapes: prepares the message along an edge, to its later endpoint if Forward, else to
    // its earlier endpoint.
    void load_edge(const Pass &pass, unsigned edge) {
        const unsigned own = Pass::Forward ? across(pass.arena, edge) : edge;
        slot = edge;
        place = {(long long)across(pass.arena, own) * H::padded, 1};
        pass.template receive<Pass::moved>(Place{(long long)own * H::padded, 1}, N, in);
        load_replaced(pass);
    }

    // Computes the message from sum · share - in, stores it, and returns its part of the restart
    // product.
    double send(const Pass &pass, const S *sum, S share, int some_labels) {
        const int sender_labels = H::uniform ? N : some_labels;
        Pack<W> a[N], out[N];
        SOFTMAP_UNROLL_ALL
        for (int x = 0; x < sender_labels; ++x)
            a[x] = Pack<W>(sum[x] * share - in[x]);
        make(pass, a, sender_labels, out);
        const double low = normalise<W>(out, labels());
        if (pass.shift)
            pass.shift[slot] = S(low);
        if constexpr (!Ahead) // loaded late, so that it does not occupy registers before
            load_replaced(pass);
        return replace(pass, out);
    }

  private:
    int labels_;

    void load_replaced(const Pass &pass) {
        if constexpr (Pass::replacing) {
            read<H>(pass.msg, place, labels(), old);
            read<H>(pass.prev, place, labels(), before);
        }
    }

    void make(const Pass &pass, const Pack<W> *a, int sender_labels, Pack<W> *out) const {
        const double eta = Pass::Heat == hard ? infinity : pass.eta;
        if constexpr (table_too || H::Linked) {
            Pack<W> room[4 * N + 8];
            double *work = reinterpret_cast<double *>(room);
            if constexpr (table_too)
                TableView<W, S, N, false>{{N, N}, table, N, 1, Pack<W>(1.0), false}.message(
                    a, out, work, eta);
            else
                edge_table(pass).message(a, out, work, eta);
        } else {
            softmap::device::send<H, W, true, Pass::Heat>(pass.arena, slot, sender_labels, labels(),
                                                          a, out, eta);
        }
    }
    TableView<W, S, N, true> edge_table(const Pass &pass) const {
        constexpr long long row = N * tile_size, column = tile_size;
        return {{N, N},
                pass.arena.arranged + table_place<H>(slot),
                Pass::Forward ? row : column,
                Pass::Forward ? column : row,
                Pack<W>(1.0),
                false};
    }

    double replace(const Pass &pass, const Pack<W> *out) const {
        double product = 0.0;
        if constexpr (Pass::replacing) {
            Pack<exact> noted[N];
            SOFTMAP_UNROLL_ALL
            for (int x = 0; x < labels(); ++x) {
                const S y = old[x] + S(pass.beta) * (old[x] - before[x]);
                const S value = S(out[x].part[0]), step = y - value;
                product += double(step * (value - old[x] - S(chain_momentum.turn) * step));
                noted[x] = Pack<exact>(old[x] + S(chain_momentum.relax) * step);
            }
            write<H>(pass.prev, place, labels(), noted);
        }
        write<H>(pass.msg, place, labels(), out);
        return product;
    }
};

// Costs of a node, in the precision of passes.
template <class H, class S>
inline void costs_of(const Arena<S> &arena, const Node<H> &node, S *to) {
    SOFTMAP_UNROLL_ALL
    for (int x = 0; x < node.labels(); ++x)
        to[x] = arena.unary_single[node.cost(x)];
}

// Policies: how the threads of a node share its work. A thread sends along edges first,
// first + step, ..., or along edge `first` only (`one`). `add_up` computes the sum of the node;
// `ahead` says whether the first message is loaded before that.

// One thread does everything.
struct Alone {
    static constexpr bool ahead = false, one = false;
    static constexpr int first = 0, step = 1;
    template <class Pass, class Out>
    void add_up(const Pass &pass, const Node<typename Pass::H> &node, bool, Out &,
                typename Pass::S *sum) const {
        costs_of(pass.arena, node, sum);
        pass.add_all(node, sum);
    }
};

// One thread per outgoing edge, each of which sums all messages of the node: for nodes of low
// degree.
struct PerEdge : Alone {
    static constexpr bool one = true;
    int first;
};

#ifdef __CUDACC_RTC__
template <int Ways> inline constexpr int warps_of = Ways;
#else
template <int Ways> inline constexpr int warps_of = 1; // a block is one thread there
#endif
inline constexpr int most_warps = 16; // largest number of warps in a block

// Several warps share the work of a tile: for nodes with many edges and few labels. Each warp sums
// some of the messages, the partial sums are added in shared memory, and each warp sends along the
// edges whose messages it has read. All threads of a block must call it together.
template <int Ways> struct WarpTeam {
    static constexpr bool ahead = true, one = false;
    static constexpr int step = warps_of<Ways>;
    int first;

    template <class Pass, class Out>
    void add_up(const Pass &pass, const Node<typename Pass::H> &node, bool there, Out &out,
                typename Pass::S *sum) const {
        using S = typename Pass::S;
        constexpr bool Forward = Pass::Forward;
        const int early = there ? node.early : 0, late = there ? node.late : 0;
        const int from = Forward ? early : 0, onwards = Forward ? late : early;
        const int begin = Forward ? 0 : early, others = Forward ? early : late;
        SOFTMAP_UNROLL_ALL
        for (int x = 0; x < Pass::N; ++x)
            sum[x] = there && first == 0 ? pass.arena.unary_single[node.cost(x)] : S(0);
        if (first < onwards) {
            out.load(pass, node, from + first);
            SOFTMAP_UNROLL_ALL
            for (int x = 0; x < Pass::N; ++x)
                sum[x] += out.in[x];
        }
        pass.template add<false, 0>(node, begin + first, begin + others, step, sum);
        pass.template add<Pass::moved, 0>(node, from + first + step, from + onwards, step, sum);
        meet<Pass::N>(sum);
    }

    // Sums over the warps of a team; all of them get the result.
    template <int N, class S> static void meet(S *sum) {
#ifdef __CUDACC_RTC__
        __shared__ S part[most_warps][N][tile_size];
        const int warp = thread_in_block() / tile_size, lane = thread_in_block() % tile_size;
        __syncthreads(); // earlier sums may still be read
        SOFTMAP_UNROLL_ALL
        for (int x = 0; x < N; ++x)
            part[warp][x][lane] = sum[x];
        __syncthreads();
        const int leader = warp / Ways * Ways;
        SOFTMAP_UNROLL_ALL
        for (int x = 0; x < N; ++x) {
            sum[x] = part[leader][x][lane];
            SOFTMAP_UNROLL_ALL
            for (int w = 1; w < Ways; ++w)
                sum[x] += part[leader + w][x][lane];
        }
#else
        (void)sum;
#endif
    }
};

// The work of one thread for a node in a half pass; `there` is false if the thread has no node.
// Returns its part of the restart product.
template <class Pass, class Policy>
inline double send_node(const Pass &pass, const Policy &policy, const Node<typename Pass::H> &node,
                        bool there) {
    using S = typename Pass::S;
    Outgoing<Pass, Policy::ahead> out;
    S sum[Pass::N];
    policy.add_up(pass, node, there, out, sum);
    const int early = there ? node.early : 0, late = there ? node.late : 0;
    const int from = Pass::Forward ? early : 0, onwards = Pass::Forward ? late : early;
    double product = 0.0;
    for (int j = policy.first; j < onwards; j += Policy::step) {
        if (!Policy::ahead || j != policy.first)
            out.load(pass, node, from + j);
        product += out.send(pass, sum, S(node.share), node.labels());
        if constexpr (Policy::one)
            break;
    }
    return product;
}

// One level of a half pass, with `Ways` warps per tile. `partial` gets the parts of the restart
// product, one per block.
template <class H, bool Forward, int Heat, bool Moving, int Ways>
SOFTMAP_KERNEL half_pass(Arena<typename H::S> arena, typename H::S *msg, typename H::S *prev,
                         const DeviceClock *control, double *partial, typename H::S *shift,
                         int first, int count) {
    const HalfPass<H, Forward, Heat, Moving> pass{
        arena, msg, prev, shift, control->eta, Moving ? control->beta : 0.0};
    constexpr int bound = Forward ? H::Late : H::Early;
    constexpr int warps = H::bounded ? (bound ? bound : 1) : warps_of<Ways>;
    const long long warp = thread_number() / tile_size;
    const int tile = int(warp / warps), way = int(warp % warps);
    Node<H> node;
    const bool there =
        tile < count && node.take(arena, first + tile, int(thread_number() % tile_size));
    double product = 0.0;
    if constexpr (Ways > 1)
        product = send_node(pass, WarpTeam<Ways>{way}, node, there);
    else if constexpr (H::bounded)
        product = there && way < (Forward ? node.late : node.early)
                      ? send_node(pass, PerEdge{{}, way}, node, true)
                      : 0.0;
    else
        product = there ? send_node(pass, Alone{}, node, true) : 0.0;
    if constexpr (Moving && !Forward)
        deliver<RoundNearest>(partial, product);
}

} // namespace device
} // namespace softmap
