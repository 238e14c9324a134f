// Passes over chains and sweeps over stars, for one instruction set.
#include "kernels.hpp"
#include "passes/reading.hpp"
#include "passes/stars.hpp"
#include "transport/dense.hpp"

namespace softmap {

// to = exp(from), for numbers <= 0: the exponentials of passes by themselves, to time them.
static void exponentials(const double *from, double *to, Index count) {
    Index k = 0;
    for (; k + lanes <= count; k += lanes)
        exp(Pack<lanes>::load(from + k)).store(to + k);
    for (; k < count; ++k)
        to[k] = exp_one(from[k]);
}

void add_passes(Kernels &table) {
    table.passes = passes;
    table.one_half = one_half;
    table.lowered_half = lowered_half;
    table.least_rests = least_rests;
    table.read_labels = read_labels;
    table.traced_passes = traced_passes;
    table.extrapolate = extrapolate;
    table.round_off = round_off;
    table.put_back = put_back;
    table.shares = shares;
    table.star_sweeps = sweeps<StarRule>;
    table.diffusion_sweeps = sweeps<DiffusionRule>;
    table.gradient_sweeps = sweeps<GradientRule>;
    table.star_values = star_values;
    table.send_one = send_one;
    table.table_message = table_message;
    table.exponentials = exponentials;
}

} // namespace softmap
