// The interior-point method for the LP over the local polytope.
#include "bind.hpp"
#include "interior/solver.hpp"
#include "kernels/kernels.hpp"

#include <optional>

namespace softmap {
namespace {

class InteriorPoint {
  public:
    InteriorPoint(In<Index> labels, Matrix<std::int32_t> edges, In<double> unary, In<double> pairs,
                  const Deadline *deadline)
        : labels_(labels.data(), labels.data() + labels.size()),
          edges_(edges.data(), edges.data() + edges.size()),
          unary_(unary.data(), unary.data() + unary.size()),
          pairs_(pairs.data(), pairs.data() + pairs.size()) {
        const Index n = Index(labels_.size());
        Index states = 0, entries = 0;
        for (const Index count : labels_) {
            require(count > 0, "every node needs a label");
            states += count;
        }
        require(edges.shape(1) == 2, "an edge has two endpoints");
        for (std::size_t e = 0; e < edges_.size(); e += 2) {
            const Index i = edges_[e], j = edges_[e + 1];
            require(0 <= i && i < n && 0 <= j && j < n && i != j, "there is no edge ", i, ", ", j);
            entries += labels_[i] * labels_[j];
        }
        require_size(unary_.size(), states, "unary");
        require_size(pairs_.size(), entries, "pairs");
        for (const auto *costs : {&unary_, &pairs_})
            for (const double cost : *costs)
                require(std::isfinite(cost), "all costs must be finite");
        const interior::PairwiseModel model{n,
                                            Index(edges_.size()) / 2,
                                            labels_.data(),
                                            edges_.data(),
                                            unary_.data(),
                                            pairs_.data()};
        nb::gil_scoped_release released;
        solver_.emplace(model, kernels->cholesky, deadline);
    }

    bool step(const Deadline *deadline) {
        nb::gil_scoped_release released;
        return solver_->step(deadline);
    }

    const interior::InteriorSolver &solver() const { return *solver_; }

  private:
    std::vector<Index> labels_;
    std::vector<std::int32_t> edges_;
    std::vector<double> unary_, pairs_;
    std::optional<interior::InteriorSolver> solver_;
};

nb::object copied(std::vector<double> values) { return handed_over<double>(std::move(values)); }

} // namespace

void bind_interior(nb::module_ &m) {
    using P = InteriorPoint;
    nb::class_<P>(m, "InteriorPoint", "An interior-point method for the LP of a model.")
        .def(nb::init<In<Index>, Matrix<std::int32_t>, In<double>, In<double>, const Deadline *>(),
             arg("labels"), arg("edges"), arg("unary"), arg("pairs"), deadline_arg())
        .def("step", &P::step, deadline_arg(),
             "Make a step; return False if rounding errors end the method.")
        .def_prop_ro(
            "gap", [](const P &self) { return self.solver().gap(); },
            "The cost of the current point minus the value of the current dual.")
        .def_prop_ro(
            "work", [](const P &self) { return self.solver().work(); },
            "Number of multiplications of a step.")
        .def(
            "nodes", [](const P &self) { return copied(self.solver().nodes()); },
            "Return a copy of the node marginals.")
        .def(
            "lam", [](const P &self) { return copied(self.solver().lam()); },
            "Return a copy of the multipliers.");
}

} // namespace softmap
