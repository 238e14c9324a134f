// The inner loops, as a table of functions.
//
// They are compiled once per instruction set (this folder), each time into a library of its own
// that holds nothing but its table. Everything else (bindings, searches for labels, the exact
// solver) is compiled once, for the oldest processor, and calls the inner loops through `kernels`.
// What crosses the border are pointers and plain numbers: never a Pack, whose shape depends on the
// instruction set.
#pragma once

#include "paper/accelerated.hpp"
#include "paper/standard.hpp"
#include "passes/reading.hpp"
#include "passes/stars.hpp"
#include "proof/couplings.hpp"
#include "proof/minima.hpp"
#include "proof/nodes.hpp"
#include "proof/pricing.hpp"

namespace softmap {

template <class S>
using Sweep = void (*)(const Layout<S> &, const Schedule<S> &, Index count, const StarArrays<S> &,
                       double eta, bool moving, Member &);

// Passes and sweeps over messages of type S.
template <class S> struct PassKernels {
    decltype(softmap::passes<S>) *passes;
    decltype(softmap::one_half<S>) *one_half;
    decltype(softmap::lowered_half<S>) *lowered_half;
    decltype(softmap::least_rests<S>) *least_rests;
    decltype(softmap::price_portions<S>) *price_portions;
    decltype(softmap::read_labels<S>) *read_labels;
    decltype(softmap::extrapolate<S>) *extrapolate;
    decltype(softmap::shares<S>) *shares;
    Sweep<S> star_sweeps, diffusion_sweeps, gradient_sweeps;
    decltype(softmap::star_values<S>) *star_values;
};

struct Kernels {
    const char *level; // the instruction set
    int width;         // doubles in one vector register

    PassKernels<double> doubles;
    PassKernels<float> singles;
    decltype(softmap::send_one) *send_one;

    decltype(softmap::node_minima) *node_minima;
    decltype(softmap::edge_minima) *edge_minima;
    decltype(softmap::dual_bound) *dual_bound;
    decltype(softmap::couple) *couple;
    decltype(softmap::soft_nodes) *soft_nodes;

    decltype(paper::begin_standard) *begin_standard;
    decltype(paper::run_standard) *run_standard;
    decltype(paper::run_accelerated) *run_accelerated;

    template <class S> const PassKernels<S> &of() const {
        if constexpr (std::is_same_v<S, double>)
            return doubles;
        else
            return singles;
    }
};

// Each file of kernels enters its own.
void add_passes(Kernels &table);
void add_proof(Kernels &table);
void add_paper(Kernels &table);

inline constexpr const char *kernels_name = "softmap.kernels"; // of the capsule that hands it over
inline const Kernels *kernels = nullptr; // the table in use, set when softmap.core is imported

} // namespace softmap
