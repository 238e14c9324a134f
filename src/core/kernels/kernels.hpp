// The table of inner loops (function pointers).
//
// The files of this folder are compiled once per instruction set, each time into a library that
// exports only its table. Everything else (bindings, primal heuristics, the exact solver) is
// compiled once, for the oldest supported processor, and calls the inner loops through `kernels`.
// Arguments are pointers and plain numbers, never a Pack, whose size depends on the instruction
// set.
#pragma once

#include "base/schedule.hpp"

#include <vector>

namespace softmap {

// Argument types of the functions; a caller includes the header that defines them.
class Member;
struct Clock;
struct Couplings;
struct DenseTable;
struct EdgeList;
struct Prices;
struct Random;
struct ChainArrays;
struct ChainPoint;
struct StarArrays;
struct SpinRows;
struct Tridiagonal;
struct SpinTriangles;
class Deadline;
class Meter;
namespace paper {
struct AcceleratedArrays;
struct StandardArrays;
struct StarOrder;
struct Updates;
} // namespace paper

using Sweep = void (*)(const Layout &, const Schedule &, Index count, const StarArrays &,
                       double eta, bool moving, Member &);

template <class T>
using SoftRows = void (*)(const Layout &, const Schedule &, const double *theta, double eta,
                          double weight, T *out, double *entropy, double *minimum, Index first,
                          Index last);

struct Kernels {
    const char *level; // the instruction set
    int width;         // doubles in one vector register

    void (*passes)(const Layout &, const Schedule &, Index halves, const ChainArrays &, double eta,
                   bool momentum, Member &);
    void (*one_half)(const Layout &, const Schedule &, bool forward, const ChainArrays &,
                     double eta, bool momentum, Member &);
    void (*lowered_half)(const Layout &, const Schedule &, const ChainArrays &, Member &);
    Index (*least_rests)(const Schedule &, const double *theta, double *out, Index first,
                         Index last);
    void (*price_portions)(const ChainPoint &, Prices *out, Index first, Index last);
    SoftRows<double> soft_rows;
    SoftRows<float> soft_rows_in_single;
    void (*read_labels)(const Layout &, const Schedule &, const double *msg, double margin_of,
                        Index *labels, Member &);
    void (*traced_passes)(const Layout &, const Schedule &, Index count, const ChainArrays &,
                          Member &);
    void (*extrapolate)(double *msg, float *drift, Index count, Clock &, Member &);
    void (*round_off)(double *msg, float *drift, Index count, Member &);
    void (*put_back)(double *msg, float *drift, Index count, Member &);
    void (*shares)(const Schedule &, const double *msg, double *theta, Index first, Index last);
    Sweep star_sweeps, diffusion_sweeps, gradient_sweeps;
    void (*star_values)(const Layout &, const Schedule &, const StarArrays &, double eta, Member &);

    void (*send_one)(const Layout &, Index g, Index h, const double *a, double *out, double *room,
                     double eta);
    void (*table_message)(const DenseTable &, int receiver, const double *from, double *out,
                          double eta);

    void (*exponentials)(const double *from, double *to, Index count);

    void (*node_minima)(const Layout &, const double *lam, double *out, Index first, Index last);
    void (*edge_minima)(const Layout &, const double *lam, double *out, Index first, Index last);
    double (*dual_bound)(const Layout &, const double *lam, double constant, int threads);
    void (*couple)(const Layout &, const EdgeList &, const Couplings &, Index first, Index last);
    void (*soft_nodes)(const Layout &, const double *share, double eta, double *out,
                       double *entropy, double *minimum, Index first, Index last);

    void (*begin_standard)(const paper::StarOrder &, const paper::StandardArrays &, double eta);
    Index (*run_standard)(const paper::StarOrder &, const paper::StandardArrays &, double eta,
                          paper::Updates, Random &);
    Index (*run_accelerated)(const paper::StarOrder &, const paper::AcceleratedArrays &, double eta,
                             paper::Updates, bool printed, double &theta, Random &);
    void (*plant_greedy)(const paper::StarOrder &, const paper::StandardArrays &, double eta,
                         bool stars);
    Index (*run_greedy)(const paper::StarOrder &, const paper::StandardArrays &, double eta,
                        bool stars, Index count);
    Index (*run_sampled)(const paper::StarOrder &, const paper::StandardArrays &, double eta,
                         bool stars, Index count, Index sample, Random &);
    Index (*run_semi_greedy)(const paper::StarOrder &, const paper::AcceleratedArrays &, double eta,
                             Index count, Index sample, double &theta, Random &);

    Index (*mix)(const SpinRows &, double *vectors, Index rank, Index sweeps, Meter &);
    Index (*mix_triangles)(const SpinTriangles &, double *vectors, Index rank, Index steps,
                           Meter &);
    std::vector<Index> (*violated_triangles)(const double *gram, Index n, double least, Index most,
                                             Meter &);
    bool (*cholesky)(double *matrix, Index n, const Deadline *);
    void (*make_tridiagonal)(const Tridiagonal &, const Deadline *);
    void (*multiply_by_reflections)(const double *matrix, Index n, double *vectors, Index count,
                                    const Deadline *);
};

// Each file of this folder adds its own functions to the table.
void add_passes(Kernels &table);
void add_proof(Kernels &table);
void add_paper(Kernels &table);
void add_spins(Kernels &table);

inline constexpr const char *kernels_name = "softmap.kernels"; // name of the Python capsule
inline const Kernels *kernels = nullptr; // the table in use, set when softmap.core is imported

} // namespace softmap
