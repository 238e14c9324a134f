// Compensated sums, and sums that are at most the exact sum.
//
// The error e of an addition t' = fl(t + v) is itself a double (Knuth's TwoSum), so that
// Σ v = t + Σ e exactly. The computed sum of n errors is off by at most n u Σ|e|, u = 2⁻⁵³, which
// is of second order; `lower` subtracts twice that and rounds down. This file must not be compiled
// with reassociation (-ffast-math) or contraction. The only products, those in `lower`, are each
// rounded by at most u, which the factor of two covers.
#pragma once

#include "layout.hpp"

#include <bit>
#include <cmath>
#include <vector>

namespace softmap {

inline constexpr double unit = 0x1p-53; // u: largest relative error of one rounding to nearest

// The largest double below x; x itself if it is not finite.
inline double next_below(double x) {
    if (!(std::abs(x) < infinity))
        return x;
    if (x == 0.0)
        return -std::numeric_limits<double>::denorm_min();
    const auto bits = std::bit_cast<std::int64_t>(x);
    return std::bit_cast<double>(bits + (x > 0.0 ? -1 : 1));
}

// The smallest double above x; x itself if it is not finite.
inline double next_above(double x) { return -next_below(-x); }

// a + b - sum for sum = fl(a + b), exactly (TwoSum); NaN if the sum overflows.
inline double error_of(double a, double b, double sum) {
    const double part = sum - a;
    return (a - (sum - part)) + (b - part);
}

// A lower bound on total + Σ errors, given errors = fl(Σ errors) and sizes = fl(Σ |errors|) of
// `terms` additions; -inf if a sum overflowed. It is at most one unit in the last place too low,
// unless total and errors nearly cancel.
inline double lower(double total, double errors, double sizes, Index terms) {
    const double rest = errors - 2.0 * double(terms + 2) * unit * sizes;
    const double sum = total + rest;
    const double error = error_of(total, rest, sum);
    if (!(error == error)) // the error is NaN also if total is NaN or infinite
        return -infinity;
    return error < 0.0 ? next_below(sum) : sum;
}

// Σ values, rounded once. Keeps a list of partial sums that do not overlap, in ascending order of
// magnitude (Shewchuk 1997). Slow.
[[gnu::noinline]] inline double exact_sum(const double *values, Index count) {
    std::vector<double> parts;
    for (Index k = 0; k < count; ++k) {
        double value = values[k];
        std::size_t kept = 0;
        for (const double part : parts) {
            const double sum = value + part;
            const double error = error_of(value, part, sum);
            if (error != 0.0)
                parts[kept++] = error;
            value = sum;
        }
        parts.resize(kept);
        parts.push_back(value);
    }
    double total = 0.0, error = 0.0;
    std::size_t left = parts.size();
    while (left > 0 && error == 0.0) {
        const double part = parts[--left], sum = total + part;
        error = error_of(total, part, sum);
        total = sum;
    }
    // if the sum is halfway between two doubles, the sign of the remaining part decides
    if (left > 0 && error != 0.0 && (error < 0.0) == (parts[left - 1] < 0.0)) {
        const double next = total + 2.0 * error;
        if (next - total == 2.0 * error)
            total = next;
    }
    return total;
}

// Whether every real number within `slack` of sum + rest rounds to `sum`.
inline bool rounds_to(double sum, double rest, double slack) {
    const double size = std::abs(sum);
    return std::abs(rest) + slack < 0.5 * (size - next_below(size));
}

// Σ values, rounded once: the result does not depend on the order of the values.
[[gnu::noinline]] inline double careful_sum(const double *values, Index count) {
    double total = 0.0, errors = 0.0, sizes = 0.0;
    for (Index k = 0; k < count; ++k) {
        const double sum = total + values[k];
        const double error = error_of(total, values[k], sum);
        errors += error;
        sizes += std::abs(error);
        total = sum;
    }
    if (!(errors == errors))
        return total; // infinite or NaN, as plain addition gives it
    const double sum = total + errors, slack = 2.0 * double(count + 2) * unit * sizes;
    if (sizes == 0.0 || rounds_to(sum, error_of(total, errors, sum), slack))
        return sum;
    return exact_sum(values, count);
}

// Accumulates a lower bound on Σ values. It is +inf only if some value is +inf and none is NaN or
// -inf.
class LowerSum {
  public:
    void add(double value) {
        ++terms_;
        if (value == infinity) {
            infinite_ = true;
            return;
        }
        const double sum = total_ + value; // -inf or NaN makes errors_ NaN for good
        const double error = error_of(total_, value, sum);
        errors_ += error;
        sizes_ += std::abs(error);
        total_ = sum;
    }
    double value() const {
        const double sum = lower(total_, errors_, sizes_, terms_);
        return infinite_ && sum > -infinity ? infinity : sum;
    }

  private:
    double total_ = 0.0, errors_ = 0.0, sizes_ = 0.0;
    Index terms_ = 0;
    bool infinite_ = false;
};

inline double lower_sum(const double *values, Index count) {
    LowerSum sum;
    for (Index k = 0; k < count; ++k)
        sum.add(values[k]);
    return sum.value();
}

} // namespace softmap
