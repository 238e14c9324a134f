// The semidefinite bound of quadratic functions of spins: unit vectors that stand for spins,
// triangle inequalities, and Cholesky factors.
//
// min Σ_ij C_ij <v_i, v_j> over unit vectors, where C has no diagonal, is solved one vector at a
// time (v_i = -g / |g|, g = Σ_j C_ij v_j). Spins obey 1 + s x_i x_j + t x_i x_k + s t x_j x_k >= 0
// for all three spins and signs s, t; inequalities of vectors that are violated get multipliers.
#pragma once

#include "base/deadline.hpp"
#include "base/lanes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace softmap {

// Rows of a symmetric matrix without a diagonal, of which only some entries are stored.
struct SpinRows {
    Index n;
    const Index *start, *column;
    const double *weight;
};

// Triangles (i < j < k, signs 0..3) with their multipliers, over a full matrix.
struct SpinTriangles {
    Index n, count;
    const double *matrix; // n x n
    const Index *triangle;
    double *multiplier, *average;
    double penalty, keep; // of violated triangles; weight of earlier multipliers in the average
};

namespace spins {

inline constexpr Index most_chunks = 8; // vectors have up to 64 entries, in chunks of `lanes`
inline constexpr double signs[4][3] = {{1, 1, 1}, {1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}};

// Calls run(integral constant c) for c = chunks, so that the chunks of a vector stay in registers.
template <class Run, int c = 1> void with_chunks(Index chunks, Run run) {
    if constexpr (c == most_chunks)
        run(std::integral_constant<int, c>{});
    else if (chunks == c)
        run(std::integral_constant<int, c>{});
    else
        with_chunks<Run, c + 1>(chunks, run);
}

// Replaces vector i by -g / |g|, where add(gather) calls gather(j, weight) for each term of g.
template <int c, class Add> void replace_vector(double *vectors, Index i, Add add) {
    constexpr Index rank = c * lanes;
    Pack<lanes> g[c];
    for (int p = 0; p < c; ++p)
        g[p] = Pack<lanes>(0.0);
    add([&](Index j, double weight) __attribute__((always_inline)) {
        const double *other = vectors + j * rank;
        for (int p = 0; p < c; ++p)
            g[p] = fused(Pack<lanes>(weight), Pack<lanes>::load(other + p * lanes), g[p]);
    });
    Pack<lanes> squares(0.0);
    for (int p = 0; p < c; ++p)
        squares = fused(g[p], g[p], squares);
    const double size = std::sqrt(total(squares));
    if (!(size > 1e-280))
        return;
    for (int p = 0; p < c; ++p)
        (g[p] * Pack<lanes>(-1.0 / size)).store(vectors + i * rank + p * lanes);
}

template <int c> double inner_product(const double *a, const double *b) {
    Pack<lanes> sum(0.0);
    for (int p = 0; p < c; ++p)
        sum = fused(Pack<lanes>::load(a + p * lanes), Pack<lanes>::load(b + p * lanes), sum);
    return total(sum);
}

} // namespace spins

// Makes sweeps over all vectors; returns how many were completed before the deadline.
inline Index mix(const SpinRows &rows, double *vectors, Index rank, Index sweeps, Meter &meter) {
    Index done = 0;
    spins::with_chunks(rank / lanes, [&](auto chunks) {
        for (; done < sweeps; ++done)
            for (Index i = 0; i < rows.n; ++i) {
                if (meter.tick(rows.start[i + 1] - rows.start[i]))
                    return;
                spins::replace_vector<chunks>(vectors, i, [&](auto gather) {
                    for (Index e = rows.start[i]; e < rows.start[i + 1]; ++e)
                        gather(rows.column[e], rows.weight[e]);
                });
            }
    });
    return done;
}

// Augmented Lagrangian steps: each is a sweep with the multipliers that the violations of all
// triangles suggest, and then these multipliers. Returns the number of completed steps.
class TriangleSteps {
  public:
    TriangleSteps(const SpinTriangles &of, double *vectors, Index rank)
        : of_(of), vectors_(vectors), rank_(rank), gram_(std::size_t(of.n * of.n)),
          matrix_(gram_.size()) {}

