// The table of inner loops (function pointers).
//
// The files of this folder are compiled once per instruction set, each time into a library that
// exports only its table. Everything else (bindings, primal heuristics, the exact solver) is
// compiled once, for the oldest supported processor, and calls the inner loops through `kernels`.
// Arguments are pointers and plain numbers, never a Pack, whose size depends on the instruction
// set.
#pragma once

#include "base/schedule.hpp"

namespace softmap {

// Argument types of the functions; a caller includes the header that defines them.
class Member;
struct Clock;
struct Couplings;
struct EdgeList;
struct Prices;
struct Random;
template <class S> struct ChainArrays;
template <class S> struct ChainPoint;
template <class S> struct StarArrays;
namespace paper {
struct AcceleratedArrays;
struct StandardArrays;
struct StarOrder;
struct Updates;
} // namespace paper

template <class S>
using Sweep = void (*)(const Layout<S> &, const Schedule<S> &, Index count, const StarArrays<S> &,
                       double eta, bool moving, Member &);

template <class S, class T>
using SoftRows = void (*)(const Layout<double> &, const Schedule<S> &, const double *theta,
                          double eta, double weight, T *out, double *entropy, double *minimum,
                          Index first, Index last);

// Passes and sweeps over messages of type S.
template <class S> struct PassKernels {
    void (*passes)(const Layout<S> &, const Schedule<S> &, Index halves, const ChainArrays<S> &,
                   double eta, bool momentum, Member &);
    void (*one_half)(const Layout<S> &, const Schedule<S> &, bool forward, const ChainArrays<S> &,
                     double eta, bool momentum, Member &);
    void (*lowered_half)(const Layout<S> &, const Schedule<S> &, const ChainArrays<S> &, Member &);
    Index (*least_rests)(const Schedule<S> &, const double *theta, double *out, Index first,
                         Index last);
    void (*price_portions)(const ChainPoint<S> &, Prices *out, Index first, Index last);
    SoftRows<S, double> soft_rows;
    SoftRows<S, float> soft_rows_in_single;
    void (*read_labels)(const Layout<double> &, const Schedule<S> &, const S *msg, double margin_of,
                        Index *labels, Member &);
    void (*traced_passes)(const Layout<S> &, const Schedule<S> &, Index count,
                          const ChainArrays<S> &, Member &);
    void (*extrapolate)(S *msg, float *drift, Index count, Clock &, Member &);
    void (*round_off)(S *msg, float *drift, Index count, Member &);
    void (*put_back)(S *msg, float *drift, Index count, Member &);
    void (*shares)(const Schedule<S> &, const S *msg, double *theta, Index first, Index last);
    Sweep<S> star_sweeps, diffusion_sweeps, gradient_sweeps;
    void (*star_values)(const Layout<S> &, const Schedule<S> &, const StarArrays<S> &, double eta,
                        Member &);
};

struct Kernels {
    const char *level; // the instruction set
    int width;         // doubles in one vector register

    PassKernels<double> doubles;
    PassKernels<float> singles;
    void (*send_one)(const Layout<double> &, Index g, Index h, const double *a, double *out,
                     double *room, double eta);

    void (*exponentials)(const double *from, double *to, Index count);

    void (*node_minima)(const Layout<double> &, const double *lam, double *out, Index first,
                        Index last);
    void (*edge_minima)(const Layout<double> &, const double *lam, double *out, Index first,
                        Index last);
    double (*dual_bound)(const Layout<double> &, const double *lam, double constant, int threads);
    void (*couple)(const Layout<double> &, const EdgeList &, const Couplings &, Index first,
                   Index last);
    void (*soft_nodes)(const Layout<double> &, const double *share, double eta, double *out,
                       double *entropy, double *minimum, Index first, Index last);

    void (*begin_standard)(const paper::StarOrder &, const paper::StandardArrays &, double eta);
    Index (*run_standard)(const paper::StarOrder &, const paper::StandardArrays &, double eta,
                          paper::Updates, Random &);
    Index (*run_accelerated)(const paper::StarOrder &, const paper::AcceleratedArrays &, double eta,
                             paper::Updates, bool printed, double &theta, Random &);

    template <class S> const PassKernels<S> &of() const {
        if constexpr (std::is_same_v<S, double>)
            return doubles;
        else
            return singles;
    }
};

// Each file of this folder adds its own functions to the table.
void add_passes(Kernels &table);
void add_proof(Kernels &table);
void add_paper(Kernels &table);

inline constexpr const char *kernels_name = "softmap.kernels"; // name of the Python capsule
inline const Kernels *kernels = nullptr; // the table in use, set when softmap.core is imported

} // namespace softmap
