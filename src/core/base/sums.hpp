// Sums that carry their rounding errors along, and sums that are certainly no larger than the
// truth.
//
// Each addition t' = fl(t + v) has an error e that is itself a number (Knuth's TwoSum), so that
// Σ v = t + Σ e exactly. Adding up n errors is wrong by at most n u Σ|e|, u = 2⁻⁵³, which is of
// second order; `lower` takes off twice that and rounds down. Nothing here may be compiled with
// reassociation (-ffast-math), and nothing is contracted: the only products, those of `lower`, are
// rounded by themselves, each by at most u, which the factor of two covers.
#pragma once

#include "layout.hpp"

#include <bit>
#include <cmath>
#include <vector>

namespace softmap {

inline constexpr double unit = 0x1p-53; // largest relative error of one rounding

// The greatest number below x; x itself if it is not finite.
inline double next_below(double x) {
    if (!(std::abs(x) < infinity))
        return x;
    if (x == 0.0)
        return -std::numeric_limits<double>::denorm_min();
    const auto bits = std::bit_cast<std::int64_t>(x);
    return std::bit_cast<double>(bits + (x > 0.0 ? -1 : 1));
}

// The least number above x; x itself if it is not finite.
inline double next_above(double x) { return -next_below(-x); }

// The error of sum = fl(a + b), exactly; NaN if the sum overflows.
inline double error_of(double a, double b, double sum) {
    const double part = sum - a;
    return (a - (sum - part)) + (b - part);
}

// A number no larger than total + Σ errors, given fl(Σ errors) and fl(Σ |errors|) of `terms`
// additions; -inf where something overflowed. At most one unit in the last place is lost, unless
// total and errors nearly cancel.
inline double lower(double total, double errors, double sizes, Index terms) {
    const double rest = errors - 2.0 * double(terms + 2) * unit * sizes;
    const double sum = total + rest;
    const double error = error_of(total, rest, sum);
    if (!(error == error)) // also where total is NaN or infinite
        return -infinity;
    return error < 0.0 ? next_below(sum) : sum;
}

// Σ values, rounded once. Partial sums that share no digits are kept, from the least to the
// greatest (Shewchuk 1997); slow.
inline double exact_sum(const double *values, Index count) {
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
    // halfway between two numbers, what is left decides
    if (left > 0 && error != 0.0 && (error < 0.0) == (parts[left - 1] < 0.0)) {
        const double next = total + 2.0 * error;
        if (next - total == 2.0 * error)
            total = next;
    }
    return total;
}

// Whether a number within `slack` of sum + rest rounds to sum.
inline bool rounds_to(double sum, double rest, double slack) {
    const double size = std::abs(sum);
    return std::abs(rest) + slack < 0.5 * (size - next_below(size));
}

// Σ values, rounded once, so that their order does not matter.
inline double careful_sum(const double *values, Index count) {
    double total = 0.0, errors = 0.0, sizes = 0.0;
    for (Index k = 0; k < count; ++k) {
        const double sum = total + values[k];
        const double error = error_of(total, values[k], sum);
        errors += error;
        sizes += std::abs(error);
        total = sum;
    }
    if (!(errors == errors))
        return total; // infinities stay what they are
    const double sum = total + errors, slack = 2.0 * double(count + 2) * unit * sizes;
    if (sizes == 0.0 || rounds_to(sum, error_of(total, errors, sum), slack))
        return sum;
    return exact_sum(values, count);
}

// A number certainly <= Σ values; +inf only if one of them is, and none is NaN or -inf.
class LowerSum {
  public:
    void add(double value) {
        ++terms_;
        if (value == infinity) {
            infinite_ = true;
            return;
        }
        const double sum = total_ + value; // -inf and NaN make the error NaN, which stays
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