    Index run(Index steps, Meter &meter) {
        Index done = 0;
        spins::with_chunks(rank_ / lanes, [&](auto chunks) {
            multiply<chunks>(meter);
            for (; done < steps && !meter.late(); ++done)
                step<chunks>(meter);
        });
        return meter.late() ? std::max<Index>(0, done - 1) : done;
    }

  private:
    template <int c> void step(Meter &meter) {
        const Index n = of_.n;
        std::copy_n(of_.matrix, n * n, matrix_.data());
        for (Index t = 0; t < of_.count; ++t)
            subtract(t, suggested(t));
        for (Index i = 0; i < n; ++i) {
            if (meter.tick(n))
                return;
            const double *row = matrix_.data() + i * n;
            spins::replace_vector<c>(vectors_, i, [&](auto gather) {
                for (Index j = 0; j < n; ++j)
                    gather(j, row[j]);
            });
        }
        multiply<c>(meter);
        if (meter.late()) // products of old and new vectors suggest no multipliers
            return;
        for (Index t = 0; t < of_.count; ++t) {
            of_.multiplier[t] = suggested(t);
            of_.average[t] = of_.keep * of_.average[t] + (1.0 - of_.keep) * of_.multiplier[t];
        }
    }

    template <int c> void multiply(Meter &meter) {
        const Index n = of_.n;
        for (Index i = 0; i < n && !meter.tick(i); ++i)
            for (Index j = 0; j < i; ++j)
                gram_[j * n + i] =
                    spins::inner_product<c>(vectors_ + i * rank_, vectors_ + j * rank_);
    }

    double suggested(Index t) const {
        const Index *at = of_.triangle + 4 * t, n = of_.n;
        const double *s = spins::signs[at[3]];
        const double slack = 1.0 + s[0] * gram_[at[0] * n + at[1]] +
                             s[1] * gram_[at[0] * n + at[2]] + s[2] * gram_[at[1] * n + at[2]];
        return std::max(0.0, of_.multiplier[t] - of_.penalty * slack);
    }

    void subtract(Index t, double multiplier) {
        if (multiplier == 0.0)
            return;
        const Index *at = of_.triangle + 4 * t, n = of_.n;
        for (int p = 0; p < 3; ++p) {
            const Index i = at[p == 2], j = at[p == 0 ? 1 : 2];
            const double change = 0.5 * multiplier * spins::signs[at[3]][p];
            matrix_[i * n + j] -= change;
            matrix_[j * n + i] -= change;
        }
    }

    const SpinTriangles of_;
    double *vectors_;
    const Index rank_;
    std::vector<double> gram_, matrix_; // the upper triangle of the products; of this step
};

