// Bindings of sweeps over stars, one colour class after the other.
#include "passes/stars.hpp"
#include "bind.hpp"
#include "kernels/kernels.hpp"

namespace softmap {
namespace {

// The arrays of a run of sweeps, checked and kept alive. Without momentum, `drift` is empty.
class HeldStars {
  public:
    HeldStars(Out<double> msg, Out<float> drift, Out<double> origin, In<double> bar,
              Out<double> theta, Out<double> shift, Out<double> dot, Out<double> clock)
        : blocks_(Index(shift.size())), nodes_(Index(dot.size())), drift_(Index(drift.size())),
          unused_(shift.size() + 1) {
        require_size(origin, Index(msg.size()), "origin");
        require_size(theta, Index(bar.size()), "theta");
        require_size(clock, 3, "clock");
        view = {held_.keep(msg),
                held_.keep(origin),
                held_.keep(drift),
                Index(msg.size()),
                held_.keep(bar),
                held_.keep(theta),
                held_.keep(shift),
                held_.keep(dot),
                unused_.data(),
                sums_,
                reinterpret_cast<Clock *>(held_.keep(clock))};
    }
    HeldStars(const HeldStars &) = delete;

    void require_fit(const Layout &lay, const Schedule &plan, bool momentum) const {
        require(nodes_ == lay.n && blocks_ == plan.num_blocks,
                "the arrays do not fit the schedule");
        require(drift_ == (momentum ? view.size : 0), "drift must have ", momentum ? view.size : 0,
                " entries, not ", drift_);
    }

    StarArrays view;

  private:
    Held<int> held_;
    Index blocks_, nodes_, drift_;
    std::vector<double> unused_;
    double sums_[partial_sums];
};

struct StarCalls {
    using Lay = const HeldLayout &;
    using Plan = const HeldSchedule &;
    using Arrays = const HeldStars &;

    template <Sweep Kernels::*rule>
    static Index sweep(Lay lay, Plan plan, Arrays arrays, Index count, double eta, bool momentum,
                       int threads, const Deadline *deadline) {
        arrays.require_fit(lay.view, plan.view, momentum);
        require(threads >= 1, "threads must be at least 1");
        const Stoppable run(arrays.view, deadline);
        together(threads, [&](Member &me) {
            (kernels->*rule)(lay.view, plan.view, count, run.view, eta, momentum, me);
        });
        const Index levels = std::max<Index>(plan.view.levels, 1);
        return run.completed(count * levels) / levels;
    }

    static void values(Lay lay, Plan plan, Arrays arrays, double eta, int threads) {
        arrays.require_fit(lay.view, plan.view, false);
        together(threads, [&](Member &me) {
            kernels->star_values(lay.view, plan.view, arrays.view, eta, me);
        });
    }

    template <Sweep Kernels::*rule> static void bind_rule(nb::module_ &m, const char *name) {
        m.def(name, &sweep<rule>, arg("layout"), arg("schedule"), arg("arrays"), arg("count"),
              arg("eta"), arg("momentum"), arg("threads"), deadline_arg(), Unlocked(),
              "Make sweeps; return how many were completed before the deadline.");
    }

    static void bind(nb::module_ &m) {
        nb::class_<HeldStars>(m, "StarArrays", "The arrays of a run of sweeps.")
            .def(nb::init<Out<double>, Out<float>, Out<double>, In<double>, Out<double>,
                          Out<double>, Out<double>, Out<double>>(),
                 arg("msg"), arg("drift"), arg("origin"), arg("bar"), arg("theta"), arg("shift"),
                 arg("dot"), arg("clock"));
        bind_rule<&Kernels::star_sweeps>(m, "star_sweeps");
        bind_rule<&Kernels::diffusion_sweeps>(m, "diffusion_sweeps");
        bind_rule<&Kernels::gradient_sweeps>(m, "gradient_sweeps");
        m.def("star_values", &values, arg("layout"), arg("schedule"), arg("arrays"), arg("eta"),
              arg("threads"), Unlocked(),
              "Write the soft minima of nodes and blocks at messages without momentum.");
    }
};

} // namespace

void bind_stars(nb::module_ &m) { StarCalls::bind(m); }

} // namespace softmap
