// Labels and bounds of pairwise costs over permutations.
#include "bind.hpp"
#include "permutations/ascent.hpp"
#include "permutations/search.hpp"
#include "permutations/swaps.hpp"

namespace softmap {
namespace {

namespace pm = permutations;

pm::Costs costs_of(Matrix<std::int64_t> unary, Matrix<std::int64_t> pair) {
    const Index n = Index(unary.shape(0)), d = Index(unary.shape(1));
    require(1 <= n && n <= d, "there are fewer labels than variables");
    require(Index(pair.shape(0)) == n * d && Index(pair.shape(1)) == n * d,
            "expected a cost for each pair of variables and their labels");
    pm::Costs out(n, d);
    std::copy_n(unary.data(), unary.size(), out.unary.get());
    std::copy_n(pair.data(), pair.size(), out.pair.get());
    return out;
}

void write_labels(const std::vector<Index> &labels, Out<Index> &out) {
    require_size(out, Index(labels.size()), "labels");
    std::copy(labels.begin(), labels.end(), out.data());
}

class Swaps {
  public:
    Swaps(const pm::Costs &costs, std::uint64_t seed) : search_(costs, seed) {}
    void offer(In<Index> labels) {
        require_size(labels, Index(search_.best.size()), "labels");
        std::vector<bool> used(std::size_t(search_.width()), false);
        for (std::size_t i = 0; i < labels.size(); ++i) {
            const Index p = labels.data()[i];
            require(0 <= p && p < search_.width() && !used[std::size_t(p)], "labels differ");
            used[std::size_t(p)] = true;
        }
        search_.offer(labels.data());
    }
    std::int64_t run(Out<Index> labels, Index work, const Deadline *deadline) {
        Meter meter(deadline, work);
        {
            nb::gil_scoped_release release;
            search_.run(meter);
        }
        write_labels(search_.best, labels);
        return search_.energy;
    }

  private:
    pm::SwapSearch search_;
};

class AssignmentAscent {
  public:
    AssignmentAscent(const pm::Costs &costs, std::uint64_t seed) : ascent_(costs, seed) {}
    std::int64_t run(Index work, const Deadline *deadline) {
        Meter meter(deadline, work);
        nb::gil_scoped_release release;
        ascent_.run(meter);
        return ascent_.best().bound;
    }
    Index coolings() const { return ascent_.coolings(); }
    const pm::AssignmentDual &best() const { return ascent_.best(); }

    // Multipliers rows [i, p, j], columns [i, p, q] and those of the labels [p].
    void multipliers(Out<std::int64_t> rows, Out<std::int64_t> columns,
                     Out<std::int64_t> labels) const {
        const pm::AssignmentDual &dual = best();
        const Index n = dual.costs.variables, d = dual.costs.labels;
        require_size(rows, n * d * n, "rows");
        require_size(columns, n * d * d, "columns");
        require_size(labels, d, "labels");
        for (Index i = 0; i < n; ++i)
            for (Index p = 0; p < d; ++p) {
                for (Index j = 0; j < n; ++j)
                    rows.data()[(i * d + p) * n + j] = dual.row(i, p, j);
                for (Index q = 0; q < d; ++q)
                    columns.data()[(i * d + p) * d + q] = dual.column(i, p, q);
            }
        std::copy(dual.second().begin(), dual.second().end(), labels.data());
    }

