// The unit of the integer costs of a model.
#include "input.hpp"

#include "base/team.hpp"

#include <mutex>
#include <numeric>

namespace softmap::exact {

namespace {

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
Survey survey(const Input &in, int threads) {
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

constexpr int SPREAD_BITS = 46;

} // namespace

Scale choose_scale(const Input &in, double upper, int threads) {
    const auto s = survey(in, threads);
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

double to_double(Wide value, const Scale &scale, double base) {
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
