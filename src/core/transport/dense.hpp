// Messages along one edge with a large dense table, for one instruction set.
//
// The table is read in rows in both directions, and twice: once for the minimum, once for the sum
// of exponentials relative to it. Columns are taken in strips that fit into a cache.
#pragma once

#include "base/layout.hpp"

#include <algorithm>

namespace softmap {

struct DenseTable {
    const double *cost; // row-major
    double weight;
    Index rows, cols;
};

namespace detail {
// Calls f<W>(y) for the labels first..last-1, W at a time.
template <class Function>
SOFTMAP_IN_LINE inline void by_packs(Index first, Index last, Function f) {
    Index y = first;
    for (; y + lanes <= last; y += lanes)
        f.template operator()<lanes>(y);
    for (; y < last; ++y)
        f.template operator()<1>(y);
}

// out[x] = min over y of b[y] + C(x, y), soft at finite η.
inline void to_rows(const DenseTable &t, const double *b, double *out, double eta) {
    for (Index x = 0; x < t.rows; ++x) {
        const double *row = t.cost + x * t.cols;
        const auto value = [&]<int W>(Index y) __attribute__((always_inline)) {
            return fused(Pack<W>(t.weight), Pack<W>::load(row + y), Pack<W>::load(b + y));
        };
        Pack<lanes> best(infinity);
        double low = infinity;
        by_packs(0, t.cols, [&]<int W>(Index y) {
            if constexpr (W == 1)
                low = std::min(low, value.template operator()<1>(y).part[0]);
            else
                best = smaller(value.template operator()<W>(y), best);
        });
        low = std::min(low, -largest(0.0 - best));
        out[x] = low;
        if (eta == infinity)
            continue;
        Pack<lanes> mass(0.0);
        double rest = 0.0;
        by_packs(0, t.cols, [&]<int W>(Index y) {
            const Pack<W> one =
                exp(Pack<W>(-eta) * (value.template operator()<W>(y) - Pack<W>(low)));
            if constexpr (W == 1)
                rest += one.part[0];
            else
                mass += one;
        });
        out[x] -= log_one(total(mass) + rest) / eta;
    }
}

// out[y] = min over x of a[x] + C(x, y), soft at finite η. `room` has `strip` entries.
inline constexpr Index strip = 256;
inline void to_cols(const DenseTable &t, const double *a, double *out, double *room, double eta) {
    for (Index first = 0; first < t.cols; first += strip) {
        const Index last = std::min(first + strip, t.cols);
        const auto value = [&]<int W>(Index x, Index y) __attribute__((always_inline)) {
            return fused(Pack<W>(t.weight), Pack<W>::load(t.cost + x * t.cols + y), Pack<W>(a[x]));
        };
        std::fill(out + first, out + last, infinity);
        for (Index x = 0; x < t.rows; ++x)
            by_packs(first, last, [&]<int W>(Index y) {
                smaller(value.template operator()<W>(x, y), Pack<W>::load(out + y)).store(out + y);
            });
        if (eta == infinity)
            continue;
        std::fill(room, room + (last - first), 0.0);
        for (Index x = 0; x < t.rows; ++x)
            by_packs(first, last, [&]<int W>(Index y) {
                const Pack<W> above = value.template operator()<W>(x, y) - Pack<W>::load(out + y);
                double *sum = room + (y - first);
                (Pack<W>::load(sum) + exp(Pack<W>(-eta) * above)).store(sum);
            });
        for (Index y = first; y < last; ++y)
            out[y] -= log_one(room[y - first]) / eta;
    }
}

// out[x] = Σ over y of matrix[x, y] · mass[y].
template <class T>
void sums_of_cols(const T *matrix, Index rows, Index cols, const double *mass, double *out) {
    for (Index x = 0; x < rows; ++x) {
        double sum = 0.0;
        Pack<lanes> parts(0.0);
        by_packs(0, cols, [&]<int W>(Index y) {
            const Pack<W> one = Pack<W>::load(matrix + x * cols + y) * Pack<W>::load(mass + y);
            if constexpr (W == 1)
                sum += one.part[0];
            else
                parts += one;
        });
        out[x] = sum + total(parts);
    }
}

// out[y] = Σ over x of mass[x] · matrix[x, y].
template <class T>
void sum_of_rows(const T *matrix, Index rows, Index cols, const double *mass, double *out) {
    std::fill(out, out + cols, 0.0);
    for (Index x = 0; x < rows; ++x)
        by_packs(0, cols, [&]<int W>(Index y) {
            const Pack<W> one = Pack<W>::load(matrix + x * cols + y) * Pack<W>(mass[x]);
            (one + Pack<W>::load(out + y)).store(out + y);
        });
}
} // namespace detail

// The message into the columns (receiver 1) or the rows (receiver 0) from costs at the other side.
inline void table_message(const DenseTable &t, int receiver, const double *from, double *out,
                          double eta) {
    double room[detail::strip];
    receiver == 1 ? detail::to_cols(t, from, out, room, eta) : detail::to_rows(t, from, out, eta);
}

} // namespace softmap
