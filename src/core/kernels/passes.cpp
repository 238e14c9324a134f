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
            nullptr, // price_portions and soft_rows: set in proof.cpp
            nullptr,
            nullptr,
            read_labels<S>,
            traced_passes<S>,
            extrapolate<S>,
            round_off<S>,
            put_back<S>,
            shares<S>,
            sweeps<StarRule, S>,
            sweeps<DiffusionRule, S>,
            sweeps<GradientRule, S>,
            star_values<S>};
}

// to = exp(from), for numbers <= 0: the exponentials of passes by themselves, to time them.
static void exponentials(const double *from, double *to, Index count) {
    Index k = 0;
    for (; k + lanes <= count; k += lanes)
        exp(Pack<lanes>::load(from + k)).store(to + k);
    for (; k < count; ++k)
        to[k] = exp_one(from[k]);
}

void add_passes(Kernels &table) {
    table.doubles = pass_kernels<double>();
    table.singles = pass_kernels<float>();
    table.send_one = send_one;
    table.exponentials = exponentials;
}

} // namespace softmap
