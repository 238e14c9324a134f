// Minimum cuts: models of two labels, and fusion moves.
#include "bind.hpp"
#include "cuts/moves.hpp"

namespace softmap {
namespace {

using Lay = HeldLayout<double>;

bool cut_applies(const Lay &held, double barrier) {
    return BinaryCut(held.view, barrier).applies();
}

bool binary_cut(const Lay &held, double barrier, Out<Index> labels, Out<double> lam,
                double seconds) {
    const Layout<double> &lay = held.view;
    require_size(labels, lay.n, "labels");
    require_size(lam, lay.half_at(2 * lay.m), "lam");
    for (Index i = 0; i < lay.n; ++i)
        require(lay.num_labels[i] <= 2, "node ", i, " has more than two labels");
    Budget budget(Index(1) << 62, seconds);
    return BinaryCut(lay, barrier).solve(labels.data(), lam.data(), budget);
}

// Fusion moves over one model, whose flow graph is built once.
class Moves {
  public:
    Moves(nb::object layout, double barrier)
        : layout_(std::move(layout)), held_(nb::cast<const Lay &>(layout_)),
          moves_(held_.view, barrier) {}

    Index fuse(Out<Index> labels, In<Index> proposal, double seconds) {
        const Layout<double> &lay = held_.view;
        require_size(labels, lay.n, "labels");
        require_size(proposal, lay.n, "proposal");
        for (Index i = 0; i < lay.n; ++i)
            for (const Index x : {labels.data()[i], proposal.data()[i]})
                require(0 <= x && x < lay.num_labels[i], "node ", i, " has no label ", x);
        nb::gil_scoped_release released;
        Budget budget(Index(1) << 62, seconds);
        return moves_.fuse(labels.data(), proposal.data(), budget);
    }

  private:
    nb::object layout_;
    const Lay &held_;
    FusionMoves moves_;
};

} // namespace

void bind_cuts(nb::module_ &m) {
    m.def("cut_applies", &cut_applies, arg("layout"), nb::arg("barrier"), Unlocked(),
          "Whether all nodes have at most two labels and all edges are submodular.");
    m.def("binary_cut", &binary_cut, arg("layout"), nb::arg("barrier"), arg("labels"), arg("lam"),
          nb::arg("seconds"), Unlocked(),
          "Compute optimal labels and λ of a submodular model of two labels; False if time ran "
          "out.");
    nb::class_<Moves>(m, "FusionMoves")
        .def(nb::init<nb::object, double>(), nb::arg("layout"), nb::arg("barrier"))
        .def("fuse", &Moves::fuse, arg("labels"), arg("proposal"), nb::arg("seconds"),
             "Fuse labels with a proposal by a minimum cut; return the number of changes, or -1.");
}

} // namespace softmap