  private:
    pm::DualAscent ascent_;
};

pm::AssignmentSearch searched(const AssignmentAscent &ascent, bool exchanged, Matrix<Index> maps,
                              In<Index> kind, std::int64_t most, std::int64_t step,
                              std::int64_t barrier, std::uint64_t seed, Index logged) {
    const pm::Costs &costs = ascent.best().costs;
    require(!exchanged || costs.variables == costs.labels, "there are more labels than variables");
    require(Index(maps.shape(1)) == costs.labels, "a map has one label for each label");
    require_size(kind, costs.variables, "kind");
    require(step > 0, "costs differ by positive steps");
    pm::Symmetry symmetry;
    for (std::size_t k = 0; k < maps.shape(0); ++k) {
        const Index *map = maps.data() + k * maps.shape(1);
        for (Index p = 0; p < costs.labels; ++p)
            require(0 <= map[p] && map[p] < costs.labels, "map ", k, " is out of range");
        symmetry.maps.emplace_back(map, map + costs.labels);
    }
    symmetry.kind.assign(kind.data(), kind.data() + kind.size());
    return {exchanged ? ascent.best().exchanged() : ascent.best(),
            std::move(symmetry),
            most,
            step,
            barrier,
            seed,
            std::size_t(std::max<Index>(logged, 0))};
}

} // namespace

void bind_permutations(nb::module_ &m) {
    nb::class_<pm::Costs>(m, "PermutationCosts")
        .def(
            "__init__",
            [](pm::Costs *self, Matrix<std::int64_t> unary, Matrix<std::int64_t> pair) {
                new (self) pm::Costs(costs_of(unary, pair));
            },
            arg("unary"), arg("pair"));
    nb::class_<Swaps>(m, "SwapSearch")
        .def(nb::init<const pm::Costs &, std::uint64_t>(), nb::arg("costs"), nb::arg("seed") = 0)
        .def("offer", &Swaps::offer, arg("labels"),
             "Continue from these labels if they cost less than the best ones.")
        .def("run", &Swaps::run, arg("labels"), nb::arg("work"), deadline_arg(),
             "Continue the tabu search; write the best labels and return their cost.");
    nb::class_<AssignmentAscent>(m, "AssignmentAscent")
        .def(nb::init<const pm::Costs &, std::uint64_t>(), nb::arg("costs"), nb::arg("seed") = 0)
        .def("run", &AssignmentAscent::run, nb::arg("work"), deadline_arg(),
             "Continue the ascent; return the best lower bound.")
        .def_prop_ro("coolings", &AssignmentAscent::coolings,
                     "Number of times that passes have stalled.")
        .def("multipliers", &AssignmentAscent::multipliers, arg("rows"), arg("columns"),
             arg("labels"), "Write the multipliers that prove the best bound.");
    using S = pm::AssignmentSearch;
    nb::class_<S>(m, "AssignmentSearch")
        .def(
            "__init__",
            [](S *self, const AssignmentAscent &ascent, bool exchanged, Matrix<Index> maps,
               In<Index> kind, std::int64_t most, std::int64_t step, std::int64_t barrier,
               std::uint64_t seed, Index logged) {
                new (self)
                    S(searched(ascent, exchanged, maps, kind, most, step, barrier, seed, logged));
            },
            nb::arg("ascent"), nb::arg("exchanged"), arg("maps"), arg("kind"), nb::arg("most"),
            nb::arg("step"), nb::arg("barrier"), nb::arg("seed") = 0, nb::arg("logged") = 0)
        .def_prop_ro("full", &S::full, "Whether the multipliers of all nodes were too many.")
        .def_prop_ro("logged", [](const S &self) { return Index(self.log.size()); })
        .def(
            "read_log",
            [](const S &self, Out<std::int64_t> out) {
                require_size(out, Index(self.log.size()), "out");
                std::copy(self.log.begin(), self.log.end(), out.data());
            },
            arg("out"),
            "Write the multipliers of all nodes: the number of fixed variables, these with their "
            "labels, rows, columns and labels.")
        .def(
            "run",
            [](S &self, Index work, const Deadline *deadline) {
                Meter meter(deadline, work);
                nb::gil_scoped_release release;
                self.run(meter);
                return self.ended();
            },
            nb::arg("work"), deadline_arg(), "Continue the search; return whether it has ended.")
        .def("limit", &S::limit, nb::arg("most"), "Search for assignments of at most this cost.")
        .def(
            "labels",
            [](const S &self, Out<Index> labels) {
                if (!self.best.empty())
                    write_labels(self.best, labels);
                return !self.best.empty();
            },
            arg("labels"), "Write the best labels that were found; return whether there are any.")
        .def_prop_ro("nodes", [](const S &self) { return self.nodes; })
        .def_prop_ro("bound", &S::bound, "Lower bound of the assignments not yet excluded.");
}

} // namespace softmap
