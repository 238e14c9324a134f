// The model as given, in float64, and its conversion to fixed-point integers.
#pragma once

#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "types.hpp"

namespace softmap::exact {

// Factors have two or more variables; tables are row-major, one after the other.
struct Input {
    std::span<const std::int64_t> num_labels;
    std::span<const double> unary;
    std::span<const std::int64_t> scope_start;
    std::span<const std::int64_t> scope;
    std::span<const double> tables;
    double constant = 0.0;
    std::span<const double> lam;             // per scope entry one block of labels; may be empty
    std::span<const std::int64_t> incumbent; // may be empty

    int n() const { return static_cast<int>(num_labels.size()); }
    int num_factors() const { return static_cast<int>(scope_start.size()) - 1; }
    std::int64_t table_size(int f) const {
        std::int64_t size = 1;
        for (auto k = scope_start[f]; k < scope_start[f + 1]; ++k)
            size *= num_labels[scope[k]];
        return size;
    }
};

// Calls body(cost) for each cost term of the labelling x.
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
        std::int64_t index = 0;
        for (auto k = in.scope_start[f]; k < in.scope_start[f + 1]; ++k)
            index = index * in.num_labels[in.scope[k]] + x[in.scope[k]];
        body(in.tables[at + index]);
        at += in.table_size(f);
    }
}

// Energy of a labelling from the given costs; +inf if it violates a hard constraint.
inline double energy(const Input &in, std::span<const std::int64_t> x) {
    long double total = 0;
    each_term(in, x, [&](double term) { total += term; });
    return static_cast<double>(total);
}

// Lower bound on the exact energy: the rounding error of each addition is at most a small fraction
// of the sum of the absolute values so far.
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

// cost = unit * integer, with unit = granule / steps; every labelling's integer cost is a multiple
// of `steps` when all costs are multiples of `granule` (`integral`). Otherwise costs are rounded
// down, so that integer costs, summed, never exceed the true ones.
struct Scale {
    int exponent = 0;    // unit = factor * 2^exponent
    double factor = 1.0; // the granule; 1 unless integral
    Cost steps = 1;      // integer cost of one granule
    bool integral = false;
    double slack = 0.0;  // largest decrease of an energy by rounding down
    double spread = 0.0; // labellings that exceed the minima by more are not searched for

    // The integer cost, rounded down; finite values only.
    double units(double c) const { return std::floor(std::ldexp(c / factor, -exponent)); }
};

namespace detail {

struct Survey {
    long double lowest = 0.0, sizes = 0.0; // Σ over blocks of the minimum, and of |minimum|
    double ranges = 0.0, largest_min = 0.0;
    bool integers = true;
    std::uint64_t gcd = 0;
    int blocks = 0;
    bool feasible = true;

    void block(std::span<const double> costs) {
        double lo = INFINITY, hi = -INFINITY;
        for (double c : costs) {
            if (!std::isfinite(c))
                continue;
            lo = std::min(lo, c);
            hi = std::max(hi, c);
            if (integers && c == std::floor(c) && std::fabs(c) < 9e15)
                gcd = std::gcd(gcd, static_cast<std::uint64_t>(std::fabs(c)));
            else
                integers = false;
        }
        if (hi < lo) {
            feasible = false;
            return;
        }
        lowest += lo;
        sizes += std::fabs(lo);
        ranges += hi - lo;
        largest_min = std::max(largest_min, std::fabs(lo));
        blocks += hi > lo || lo != 0.0;
    }
};

inline Survey survey(const Input &in) {
    Survey s;
    std::int64_t at = 0;
    for (int i = 0; i < in.n(); ++i) {
        s.block(in.unary.subspan(at, in.num_labels[i]));
        at += in.num_labels[i];
    }
    at = 0;
    for (int f = 0; f < in.num_factors(); ++f) {
        const auto size = in.table_size(f);
        s.block(in.tables.subspan(at, size));
        at += size;
    }
    return s;
}

} // namespace detail

inline constexpr int SPREAD_BITS = 46;

// The smallest unit without overflow. `upper` is the energy of a labelling, or +inf.
inline Scale choose_scale(const Input &in, double upper) {
    const auto s = detail::survey(in);
    Scale scale;
    double spread = s.ranges;
    if (std::isfinite(upper)) {
        // upper bound on the exact upper - lowest: both are rounded sums
        const long double above = upper - (s.lowest + in.constant);
        const long double sizes = s.sizes + std::fabs(in.constant) + std::fabs(above);
        const long double ulp = std::numeric_limits<long double>::epsilon();
        const long double doubt = 4 * (s.blocks + 2) * ulp * sizes + 0x1p-51L * std::fabs(upper);
        const auto most = static_cast<double>(above * (1 + 1e-12L) + doubt);
        spread = std::min(spread, std::nextafter(most, INFINITY));
    }
    spread = std::max(spread, 0.0);
    scale.spread = spread;
    const double granule = s.gcd == 0 ? 1.0 : static_cast<double>(s.gcd);
    if (s.integers && spread / granule < 0x1p46 && s.largest_min < 0x1p52) {
        scale.integral = true;
        scale.factor = granule;
        while (scale.steps < 1024 && spread / granule * static_cast<double>(scale.steps) < 0x1p43) {
            scale.steps *= 2;
            --scale.exponent;
        }
        return scale;
    }
    const double top = std::max(spread, s.largest_min * 0x1p-50); // 2^96 units fit the base
    scale.exponent = top > 0 ? std::ilogb(top) + 1 - SPREAD_BITS : 0;
    scale.slack = std::ldexp(static_cast<double>(s.blocks), scale.exponent);
    return scale;
}

// base + unit * value, rounded down to float64.
inline double to_double(Wide value, const Scale &scale, double base) {
    long double v = static_cast<long double>(value);
    if (static_cast<Wide>(v) > value)
        v = std::nextafter(v, -INFINITY);
    v = std::ldexp(v, scale.exponent);
    if (scale.factor != 1.0) // integers below 2^63: exact
        v *= scale.factor;
    const long double b = base, s = v + b;
    const long double part = s - v;
    const long double error = (v - (s - part)) + (b - part);
    const long double lower = error < 0 ? std::nextafter(s, -INFINITY) : s;
    double r = static_cast<double>(lower);
    if (static_cast<long double>(r) > lower)
        r = std::nextafter(r, -INFINITY);
    return r;
}

} // namespace softmap::exact
