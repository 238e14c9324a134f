// The model as given, in float64, and its conversion to fixed-point integers.
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "types.hpp"

namespace softmap::exact {

// Factors have two or more variables. Tables are row-major and contiguous.
struct Input {
    std::span<const std::int64_t> num_labels;
    std::span<const double> unary;
    std::span<const std::int64_t> scope_start;
    std::span<const std::int64_t> scope;
    std::span<const double> tables;
    double constant = 0.0;
    std::span<const double> lam; // one block of labels per entry of `scope`; may be empty
    std::span<const std::int64_t> incumbent; // may be empty

    int n() const { return static_cast<int>(num_labels.size()); }
    int num_factors() const { return static_cast<int>(scope_start.size()) - 1; }
    std::int64_t table_size(int f) const {
        std::int64_t size = 1;
        for (auto k = scope_start[f]; k < scope_start[f + 1]; ++k)
            size *= num_labels[scope[k]];
        return size;
    }
    // Index of the labels x of its variables in the table of factor f.
    std::int64_t state(int f, std::span<const std::int64_t> x) const {
        std::int64_t index = 0;
        for (auto k = scope_start[f]; k < scope_start[f + 1]; ++k)
            index = index * num_labels[scope[k]] + x[scope[k]];
        return index;
    }
    // Index of the first entry of each table, and of the end.
    std::vector<std::int64_t> table_starts() const {
        std::vector<std::int64_t> out(num_factors() + 1, 0);
        for (int f = 0; f < num_factors(); ++f)
            out[f + 1] = out[f] + table_size(f);
        return out;
    }
};

// Calls a function with every cost term of a labelling.
template <class Body>
void each_term(const Input &in, std::span<const std::int64_t> x, Body &&body) {
    body(in.constant);
    std::int64_t at = 0;
    for (int i = 0; i < in.n(); ++i) {
        body(in.unary[at + x[i]]);
        at += in.num_labels[i];
    }
    at = 0;
    for (int f = 0; f < in.num_factors(); ++f) {
        body(in.tables[at + in.state(f, x)]);
        at += in.table_size(f);
    }
}

// Energy of a labelling from the given costs; +inf if it violates a hard constraint.
inline double energy(const Input &in, std::span<const std::int64_t> x) {
    long double total = 0;
    each_term(in, x, [&](double term) { total += term; });
    return static_cast<double>(total);
}

// A lower bound on the energy in real numbers: subtracts a bound on the rounding error of the sum,
// which is proportional to the sum of absolute values.
inline double energy_from_below(const Input &in, std::span<const std::int64_t> x) {
    long double total = 0, size = 0;
    int terms = 1;
    each_term(in, x, [&](double term) {
        total += term;
        size += std::fabs(term);
        ++terms;
    });
    const long double ulp = std::numeric_limits<long double>::epsilon();
    const long double low = total - 2 * terms * ulp * size;
    return std::nextafter(static_cast<double>(low), -INFINITY);
}

// cost = unit * integer, with unit = granule / steps. If all costs are multiples of `granule`
// (`integral`), the integer cost of every labelling is a multiple of `steps`. Otherwise costs are
// rounded down, so that the sum of integer costs is a lower bound.
struct Scale {
    int exponent = 0;    // unit = factor * 2^exponent
    double factor = 1.0; // the granule; 1 unless integral
    Cost steps = 1;      // integer cost of one granule
    bool integral = false;
    double slack = 0.0;  // largest decrease of an energy by rounding down
    double spread = 0.0; // largest cost above the sum of minima of a labelling of interest

    // The integer cost, rounded down; finite values only.
    double units(double c) const {
        const double granules = factor == 1.0 ? c : c / factor;
        // a product with a power of two, as `ldexp`
        const double exact =
            exponent > -1000 && exponent < 1000
                ? granules * std::bit_cast<double>(std::int64_t{1023 - exponent} << 52)
                : std::ldexp(granules, -exponent);
        // the quotient of a small negative cost and a large unit underflows to 0
        return exact == 0.0 && granules < 0.0 ? -1.0 : std::floor(exact);
    }
};

// Returns the smallest unit for which nothing overflows. `upper` is the energy of a labelling, or
// +inf.
Scale choose_scale(const Input &in, double upper, int threads);

// base + unit * value, rounded down to float64.
double to_double(Wide value, const Scale &scale, double base);

} // namespace softmap::exact
