// Python binding of the exact solver.
#include "flat.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "exact/solver.hpp"

namespace softmap {
namespace {

namespace ex = exact;

struct ExactOptions : ex::Options {
    double open_bytes = 0x1p30; // memory for open nodes
};

// A model with its search; every call resumes the search.
class ExactSearch {
  public:
    ExactSearch(const FlatModel &flat, const ExactOptions &options, In<double> lam,
                In<Index> incumbent)
        : flat_(flat), lam_(nb::borrow(lam.object)), in_(input(flat, lam, incumbent)),
          solver_(in_, options, control_) {
        control_.max_open_bytes = static_cast<std::int64_t>(options.open_bytes);
        in_.incumbent = {}; // not kept alive
    }

    nb::dict run(In<Index> incumbent, const Deadline *deadline, const Deadline *end,
                 std::int64_t backtrack_limit) {
        control_.deadline = deadline;
        control_.end = end;
        control_.max_backtracks =
            backtrack_limit < 0 ? INT64_MAX : control_.backtracks + backtrack_limit;
        control_.stopped = false;
        if (incumbent.size() > 0) {
            flat_.check_labels(incumbent);
            solver_.take({incumbent.data(), incumbent.data() + incumbent.size()});
        }
        ex::Result found;
        {
            nb::gil_scoped_release release;
            found = solver_.solve();
        }
        control_.deadline = control_.end = nullptr; // they need not outlive the call
        return as_dict(found);
    }

  private:
    static ex::Input input(const FlatModel &flat, In<double> lam, In<Index> incumbent) {
        ex::Input in = flat.in;
        in.lam = span(lam);
        if (incumbent.size() > 0)
            flat.check_labels(incumbent);
        in.incumbent = span(incumbent);
        return in;
    }
    static nb::dict as_dict(const ex::Result &r) {
        nb::dict out;
        out["labels"] = nb::cast(r.labels);
        out["energy"] = r.energy;
        out["lower_bound"] = r.lower_bound;
        out["slack"] = r.slack;
        out["complete"] = r.complete;
        out["infeasible"] = r.infeasible;
        out["nodes"] = r.nodes;
        out["backtracks"] = r.backtracks;
        out["components"] = r.components;
        out["eliminated"] = r.eliminated;
        out["searched"] = r.searched;
        out["workers"] = r.workers;
        out["root_bound"] = r.root_bound;
        out["log"] = r.log;
        out["logged"] = r.logged;
        return out;
    }

    const FlatModel &flat_;
    nb::object lam_;
    ex::Control control_;
    ex::Input in_;
    ex::Solver solver_;
};

nb::tuple plan_component(double tables, double eliminated, const ex::Effort &effort, bool first) {
    const auto plan =
        ex::plan_component({tables, std::isfinite(eliminated), eliminated}, effort, first);
    constexpr const char *names[] = {"eliminate", "search", "search first"};
    return nb::make_tuple(names[static_cast<int>(plan.method)], plan.work);
}

} // namespace

void bind_exact(nb::module_ &m) {
    nb::class_<FlatModel>(m, "FlatModel", "A model as factor tables.")
        .def(nb::init<In<Index>, In<double>, In<Index>, In<Index>, In<double>, double>(),
             arg("num_labels"), arg("unary"), arg("scope_start"), arg("scope"), arg("tables"),
             nb::arg("constant"));
    using E = ex::Effort;
    nb::class_<E>(m, "Effort", "The numbers that decide how much of what an exact search does.")
        .def(nb::init<>())
        .def_rw("max_entries", &E::max_entries)
        .def_rw("max_stored", &E::max_stored)
        .def_rw("at_once", &E::at_once)
        .def_rw("per_entry", &E::per_entry)
        .def_rw("search_first", &E::search_first)
        .def_rw("longest_first", &E::longest_first)
        .def_rw("split_work", &E::split_work);
    m.def("plan_component", &plan_component, nb::arg("tables"), nb::arg("eliminated"),
          nb::arg("effort"), nb::arg("first"),
          "Return how a component of so many table entries is solved: 'eliminate', 'search', or "
          "'search first' and the work of that search. `eliminated` is the number of entries that "
          "elimination visits, +inf without an order; `first`: a first labelling is looked for.");
    using O = ExactOptions;
    nb::class_<O>(m, "ExactOptions", "The options of an exact search.")
        .def(nb::init<>())
        .def_rw("relative_gap", &O::relative_gap)
        .def_rw("absolute_gap", &O::absolute_gap)
        .def_rw("presolve", &O::presolve)
        .def_rw("ascent", &O::ascent)
        .def_rw("threads", &O::threads)
        .def_rw("log", &O::log)
        .def_rw("effort", &O::effort)
        .def_rw("open_bytes", &O::open_bytes);
    nb::class_<ExactSearch>(m, "ExactSearch", "Branch and bound over one model.")
        .def(nb::init<const FlatModel &, const ExactOptions &, In<double>, In<Index>>(),
             nb::keep_alive<1, 2>(), nb::arg("model"), nb::arg("options"), arg("lam"),
             arg("incumbent"))
        .def("run", &ExactSearch::run, arg("incumbent"), deadline_arg(),
             nb::arg("end").none() = nb::none(), nb::arg("backtrack_limit") = -1,
             "Continue the search up to a deadline or a limit on backtracks; what cannot be "
             "resumed may run to `end`. Return the result so far.");
}

} // namespace softmap
