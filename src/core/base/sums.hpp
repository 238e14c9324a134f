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
double exact_sum(const double *values, Index count);

// Whether every real number within `slack` of sum + rest rounds to `sum`.
inline bool rounds_to(double sum, double rest, double slack) {
    const double size = std::abs(sum);
    return std::abs(rest) + slack < 0.5 * (size - next_below(size));
}

// A sum and the errors of its additions: the exact sum is total + Σ errors. `errors` is their
// computed sum and `sizes` that of their absolute values; NaN if a value or a sum is not finite.
struct Compensated {
    double total = 0.0, errors = 0.0, sizes = 0.0;

    void add(double value) {
        const double sum = total + value;
        const double error = error_of(total, value, sum);
        errors += error;
        sizes += std::abs(error);
        total = sum;
    }

    // Adds the sum of other values. The errors of `n` additions are still added in some order, so
    // that their computed sum is off by at most n u · sizes, to first order.
    void add(const Compensated &other) {
        add(other.total);
        errors += other.errors;
        sizes += other.sizes;
    }
};

// Σ values, rounded once, given their compensated sum: the result does not depend on the order of
// the values. `exact()` is called if the compensated sum does not determine the result.
template <class Exact> double rounded_once(const Compensated &sum, Index count, Exact exact) {
    if (!(sum.errors == sum.errors))
        return sum.total; // infinite or NaN, as plain addition gives it
    const double near = sum.total + sum.errors;
    const double slack = 2.0 * double(count + 2) * unit * sum.sizes;
    if (sum.sizes == 0.0 || rounds_to(near, error_of(sum.total, sum.errors, near), slack))
        return near;
    return exact();
}

// Σ values, rounded once.
double careful_sum(const double *values, Index count);

// Accumulates a lower bound on Σ values. It is +inf only if some value is +inf and none is NaN or
// -inf.
class LowerSum {
  public:
    void add(double value) {
        ++terms_;
        if (value == infinity)
            infinite_ = true;
        else
            sum_.add(value); // -inf or NaN makes the errors NaN for good
    }
    void add(const LowerSum &other) {
        terms_ += other.terms_ + 1;
        infinite_ = infinite_ || other.infinite_;
        sum_.add(other.sum_);
    }
    double value() const {
        const double sum = lower(sum_.total, sum_.errors, sum_.sizes, terms_);
        return infinite_ && sum > -infinity ? infinity : sum;
    }

  private:
    Compensated sum_;
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
