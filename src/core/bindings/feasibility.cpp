// The search for labels that obey the hard constraints.
#include "bind.hpp"
#include "feasibility/assignment.hpp"
#include "feasibility/search.hpp"

#include <nanobind/stl/vector.h>

namespace softmap {
namespace {

namespace fe = feasibility;

// The constraints of one model, and a search that every call of `run` continues.
class FeasibleSearch {
  public:
    FeasibleSearch(In<Index> num_labels, In<bool> allowed)
        : net_(checked(num_labels, allowed), allowed.data()) {}

    void add_pairs(Matrix<Index> edges, In<bool> tables) {
        open();
        require(edges.shape(1) == 2, "an edge has two ends");
        Index at = 0;
        for (std::size_t e = 0; e < edges.shape(0); ++e) {
            const Index i = edges.data()[2 * e], j = edges.data()[2 * e + 1];
            require(exists(i) && exists(j) && i != j, "edge ", e, " is out of range");
            const Index count = net_.size[std::size_t(i)] * net_.size[std::size_t(j)];
            require(at + count <= Index(tables.size()), "the tables of the edges are too short");
            net_.add_pair(fe::Id(i), fe::Id(j), tables.data() + at);
            at += count;
        }
        require_size(tables, at, "tables");
    }

    void add_tables(In<Index> start, In<Index> scope, In<bool> tables) {
        open();
        require(start.size() > 0, "start needs one entry more than there are tables");
        Index at = 0;
        for (std::size_t t = 0; t + 1 < start.size(); ++t) {
            const Index first = start.data()[t], last = start.data()[t + 1];
            require(0 <= first && first < last && last <= Index(scope.size()), "table ", t,
                    " needs variables");
            const auto own = in_range({scope.data() + first, std::size_t(last - first)});
            double total = 1.0;
            for (const Index i : own)
                total *= double(net_.size[std::size_t(i)]);
            require(total <= double(Index(tables.size()) - at), "the tables are too short");
            net_.add_table(own, tables.data() + at);
            at += Index(total);
        }
        require_size(tables, at, "tables");
    }

    void add_different(In<Index> scope) {
        open();
        net_.add_different(checked_scope(scope));
    }

    void add_sum(In<Index> scope, In<Index> weights, Index low, Index high, In<bool> listed) {
        open();
        Index total = 0;
        for (const Index i : checked_scope(scope))
            total += net_.size[std::size_t(i)];
        require_size(weights, total, "weights");
        // sums of weights, and of weights and bounds, must stay within 64 bits
        for (std::size_t k = 0; k < weights.size(); ++k)
            require(std::abs(weights.data()[k]) <= (Index(1) << 61) / Index(scope.size()),
                    "weight ", k, " is too large");
        require(listed.size() == 0 || Index(listed.size()) == high - low + 1,
                "expected one entry for each sum from low to high");
        net_.add_sum(checked_scope(scope), weights.data(), low, high,
                     {listed.data(), listed.size()});
    }

    int run(In<double> preference, Index conflicts, Out<Index> labels, const Deadline *deadline) {
        require_size(labels, net_.n(), "labels");
        if (!solver_) {
            require_size(preference, net_.offset.back(), "preference");
            solver_ = std::make_unique<fe::ConstraintSearch>(net_, preference.data());
        }
        nb::gil_scoped_release released;
        const fe::Answer answer = solver_->run(conflicts, deadline);
        if (answer == fe::Answer::found)
            solver_->read(labels.data());
        return int(answer);
    }

    std::vector<std::int32_t> core() const {
        return solver_ ? solver_->core() : std::vector<std::int32_t>();
    }
    Index conflicts() const { return solver_ ? solver_->conflicts() : 0; }
    Index decisions() const { return solver_ ? solver_->decisions() : 0; }

  private:
    static std::span<const Index> checked(const In<Index> &num_labels, const In<bool> &allowed) {
        Index total = 0;
        for (std::size_t i = 0; i < num_labels.size(); ++i) {
            require(num_labels.data()[i] >= 1, "variable ", i, " has no labels");
            total += num_labels.data()[i];
        }
        require(total < (Index(1) << 29), "too many labels");
        require_size(allowed, total, "allowed");
        return {num_labels.data(), num_labels.size()};
    }
    bool exists(Index i) const { return 0 <= i && i < net_.n(); }
    std::span<const Index> checked_scope(const In<Index> &scope) const {
        require(scope.size() > 0, "a constraint needs a variable");
        return in_range({scope.data(), scope.size()});
    }
    std::span<const Index> in_range(std::span<const Index> scope) const {
        for (const Index i : scope)
            require(exists(i), "variable ", i, " is out of range");
        return scope;
    }
    void open() const { require(!solver_, "the search has begun: no constraint can be added"); }

    fe::Constraints net_;
    std::unique_ptr<fe::ConstraintSearch> solver_;
};

} // namespace

void bind_feasibility(nb::module_ &m) {
    m.def(
        "linear_assignment",
        [](Matrix<double> costs, Out<Index> labels, Out<double> prices, const Deadline *deadline) {
            const Index count = Index(costs.shape(0)), width = Index(costs.shape(1));
            require_size(labels, count, "labels");
            require_size(prices, width, "prices");
            Meter meter(deadline);
            nb::gil_scoped_release release;
            return fe::assign(costs.data(), count, width, labels.data(), prices.data(), meter);
        },
        arg("costs"), arg("labels"), arg("prices"), deadline_arg(),
        "Write different labels with the smallest sum of costs[i, labels[i]], -1 for rows that the "
        "rows before leave without a label, and the prices of the labels that prove the sum. "
        "Return whether the time sufficed.");
    using F = FeasibleSearch;
    nb::class_<F>(m, "FeasibleSearch")
        .def(nb::init<In<Index>, In<bool>>(), arg("num_labels"), arg("allowed"))
        .def("add_pairs", &F::add_pairs, arg("edges"), arg("tables"),
             "Add edges with the row-major tables of their allowed pairs.")
        .def("add_tables", &F::add_tables, arg("start"), arg("scope"), arg("tables"),
             "Add row-major tables of allowed joint states.")
        .def("add_different", &F::add_different, arg("scope"),
             "Add variables whose labels must differ.")
        .def("add_sum", &F::add_sum, arg("scope"), arg("weights"), arg("low"), arg("high"),
             arg("listed"), "Add a sum of weights that must lie within bounds, or in a list.")
        .def("run", &F::run, arg("preference"), arg("conflicts"), arg("labels"), deadline_arg(),
             "Continue the search. Return 0 if no labels exist, 1 if found, 2 if unknown.")
        .def("core", &F::core, "Return the constraints that the proof of infeasibility uses.")
        .def_prop_ro("conflicts", &F::conflicts)
        .def_prop_ro("decisions", &F::decisions);
}

} // namespace softmap
