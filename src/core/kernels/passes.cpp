// Passes over chains and sweeps over stars, for one instruction set.
#include "kernels.hpp"
#include "passes/reading.hpp"
#include "passes/stars.hpp"

namespace softmap {

template <class S> static PassKernels<S> pass_kernels() {
    return {passes<S>,
            one_half<S>,
            lowered_half<S>,
            least_rests<S>,
            nullptr, // price_portions: set in proof.cpp
            read_labels<S>,
            extrapolate<S>,
            shares<S>,
            sweeps<StarRule, S>,
            sweeps<DiffusionRule, S>,
            sweeps<GradientRule, S>,
            star_values<S>};
}

void add_passes(Kernels &table) {
    table.doubles = pass_kernels<double>();
    table.singles = pass_kernels<float>();
    table.send_one = send_one;
}

} // namespace softmap
