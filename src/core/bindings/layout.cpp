// Binding of Layout, which softmap.model.layout builds once per model.
#include "base/team.hpp"
#include "bind.hpp"
#include "kernels/kernels.hpp"

#include <nanobind/stl/tuple.h>

namespace softmap {
namespace {

void fill_layout(HeldLayout *self, nb::dict arrays) {
    HeldLayout made; // not *self, which is never destroyed if an array is refused
    Layout &v = made.view;
    const auto take = [&]<class T>(const char *name, const T *&place) {
        return made.take(arrays, name, place);
    };
    v.m = take("node", v.node) / 2;
    v.n = take("start", v.start) - 1;
    const Index counts = take("num_labels", v.num_labels.each);
    const Index places = take("node_offset", v.node_offset.each);
    const bool even = counts == 1 && places == 0;
    require(even || counts == v.n, "num_labels needs n entries, or one for all");
    require(even || places == v.n + 1, "node_offset needs n + 1 entries");
    if (even) {
        v.num_labels = {nullptr, v.num_labels.each[0]};
        v.node_offset = {nullptr, v.num_labels.same};
    }
    require(take("unary", v.unary) == v.node_offset[v.n], "unary needs a cost per label");
    require(take("half", v.half) == 2 * v.m, "half needs 2m entries");
    v.groups = take("group_start", v.group_start) - 1;
    require(take("kind", v.kind) == v.groups, "kind needs one entry per group");
    take("weight", v.weight);
    take("weight_at", v.weight_at);
    take("weight_step", v.weight_step);
    take("truncation", v.truncation);
    take("truncation_at", v.truncation_at);
    take("truncation_step", v.truncation_step);
    take("offset", v.offset);
    take("offset_at", v.offset_at);
    take("stride", v.stride);
    take("table", v.table);
    take("maps", v.maps);
    take("table_at", v.table_at);
    for (Index g = 0; g < v.groups; ++g)
        require(0 <= v.kind[g] && v.kind[g] < Families::size, "unknown kind of potential ",
                v.kind[g], " in group ", g);
    v.widest = 1;
    for (Index i = 0; i < v.n; ++i)
        v.widest = v.num_labels[i] > v.widest ? v.num_labels[i] : v.widest;
    const Index offsets = take("half_offset", v.half_offset);
    require(offsets == 2 * v.m + 1 || (even && offsets == 0), "half_offset needs 2m + 1 entries");
    if (!offsets)
        v.half_offset = nullptr;
    new (self) HeldLayout(std::move(made));
}

// Soft message (hard at eta = inf) into half-edge h; used by tests of the potential families.
void message(const HeldLayout &lay, Index h, In<double> a, Out<double> out, double eta) {
    const Layout &v = lay.view;
    require(0 <= h && h < 2 * v.m, "there is no half-edge ", h);
    require_size(a, v.labels_at(h ^ 1), "a");
    require_size(out, v.labels_at(h), "out");
    Room room(message_room(v.widest, 1));
    kernels->send_one(v, v.group_of(h >> 1), h, a.data(), out.data(), room.numbers(), eta);
}

} // namespace

void bind_layout(nb::module_ &m) {
    nb::class_<HeldLayout>(m, "Layout", "The flat arrays of a model that every kernel reads.")
        .def("__init__", &fill_layout, nb::arg("arrays"))
        .def_prop_ro("widest", [](const HeldLayout &self) { return self.view.widest; });
    nb::list kinds;
    for (const char *name : Families::names)
        kinds.append(nb::str(name));
    m.attr("KINDS") = nb::tuple(kinds);
    m.attr("LANES") = lanes;
    m.attr("WORTHWHILE") = worthwhile;
    m.def("message", &message, arg("layout"), arg("h"), arg("a"), arg("out"), arg("eta"),
          "Compute the message into half-edge h from costs `a` at the other endpoint.");
}

} // namespace softmap
