// The semidefinite bound of spins, for one instruction set.
#include "kernels.hpp"
#include "spins/tridiagonal.hpp"
#include "spins/vectors.hpp"

namespace softmap {

static Index mix_triangles(const SpinTriangles &of, double *vectors, Index rank, Index steps,
                           Meter &meter) {
    return TriangleSteps(of, vectors, rank).run(steps, meter);
}

static bool cholesky(double *matrix, Index n, const Deadline *deadline) {
    return Cholesky(matrix, n).run(deadline);
}

void add_spins(Kernels &table) {
    table.mix = mix;
    table.mix_triangles = mix_triangles;
    table.violated_triangles = violated_triangles;
    table.cholesky = cholesky;
    table.make_tridiagonal = make_tridiagonal;
    table.multiply_by_reflections = multiply_by_reflections;
}

} // namespace softmap
