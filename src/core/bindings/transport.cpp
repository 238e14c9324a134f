// Bindings of transport along the edges of a graph.
#include "bind.hpp"
#include "transport/network.hpp"
#include "transport/rounding.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

namespace softmap {
namespace {

// A network together with the layout and the masses that it reads.
struct HeldNetwork {
    HeldLayout layout;
    std::vector<double> mass;
    std::vector<std::uint8_t> fixed;
    TransportNetwork network;

    HeldNetwork(const HeldLayout &lay, In<double> masses, In<std::uint8_t> given)
        : layout(lay), mass(masses.data(), masses.data() + masses.size()),
          fixed(given.data(), given.data() + given.size()),
          network(layout.view, mass.data(), fixed.data()) {
        require_size(masses, lay.view.node_offset[lay.view.n], "mass");
        require_size(given, lay.view.n, "fixed");
    }
    Index entries() const { return layout.view.half_at(2 * layout.view.m); }
};

bool multipliers(HeldNetwork &self, double eta, Out<double> lam, const Deadline *deadline) {
    require_size(lam, self.entries(), "lam");
    return self.network.multipliers(eta, lam.data(), deadline);
}

bool sides(HeldNetwork &self, double eta, Out<double> out, const Deadline *deadline) {
    require_size(out, self.entries(), "out");
    return self.network.sides(eta, out.data(), deadline);
}

std::pair<double, double> coupled(HeldNetwork &self, Index e, double eta, In<double> p,
                                  In<double> q, std::optional<OutMatrix<double>> plan) {
    const Layout &lay = self.layout.view;
    require(0 <= e && e < lay.m, "there is no edge ", e);
    require_size(p, lay.labels_at(2 * e), "p");
    require_size(q, lay.labels_at(2 * e + 1), "q");
    if (plan)
        require_size(*plan, Index(p.size() * q.size()), "plan");
    std::vector<double> a(p.size()), b(q.size());
    const Support *pairs = nullptr;
    if (eta > 0.0) { // at 0 the plan does not depend on messages
        self.network.reduced(e, eta, a.data(), b.data());
        pairs = self.network.pairs(e, eta, a.data(), b.data());
    }
    const Index g = lay.group_of(e);
    const auto send = [&](int receiver, const double *from, double *to) {
        Room room(message_room(lay.widest, 1));
        kernels->send_one(lay, g, 2 * e + receiver, from, to, room.numbers(), eta);
    };
    return Families::visit(lay.kind[g], [&](auto family) {
        const RoundedTransport found =
            Rounding()(family.template at<1>(lay, g, &e, 1), a.data(), b.data(), p.data(), q.data(),
                       eta, pairs, plan ? plan->data() : nullptr, send);
        return std::pair(found.cost, found.slack);
    });
}

void set_messages(HeldNetwork &self, In<double> msg) {
    require_size(msg, self.entries(), "msg");
    self.network.set_messages(msg.data());
}

void messages(HeldNetwork &self, Out<double> out) {
    require_size(out, self.entries(), "out");
    std::copy_n(self.network.messages().begin(), out.size(), out.data());
}

} // namespace

void bind_transport(nb::module_ &m) {
    nb::class_<HeldNetwork>(m, "TransportNetwork",
                            "Messages along a graph, some of whose nodes have given marginals.")
        .def(nb::init<const HeldLayout &, In<double>, In<std::uint8_t>>(), arg("layout"),
             arg("mass"), arg("fixed"))
        .def(
            "passes",
            [](HeldNetwork &self, Index count, double eta, bool momentum, In<double> ranges,
               const Deadline *deadline) {
                require_size(ranges, self.layout.view.m, "ranges");
                double loss = infinity;
                const Index done =
                    self.network.passes(count, eta, momentum, ranges.data(), loss, deadline);
                return std::pair(done, loss);
            },
            arg("count"), arg("eta"), arg("momentum"), arg("ranges"), deadline_arg(), Unlocked(),
            "Make passes; return how many were completed before the deadline, and the misplaced "
            "mass of the edges times their ranges.")
        .def("multipliers", &multipliers, arg("eta"), arg("lam"), deadline_arg(), Unlocked(),
             "Write λ of a hard backward half pass; return whether there was time for it.")
        .def("sides", &sides, arg("eta"), arg("out"), deadline_arg(), Unlocked(),
             "Write the marginals of all edges at both endpoints; return whether there was time.")
        .def("coupled", &coupled, arg("edge"), arg("eta"), arg("p"), arg("q"),
             nb::arg("plan").none() = nb::none(), Unlocked(),
             "Return the cost of a coupling of p and q along an edge, and the rounded mass; add "
             "the coupling to `plan`. At η = 0 the coupling does not depend on messages.")
        .def(
            "sent",
            [](HeldNetwork &self, double eta, Out<double> out) {
                require_size(out, self.entries(), "out");
                self.network.sent(eta, out.data());
            },
            arg("eta"), arg("out"), "Write what every endpoint sends along its edges.")
        .def("messages", &messages, arg("out"), "Write the messages into all half-edges.")
        .def("set_messages", &set_messages, arg("msg"), "Set the messages into all half-edges.");
}

} // namespace softmap
