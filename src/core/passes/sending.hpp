// Sends the messages of the blocks of a schedule in one direction.
//
// A message is computed from the sender's share θ̂_i / n_i minus the message that it received along
// the same edge. Messages are normalised to a minimum of 0; the subtracted constant is the edge's
// shift.
#pragma once

#include "families/all.hpp"
#include "momentum.hpp"

#include <memory>
#include <new>

namespace softmap {

// Scratch memory of one thread: costs of senders `a`, messages `out`, and `work` for the families.
class Scratch {
  public:
    explicit Scratch(const Schedule &plan) {
        const Index costs =
            std::max(lanes * plan.widest_tile, std::max(plan.widest_single, Index(lanes)));
        const Index room =
            std::max(message_room(plan.widest_tile, lanes), message_room(plan.widest_single, 1));
        const Index aligned = (costs + lanes - 1) / lanes * lanes;
        memory_.reset(new (std::align_val_t{64}) double[2 * aligned + room]);
        a = memory_.get();
        out = a + aligned;
        work = out + aligned;
    }

    double *a, *out, *work;

  private:
    struct Free {
        void operator()(double *p) const { ::operator delete[](p, std::align_val_t{64}); }
    };
    std::unique_ptr<double[], Free> memory_;
};

// One direction of a block: first entries of the messages that the senders received (`sent`) and of
// those that are written (`got`), label counts, and positions of the senders' shares.
struct Direction {
    Index sent, got, senders, receivers, straight;
    const Index *at;
    const std::int32_t *step;

    Direction(const Schedule &plan, const Block &b, bool forward) {
        sent = forward ? b.early_at : b.late_at;
        got = forward ? b.late_at : b.early_at;
        senders = forward ? b.early : b.late;
        receivers = forward ? b.late : b.early;
        straight = forward ? b.straight_early : b.straight_late;
        at = forward ? plan.early_at + b.early_from : plan.late_at + b.late_from;
        step = forward ? plan.early_step + b.early_from : plan.late_step + b.late_from;
    }
};

// a = shares of the senders minus the messages that they received along the block's edges.
template <int W>
void stage(const Direction &d, const Block &b, const double *theta, const double *msg, Pack<W> *a) {
    const double *old = msg + d.sent;
    if (d.straight || W == 1) {
        const double *share = theta + d.at[0];
        for (Index x = 0; x < d.senders; ++x)
            a[x] = Pack<W>::load(share + x * d.step[0]) - Pack<W>::load(old + x * b.step);
        return;
    }
    for (Index x = 0; x < d.senders; ++x) {
        const auto share = Pack<W>::of([&](int k) { return theta[d.at[k] + x * d.step[k]]; });
        a[x] = share - Pack<W>::load(old + x * b.step);
    }
}

// Sum over the lanes of a block that have an edge; rounded down if this is the rounding mode.
template <int W> double sum_of_edges(const Block &b, const Pack<W> &values) {
    if (b.count == W || W == 1)
        return total(values);
    double own[lanes] = {};
    values.each(int(b.count), [&](int k, double one) { own[k] = one; });
    return total(Pack<W>::load(own));
}

// Normalises the messages of a block and stores them; returns their part of the restart product.
// Unless `shift` is null, the sum of the constants subtracted goes there.
template <int W>
double write(const Direction &d, const Block &b, const Pack<W> *out, double *msg,
             const Momentum &momentum, double *shift) {
    const Pack<W> low = hard_minimum<W>(d.receivers, [&](Index y) { return out[y]; });
    if (shift)
        *shift = sum_of_edges(b, low);
    Pack<W> product(0.0);
    for (Index y = 0; y < d.receivers; ++y) {
        const Index at = d.got + b.step * y;
        Pack<W> value = out[y] - low;
        value = unless_infinite(value, value); // +inf (no label of the sender allows y) becomes 0
        fetch_ahead(msg + at);
        if (momentum.drift) {
            fetch_ahead(momentum.drift + at);
            product += momentum.observe(Pack<W>::load(msg + at), value, at);
        }
        value.store(msg + at);
    }
    return sum_of_edges(b, product);
}

// The arrays that one direction of a pass reads and writes: shares `theta` (by strip), messages,
// sums of shifts (unless null) and the parts `dot` of the restart product (both by block).
struct Traffic {
    const double *theta;
    double *msg;
    Momentum momentum;
    double eta;
    double *shift, *dot;
};

// Sends along all edges of the blocks listed[first..last-1] (blocks first..last-1 if `listed` is
// null), to their late endpoints if `forward`, else to their early endpoints. Compiled in
// kernels/sending.cpp.
void send_blocks(const Layout &lay, const Schedule &plan, const std::int32_t *listed, Index first,
                 Index last, bool forward, const Traffic &traffic, const Scratch &room);

// Message (soft, hard at η = ∞) into half-edge h of an edge of group g from costs a on the labels
// of the other endpoint. `room` has message_room(widest, 1) entries. Compiled in
// kernels/sending.cpp.
void send_one(const Layout &lay, Index g, Index h, const double *a, double *out, double *room,
              double eta);

} // namespace softmap