// The `most` triangles that the products of vectors (n x n) violate most, by more than `least`.
inline std::vector<Index> violated_triangles(const double *gram, Index n, double least, Index most,
                                             Meter &meter) {
    struct Found {
        double violation;
        Index i, j, k;
        bool operator<(const Found &other) const { return violation > other.violation; }
    };
    std::vector<Found> heap;
    const auto offer = [&](const Found &found) {
        if (Index(heap.size()) < most) {
            heap.push_back(found);
            std::push_heap(heap.begin(), heap.end());
        } else if (found.violation > heap.front().violation) {
            std::pop_heap(heap.begin(), heap.end());
            heap.back() = found;
            std::push_heap(heap.begin(), heap.end());
        }
        if (Index(heap.size()) == most)
            least = heap.front().violation;
    };
    const auto violation = [](auto a, auto b, auto d) {
        return greatest(size_of(b + d) - a, size_of(b - d) + a) - decltype(a)(1.0);
    };
    const auto try_all = [&](Index i, Index j) {
        const double *first = gram + i * n, *second = gram + j * n;
        const Pack<lanes> a(first[j]);
        Index k = j + 1;
        for (; k + lanes <= n; k += lanes) {
            const auto v =
                violation(a, Pack<lanes>::load(first + k), Pack<lanes>::load(second + k));
            if (largest(v) > least)
                v.each(lanes, [&](int lane, double value) {
                    if (value > least)
                        offer({value, i, j, k + lane});
                });
        }
        for (; k < n; ++k) {
            const Pack<1> v = violation(Pack<1>(first[j]), Pack<1>(first[k]), Pack<1>(second[k]));
            if (v.part[0] > least)
                offer({v.part[0], i, j, k});
        }
    };
    for (Index i = 0; i < n && !meter.late(); ++i)
        for (Index j = i + 1; j < n && !meter.tick(n - j); ++j)
            try_all(i, j);
    std::vector<Index> out;
    for (const Found &found : heap) {
        const double a = gram[found.i * n + found.j], b = gram[found.i * n + found.k],
                     d = gram[found.j * n + found.k];
        const Index one = b + d < 0.0 ? 0 : 1, other = b - d < 0.0 ? 2 : 3;
        const bool first = std::abs(b + d) - a > std::abs(b - d) + a;
        out.insert(out.end(), {found.i, found.j, found.k, first ? one : other});
    }
    return out;
}

// Replaces the lower triangle of a symmetric matrix by its Cholesky factor, in blocks of columns.
// Returns false at a pivot that is not positive. Throws OutOfTime.
class Cholesky {
  public:
    Cholesky(double *matrix, Index n)
        : a_(matrix), n_(n), panel_(std::size_t(block * (n + lanes))) {}

    bool run(const Deadline *deadline) {
        for (Index first = 0; first < n_; first += block) {
            const Index last = std::min(first + block, n_);
            for (Index i = first; i < n_; ++i) {
                if (!row(i, first, last))
                    return false;
                if (i % 64 == 0)
                    require_time(deadline);
            }
            for (Index i = last; i < n_; i += tile) {
                update(i, first, last);
                if (i % 64 == 0)
                    require_time(deadline);
            }
        }
        return true;
    }

  private:
    static constexpr Index block = 64, tile = 4;

    // Row i of the factor in the columns first..last-1, and the same in the transposed panel.
    bool row(Index i, Index first, Index last) {
        double *own = a_ + i * n_;
        for (Index j = first; j < std::min(last, i + 1); ++j) {
            const double *other = a_ + j * n_;
            double sum = own[j];
            for (Index k = first; k < j; ++k)
                sum -= own[k] * other[k];
            if (i == j && !(sum > 0.0))
                return false;
            own[j] = i == j ? std::sqrt(sum) : sum / other[j];
        }
        for (Index k = first; k < last && i >= last; ++k)
            panel_[(k - first) * (n_ + lanes) + i] = own[k];
        return true;
    }

    // Subtracts the products of the panel from up to four rows, up to the diagonal.
    void update(Index i, Index first, Index last) {
        const Index rows = std::min(tile, n_ - i), stride = n_ + lanes;
        const double *from[tile];
        for (Index r = 0; r < tile; ++r)
            from[r] = a_ + std::min(i + r, n_ - 1) * n_ + first;
        for (Index j = last; j < i + rows; j += lanes) {
            Pack<lanes> sum[tile];
            for (Index r = 0; r < tile; ++r)
                sum[r] = Pack<lanes>(0.0);
            for (Index k = 0; k < last - first; ++k) {
                const auto column = Pack<lanes>::load(panel_.data() + k * stride + j);
                for (Index r = 0; r < tile; ++r)
                    sum[r] = fused(Pack<lanes>(from[r][k]), column, sum[r]);
            }
            for (Index r = 0; r < rows; ++r)
                sum[r].each(int(std::min<Index>(lanes, n_ - j)),
                            [&](int lane, double value) { a_[(i + r) * n_ + j + lane] -= value; });
        }
    }

    double *a_;
    const Index n_;
    std::vector<double> panel_;
};

} // namespace softmap
