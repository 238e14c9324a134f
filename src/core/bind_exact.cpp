// Python binding of the exact solver.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "exact/solver.hpp"

namespace nb = nanobind;

namespace {

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T, class A> std::span<const T> view(const A &array) {
    return {array.data(), array.size()};
}

// Set from another thread to end a search early.
struct StopFlag {
    std::atomic<bool> value{false};
};

nb::dict exact_solve(Ints num_labels, Doubles unary, Ints scope_start, Ints scope, Doubles tables,
                     double constant, Doubles lam, Ints incumbent, double time_limit,
                     std::int64_t backtrack_limit, double relative_gap, double absolute_gap,
                     double memory_limit, bool ascent, double dp_limit, const StopFlag *stop) {
    namespace ex = softmap::exact;
    ex::Input in{view<std::int64_t>(num_labels),
                 view<double>(unary),
                 view<std::int64_t>(scope_start),
                 view<std::int64_t>(scope),
                 view<double>(tables),
                 constant,
                 view<double>(lam),
                 view<std::int64_t>(incumbent)};
    ex::Control control;
    if (time_limit < 1e8)
        control.deadline =
            ex::Control::Clock::now() + std::chrono::duration_cast<ex::Control::Clock::duration>(
                                            std::chrono::duration<double>(time_limit));
    if (backtrack_limit >= 0)
        control.max_backtracks = backtrack_limit;
    if (stop != nullptr)
        control.stop = &stop->value;
    control.max_open_bytes = static_cast<std::int64_t>(memory_limit);
    ex::Options options;
    options.relative_gap = relative_gap;
    options.absolute_gap = absolute_gap;
    options.ascent = ascent;
    options.max_dp_entries = std::min(options.max_dp_entries, dp_limit);
    ex::Result r;
    {
        nb::gil_scoped_release release;
        r = ex::Solver(in, options, control).solve();
    }
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
    out["root_bound"] = r.root_bound;
    return out;
}

} // namespace

namespace softmap {

void bind_exact(nb::module_ &m) {
    nb::class_<StopFlag>(m, "StopFlag").def(nb::init<>()).def("set", [](StopFlag &f) {
        f.value = true;
    });
    m.def("exact_solve", &exact_solve, nb::arg("num_labels"), nb::arg("unary"),
          nb::arg("scope_start"), nb::arg("scope"), nb::arg("tables"), nb::arg("constant"),
          nb::arg("lam"), nb::arg("incumbent"), nb::arg("time_limit"), nb::arg("backtrack_limit"),
          nb::arg("relative_gap"), nb::arg("absolute_gap"), nb::arg("memory_limit"),
          nb::arg("ascent"), nb::arg("dp_limit"), nb::arg("stop").none() = nb::none());
}

} // namespace softmap
