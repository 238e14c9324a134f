// Symmetric matrices in tridiagonal form, with looks at a deadline.
//
// Reflections 1 - v v' make a symmetric matrix A tridiagonal (Golub and Van Loan, Matrix
// Computations, 8.3.1): A = Q T Q', where Q is the product of the reflections.
#pragma once

#include "base/deadline.hpp"
#include "base/lanes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace softmap {

// Arrays of the tridiagonal form of a symmetric matrix.
struct Tridiagonal {
    Index n;
    double *matrix; // [n, n]: the lower triangle is read; row k gets v of reflection k, from k + 1
    double *diagonal; // [n], of T
    double *beside;   // [n]: T[k, k + 1]; the last entry is 0
};

namespace tridiagonal {

inline double product(const double *a, const double *b, Index count) {
    Pack<lanes> sum(0.0);
    Index j = 0;
    for (; j + lanes <= count; j += lanes)
        sum = fused(Pack<lanes>::load(a + j), Pack<lanes>::load(b + j), sum);
    double out = total(sum);
    for (; j < count; ++j)
        out += a[j] * b[j];
    return out;
}

// y += x a; returns the inner product of a and b.
inline double add_and_multiply(double x, const double *a, const double *b, double *y, Index count) {
    Pack<lanes> sum(0.0);
    Index j = 0;
    for (; j + lanes <= count; j += lanes) {
        const auto own = Pack<lanes>::load(a + j);
        sum = fused(own, Pack<lanes>::load(b + j), sum);
        fused(Pack<lanes>(x), own, Pack<lanes>::load(y + j)).store(y + j);
    }
    double out = total(sum);
    for (; j < count; ++j) {
        out += a[j] * b[j];
        y[j] += x * a[j];
    }
    return out;
}

// y += x a.
inline void add(double x, const double *a, double *y, Index count) {
    Index j = 0;
    for (; j + lanes <= count; j += lanes)
        fused(Pack<lanes>(x), Pack<lanes>::load(a + j), Pack<lanes>::load(y + j)).store(y + j);
    for (; j < count; ++j)
        y[j] += x * a[j];
}

// z += x a + y b.
inline void add(double x, const double *a, double y, const double *b, double *z, Index count) {
    Index j = 0;
    for (; j + lanes <= count; j += lanes) {
        const auto first =
            fused(Pack<lanes>(x), Pack<lanes>::load(a + j), Pack<lanes>::load(z + j));
        fused(Pack<lanes>(y), Pack<lanes>::load(b + j), first).store(z + j);
    }
    for (; j < count; ++j)
        z[j] += x * a[j] + y * b[j];
}

// Replaces v by the vector of the reflection that maps it to a multiple of the first unit vector,
// which is returned; by 0 if the other entries are negligible beside numbers near 1.
inline double reflection(double *v, Index count) {
    const double first = count > 0 ? v[0] : 0.0;
    const double rest = count > 1 ? product(v + 1, v + 1, count - 1) : 0.0;
    if (!(rest > 1e-280)) {
        std::fill(v, v + count, 0.0);
        return first;
    }
    const double size = std::sqrt(first * first + rest), image = -std::copysign(size, first);
    v[0] -= image;
    const double scale = 1.0 / std::sqrt(size * std::abs(v[0]));
    for (Index i = 0; i < count; ++i)
        v[i] *= scale;
    return image;
}

// Applies the reflection of v to the rows and columns from `first` on; w [n] is scratch memory.
inline void apply(const Tridiagonal &of, Index first, const double *v, double *w) {
    for (Index i = first; i < of.n; ++i) { // w = A v
        const double *row = of.matrix + i * of.n;
        w[i] = row[i] * v[i] + add_and_multiply(v[i], row + first, v + first, w + first, i - first);
    }
    const double shift = 0.5 * product(v + first, w + first, of.n - first);
    for (Index i = first; i < of.n; ++i)
        w[i] -= shift * v[i];
    for (Index i = first; i < of.n; ++i) // A -= v w' + w v'
        add(-v[i], w + first, -w[i], v + first, of.matrix + i * of.n + first, i - first + 1);
}

} // namespace tridiagonal

// Replaces a matrix by its tridiagonal form. Throws OutOfTime.
inline void make_tridiagonal(const Tridiagonal &of, const Deadline *deadline) {
    std::vector<double> scratch(std::size_t(of.n), 0.0);
    for (Index k = 0; k < of.n; ++k) {
        require_time(deadline);
        double *v = of.matrix + k * of.n;
        of.diagonal[k] = v[k];
        for (Index i = k + 1; i < of.n; ++i)
            v[i] = of.matrix[i * of.n + k];
        of.beside[k] = tridiagonal::reflection(v + k + 1, of.n - k - 1);
        if (k + 1 < of.n && v[k + 1] != 0.0)
            tridiagonal::apply(of, k + 1, v, scratch.data());
    }
}

// Replaces each of `count` vectors [count, n] by its product with Q, given the matrix of
// `make_tridiagonal`. Throws OutOfTime.
inline void multiply_by_reflections(const double *matrix, Index n, double *vectors, Index count,
                                    const Deadline *deadline) {
    constexpr Index together = 8; // vectors that stay in the cache
    for (Index first = 0; first < count; first += together) {
        require_time(deadline);
        for (Index k = n - 1; k >= 0; --k)
            for (Index r = first; r < std::min(first + together, count); ++r) {
                const double *v = matrix + k * n + k + 1;
                double *own = vectors + r * n + k + 1;
                tridiagonal::add(-tridiagonal::product(v, own, n - k - 1), v, own, n - k - 1);
            }
    }
}

} // namespace softmap
