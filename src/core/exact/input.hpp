// The model as given, in float64, and its conversion to fixed-point integers.
#pragma once

#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <span>

#include "base/team.hpp"
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
        if (exponent > -1000 && exponent < 1000) // a product with a power of two, as `ldexp`
            return std::floor(granules *
                              std::bit_cast<double>(std::int64_t{1023 - exponent} << 52));
        return std::floor(std::ldexp(granules, -exponent));
    }
};

namespace detail {

struct Survey {
    // Sums over blocks of the smallest cost and of its absolute value.
    long double lowest = 0.0, sizes = 0.0;
    double ranges = 0.0, largest_min = 0.0;
    bool integers = true;
    std::uint64_t gcd = 0;
    int blocks = 0;
    bool feasible = true;

    // Adds a block by its smallest and its largest cost.
    void block(double lo, double hi) {
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

// The smallest and the largest finite cost of a block, and the granule of all costs so far.
struct Reading {
    double lo = INFINITY, hi = -INFINITY;

    Reading(std::span<const double> costs, bool &integers, std::uint64_t &gcd) {
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
    }
};

// Reads all costs on `threads` threads. Blocks are added up in their order, whatever the number.
inline Survey survey(const Input &in, int threads) {
    Survey s;
    std::int64_t at = 0;
    for (int i = 0; i < in.n(); ++i) {
        const Reading r(in.unary.subspan(at, in.num_labels[i]), s.integers, s.gcd);
        s.block(r.lo, r.hi);
        at += in.num_labels[i];
    }
    const auto start = in.table_starts();
    std::vector<double> lo(in.num_factors()), hi(in.num_factors());
    std::mutex mutex;
    const bool integral = s.integers;
    split(threads, in.num_factors(), [&](Index first, Index last) {
        bool integers = integral;
        std::uint64_t gcd = 0;
        for (Index f = first; f < last; ++f) {
            const Reading r(in.tables.subspan(start[f], start[f + 1] - start[f]), integers, gcd);
            lo[f] = r.lo;
            hi[f] = r.hi;
        }
        const std::lock_guard lock(mutex);
        s.integers = s.integers && integers;
        s.gcd = std::gcd(s.gcd, gcd);
    });
    for (int f = 0; f < in.num_factors(); ++f)
        s.block(lo[f], hi[f]);
    return s;
}

} // namespace detail

inline constexpr int SPREAD_BITS = 46;

// Returns the smallest unit for which nothing overflows. `upper` is the energy of a labelling, or
// +inf.
inline Scale choose_scale(const Input &in, double upper, int threads) {
    const auto s = detail::survey(in, threads);
    Scale scale;
    double spread = s.ranges;
    if (std::isfinite(upper)) {
        // an upper bound on upper - lowest in real numbers: both are rounded sums
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
