// Messages along the edges of blocks, in double and single precision, and single messages.
#include "passes/sending.hpp"

namespace softmap {

template <class S>
void send_blocks(const Layout<S> &lay, const Schedule<S> &plan, const Index *listed, Index first,
                 Index last, bool forward, const Traffic<S> &traffic, const Scratch &room) {
    for (Index k = first; k < last; ++k) {
        const Block &b = plan.blocks[listed[k]];
        const Direction d(plan, b, forward);
        const auto answer = [&]<int W>(const auto &edges) {
            const auto a = reinterpret_cast<Pack<W> *>(room.a);
            const auto out = reinterpret_cast<Pack<W> *>(room.out);
            stage<W>(d, b, traffic.theta, traffic.msg, a);
            edges.message(a, out, room.work, traffic.eta);
            traffic.dot[listed[k]] =
                write<W>(d, b, out, traffic.msg, traffic.momentum, traffic.shift);
        };
        Families::visit(b.kind, [&](auto family) {
            const int receiver = int(forward ? 1 - b.orientation : b.orientation);
            if (b.count)
                answer.template operator()<lanes>(family.tile(lay, plan, b, forward));
            else
                answer.template operator()<1>(
                    family.template at<1>(lay, b.group, plan.edge + b.lane, receiver));
        });
    }
}

void send_one(const Layout<double> &lay, Index g, Index h, const double *a, double *out,
              double *room, double eta) {
    static_assert(sizeof(Pack<1>) == sizeof(double));
    const Index e = h >> 1;
    Families::visit(lay.kind[g], [&](auto family) {
        family.template at<1>(lay, g, &e, int(h & 1))
            .message(reinterpret_cast<const Pack<1> *>(a), reinterpret_cast<Pack<1> *>(out), room,
                     eta);
    });
}

template void send_blocks(const Layout<double> &, const Schedule<double> &, const Index *, Index,
                          Index, bool, const Traffic<double> &, const Scratch &);
template void send_blocks(const Layout<float> &, const Schedule<float> &, const Index *, Index,
                          Index, bool, const Traffic<float> &, const Scratch &);

} // namespace softmap
