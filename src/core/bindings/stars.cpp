// Bindings of sweeps over stars, one colour class after the other.
#include "passes/stars.hpp"
#include "bind.hpp"
#include "kernels/kernels.hpp"

#include <optional>

namespace softmap {
namespace {

struct StarCalls {
    using Lay = const HeldLayout &;
    using Plan = const HeldSchedule &;

    static StarArrays arrays(Plan plan, Out<double> msg, Out<double> origin, float *drift,
                             In<double> bar, Out<double> theta, Out<double> shift, Out<double> dot,
                             double *unused, double *sums, Clock *clock) {
        require_size(origin, Index(msg.size()), "origin");
        require_size(theta, Index(bar.size()), "theta");
        require_size(shift, plan.view.num_blocks, "shift");
        return {msg.data(), origin.data(), drift,        Index(msg.size()),
                bar.data(), theta.data(),  shift.data(), dot.data(),
                unused,     sums,          clock};
    }

    template <Sweep Kernels::*rule>
    static Index sweep(Lay lay, Plan plan, Index count, Out<double> msg, Out<float> drift,
                       Out<double> origin, In<double> bar, Out<double> theta, double eta,
                       bool momentum, Out<double> shift, Out<double> dot, Out<double> clock,
                       int threads, const Deadline *deadline) {
        require_size(dot, lay.view.n, "dot");
        require_size(clock, 3, "clock");
        require_size(drift, momentum ? Index(msg.size()) : 0, "drift");
        require(threads >= 1, "threads must be at least 1");
        std::vector<double> unused(std::size_t(plan.view.num_blocks) + 1);
        double sums[partial_sums];
        auto run = arrays(plan, msg, origin, drift.data(), bar, theta, shift, dot, unused.data(),
                          sums, reinterpret_cast<Clock *>(clock.data()));
        std::optional<PassStop> stop;
        if (deadline != nullptr)
            run.stop = &stop.emplace(*deadline);
        together(threads, [&](Member &me) {
            (kernels->*rule)(lay.view, plan.view, count, run, eta, momentum, me);
        });
        const Index levels = std::max<Index>(plan.view.levels, 1);
        return stop ? stop->completed(count * levels) / levels : count;
    }

    static void values(Lay lay, Plan plan, Out<double> msg, Out<double> origin, In<double> bar,
                       Out<double> theta, double eta, Out<double> shift, Out<double> dot,
                       int threads) {
        require_size(dot, lay.view.n, "dot");
        std::vector<double> unused(std::size_t(plan.view.num_blocks) + 1);
        const auto run = arrays(plan, msg, origin, nullptr, bar, theta, shift, dot, unused.data(),
                                nullptr, nullptr);
        together(threads,
                 [&](Member &me) { kernels->star_values(lay.view, plan.view, run, eta, me); });
    }

    template <Sweep Kernels::*rule> static void bind_rule(nb::module_ &m, const char *name) {
        m.def(name, &sweep<rule>, arg("layout"), arg("schedule"), arg("count"), arg("msg"),
              arg("drift"), arg("origin"), arg("bar"), arg("theta"), arg("eta"), arg("momentum"),
              arg("shift"), arg("dot"), arg("clock"), arg("threads"), deadline_arg(), Unlocked(),
              "Make sweeps; return how many were completed before the deadline.");
    }

    static void bind(nb::module_ &m) {
        bind_rule<&Kernels::star_sweeps>(m, "star_sweeps");
        bind_rule<&Kernels::diffusion_sweeps>(m, "diffusion_sweeps");
        bind_rule<&Kernels::gradient_sweeps>(m, "gradient_sweeps");
        m.def("star_values", &values, arg("layout"), arg("schedule"), arg("msg"), arg("origin"),
              arg("bar"), arg("theta"), arg("eta"), arg("shift"), arg("dot"), arg("threads"),
              Unlocked());
    }
};

} // namespace

void bind_stars(nb::module_ &m) { StarCalls::bind(m); }

} // namespace softmap
