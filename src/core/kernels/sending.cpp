// Messages along the edges of blocks, and single messages.
#include "passes/sending.hpp"

namespace softmap {

// A message by itself: compiled once for blocks and for single messages.
template <int W, class Edges>
[[gnu::noinline]] static void answer(const Edges &edges, const Pack<W> *a, Pack<W> *out,
                                     double *room, double eta) {
    edges.message(a, out, room, eta);
}

void send_blocks(const Layout &lay, const Schedule &plan, const std::int32_t *listed, Index first,
                 Index last, bool forward, const Traffic &traffic, const Scratch &room) {
    // make(a, out): the messages of a block from what its senders send.
    const auto send = [&]<int W>(const Block &b, Index which, auto make) {
        const Direction d(plan, b, forward);
        const auto a = reinterpret_cast<Pack<W> *>(room.a),
                   out = reinterpret_cast<Pack<W> *>(room.out);
        stage<W>(d, b, traffic.theta, traffic.msg, a);
        Families::visit(b.kind,
                        [&](auto family) { answer(make(family), a, out, room.work, traffic.eta); });
        double *shift = traffic.shift ? traffic.shift + which : nullptr;
        traffic.dot[which] = write<W>(d, b, out, traffic.msg, traffic.momentum, shift);
    };
    for (Index k = first; k < last; ++k) {
        const Index which = listed ? Index(listed[k]) : k;
        const Block &b = plan.blocks[which];
        const int receiver = int(forward ? 1 - b.orientation : b.orientation);
        if (b.count)
            send.template operator()<lanes>(
                b, which, [&](auto family) { return family.tile(lay, plan, b, forward); });
        else
            send.template operator()<1>(b, which, [&](auto family) {
                return family.template at<1>(lay, b.group, plan.edge + b.lane, receiver);
            });
    }
}

void send_one(const Layout &lay, Index g, Index h, const double *a, double *out, double *room,
              double eta) {
    static_assert(sizeof(Pack<1>) == sizeof(double));
    const Index e = h >> 1;
    Families::visit(lay.kind[g], [&](auto family) {
        answer(family.template at<1>(lay, g, &e, int(h & 1)), reinterpret_cast<const Pack<1> *>(a),
               reinterpret_cast<Pack<1> *>(out), room, eta);
    });
}

} // namespace softmap
