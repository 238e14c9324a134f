// Minimum cuts: models of two labels, and fusion moves.
#include "bind.hpp"
#include "cuts/moves.hpp"

namespace softmap {
namespace {

using Lay = HeldLayout;

// The minimum cut of one model of two labels.
class Cut {
  public:
    Cut(const Lay &held, double barrier, int threads)
        : held_(held), cut_(held.view, barrier, std::max(threads, 1)) {}

    bool applies() const { return cut_.applies(); }
    bool run(const Deadline *deadline) {
        require(cut_.applies(), "the model is not binary and submodular");
        nb::gil_scoped_release released;
        Meter meter(deadline);
        return cut_.run(meter);
    }
    void read(Out<Index> labels, Out<double> lam) const {
        require(cut_.applies(), "the model is not binary and submodular");
        require_size(labels, held_.view.n, "labels");
        require_size(lam, held_.view.half_at(2 * held_.view.m), "lam");
        nb::gil_scoped_release released;
        cut_.read(labels.data(), lam.data());
    }

  private:
    const Lay &held_;
    BinaryCut cut_;
};

// Fusion moves over one model, whose flow graph is built once.
class Fusion {
  public:
    Fusion(const Lay &held, double barrier) : held_(held), moves_(held.view, barrier) {}

    Index fuse(Out<Index> labels, In<Index> proposal, Index work, int threads,
               const Deadline *deadline) {
        const Layout &lay = held_.view;
        threads = std::max(threads, 1);
        require_labels(lay, labels, "labels", threads);
        require_labels(lay, proposal, "proposal", threads);
        nb::gil_scoped_release released;
        Meter meter(deadline, work);
        return moves_.fuse(labels.data(), proposal.data(), meter, threads);
    }

  private:
    const Lay &held_;
    FusionMoves moves_;
};

} // namespace

void bind_cuts(nb::module_ &m) {
    nb::class_<Cut>(m, "BinaryCut")
        .def(nb::init<const Lay &, double, int>(), nb::keep_alive<1, 2>(), arg("layout"),
             nb::arg("barrier"), nb::arg("threads"))
        .def("applies", &Cut::applies,
             "Whether all nodes have at most two labels and all edges are submodular.")
        .def("run", &Cut::run, deadline_arg(),
             "Compute the cut; False if time ran out: a further call continues.")
        .def("read", &Cut::read, arg("labels"), arg("lam"),
             "Fill in the labels and λ of the flow so far: optimal ones if `run` returned True.");
    nb::class_<Fusion>(m, "FusionMoves")
        .def(nb::init<const Lay &, double>(), nb::keep_alive<1, 2>(), arg("layout"),
             nb::arg("barrier"))
        .def("fuse", &Fusion::fuse, arg("labels"), arg("proposal"), nb::arg("work"),
             nb::arg("threads"), deadline_arg(),
             "Fuse labels with a proposal by a minimum cut; return the number of changes, or -1.");
}

} // namespace softmap
