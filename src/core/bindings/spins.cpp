// The semidefinite bound of quadratic functions of spins.
#include "bind.hpp"
#include "kernels/kernels.hpp"
#include "spins/tridiagonal.hpp"
#include "spins/vectors.hpp"

namespace softmap {
namespace {

Index rank_of(const OutMatrix<double> &vectors) {
    const Index rank = Index(vectors.shape(1));
    require(rank > 0 && rank % lanes == 0 && rank <= spins::most_chunks * lanes,
            "the rank must be a multiple of ", lanes, " up to ", spins::most_chunks * lanes);
    return rank;
}

Index mix_of(In<Index> start, In<Index> column, In<double> weight, OutMatrix<double> vectors,
             Index sweeps, const Deadline *deadline) {
    const Index n = Index(vectors.shape(0)), rank = rank_of(vectors);
    require_size(start, n + 1, "start");
    require_size(weight, Index(column.size()), "weight");
    require(start.data()[0] == 0 && start.data()[n] == Index(column.size()), "start is wrong");
    for (Index i = 0; i < n; ++i)
        require(start.data()[i] <= start.data()[i + 1], "start must not fall at ", i);
    for (std::size_t e = 0; e < column.size(); ++e)
        require(0 <= column.data()[e] && column.data()[e] < n, "there is no row ",
                column.data()[e]);
    nb::gil_scoped_release released;
    Meter meter(deadline);
    return kernels->mix({n, start.data(), column.data(), weight.data()}, vectors.data(), rank,
                        sweeps, meter);
}

void require_square(const Matrix<double> &matrix, Index n, const char *name) {
    require(Index(matrix.shape(0)) == n && Index(matrix.shape(1)) == n, name, " must be ", n, " x ",
            n);
}

Index mix_triangles_of(Matrix<double> matrix, OutMatrix<double> vectors, Matrix<Index> triangles,
                       Out<double> multipliers, Out<double> averages, double penalty, double keep,
                       Index steps, const Deadline *deadline) {
    const Index n = Index(vectors.shape(0)), rank = rank_of(vectors);
    const Index count = Index(triangles.shape(0));
    require_square(matrix, n, "matrix");
    require(triangles.shape(1) == 4, "a triangle has four numbers");
    require_size(multipliers, count, "multipliers");
    require_size(averages, count, "averages");
    for (Index t = 0; t < count; ++t) {
        const Index *at = triangles.data() + 4 * t;
        require(0 <= at[0] && at[0] < at[1] && at[1] < at[2] && at[2] < n && 0 <= at[3] &&
                    at[3] < 4,
                "there is no triangle ", t);
    }
    nb::gil_scoped_release released;
    Meter meter(deadline);
    const SpinTriangles of{
        n,       count, matrix.data(), triangles.data(), multipliers.data(), averages.data(),
        penalty, keep};
    return kernels->mix_triangles(of, vectors.data(), rank, steps, meter);
}

nb::object violated_triangles_of(Matrix<double> gram, double least, Index most,
                                 const Deadline *deadline) {
    const Index n = Index(gram.shape(0));
    require_square(gram, n, "gram");
    require(most > 0, "most must be positive");
    std::vector<Index> found;
    {
        nb::gil_scoped_release released;
        Meter meter(deadline);
        found = kernels->violated_triangles(gram.data(), n, least, most, meter);
    }
    return handed_over<Index>(std::move(found));
}

bool cholesky_of(OutMatrix<double> matrix, const Deadline *deadline) {
    const Index n = Index(matrix.shape(0));
    require_square(matrix, n, "matrix");
    nb::gil_scoped_release released;
    return kernels->cholesky(matrix.data(), n, deadline);
}

void make_tridiagonal_of(OutMatrix<double> matrix, Out<double> diagonal, Out<double> beside,
                         const Deadline *deadline) {
    const Index n = Index(matrix.shape(0));
    require_square(matrix, n, "matrix");
    require_size(diagonal, n, "diagonal");
    require_size(beside, n, "beside");
    nb::gil_scoped_release released;
    kernels->make_tridiagonal({n, matrix.data(), diagonal.data(), beside.data()}, deadline);
}

void multiply_by_reflections_of(Matrix<double> matrix, OutMatrix<double> vectors,
                                const Deadline *deadline) {
    const Index n = Index(matrix.shape(0));
    require_square(matrix, n, "matrix");
    require(Index(vectors.shape(1)) == n, "vectors must have ", n, " columns");
    nb::gil_scoped_release released;
    kernels->multiply_by_reflections(matrix.data(), n, vectors.data(), Index(vectors.shape(0)),
                                     deadline);
}

} // namespace

void bind_spins(nb::module_ &m) {
    m.def("mix", &mix_of, arg("start"), arg("column"), arg("weight"), arg("vectors"),
          nb::arg("sweeps"), deadline_arg(),
          "Sweep over unit vectors, each replaced by the best one; return the sweeps completed.");
    m.def("mix_triangles", &mix_triangles_of, arg("matrix"), arg("vectors"), arg("triangles"),
          arg("multipliers"), arg("averages"), nb::arg("penalty"), nb::arg("keep"),
          nb::arg("steps"), deadline_arg(),
          "Make steps of vectors and multipliers of triangles; return the steps completed.");
    m.def("violated_triangles", &violated_triangles_of, arg("gram"), nb::arg("least"),
          nb::arg("most"), deadline_arg(),
          "Return the most violated triangles: four numbers each, the signs last.");
    m.def("cholesky", &cholesky_of, arg("matrix"), deadline_arg(),
          "Replace the lower triangle by its Cholesky factor; False at a pivot that is not "
          "positive.");
    m.def("make_tridiagonal", &make_tridiagonal_of, arg("matrix"), arg("diagonal"), arg("beside"),
          deadline_arg(),
          "Replace a symmetric matrix by the reflections that make it tridiagonal.");
    m.def("multiply_by_reflections", &multiply_by_reflections_of, arg("matrix"), arg("vectors"),
          deadline_arg(),
          "Replace each vector, a row, by its product with the reflections of `make_tridiagonal`.");
}

} // namespace softmap
