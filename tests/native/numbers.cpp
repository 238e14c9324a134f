// Rounding, exact sums, and the functions of lanes.
#include "base/lanes.hpp"
#include "base/rounding.hpp"
#include "base/sums.hpp"
#include "check.hpp"
#include "families/dense.hpp"

#include <algorithm>
#include <vector>

using namespace softmap;

namespace checks {
namespace {

using Whole = __int128;

// Whether value <= exact · 2^-60, exactly; value · 2^60 must not overflow.
bool at_most(double value, Whole exact) { return Whole(std::ceil(std::ldexp(value, 60))) <= exact; }

void sums() {
    Numbers numbers(1);
    for (int round = 0; round < 200; ++round) {
        const Index count = 1 + numbers.below(50);
        std::vector<double> values;
        Whole exact = 0;
        for (Index k = 0; k < count; ++k) {
            const int shift = int(numbers.below(40));
            values.push_back(std::ldexp(numbers.fraction(20), shift - 20));
            exact += Whole(std::ldexp(values.back(), 60));
        }
        const double low = lower_sum(values.data(), count);
        CHECK(at_most(low, exact));
        CHECK(!at_most(next_above(next_above(low)), exact) || low == 0.0);
        const double near = careful_sum(values.data(), count);
        CHECK(std::abs(near - low) <= 4 * unit * std::abs(near));
        LowerSum parts[3], whole; // in portions, as several threads sum
        for (Index k = 0; k < count; ++k)
            parts[k % 3].add(values[k]);
        for (const LowerSum &part : parts)
            whole.add(part);
        CHECK(at_most(whole.value(), exact));
        CHECK(std::abs(whole.value() - near) <= 4 * unit * std::abs(near));
    }
    const double with_infinity[] = {1.0, infinity}, with_both[] = {infinity, -infinity};
    CHECK(lower_sum(with_infinity, 2) == infinity);
    CHECK(lower_sum(with_both, 2) == -infinity);
    LowerSum endless, other, both;
    endless.add(infinity), other.add(-infinity);
    both.add(endless);
    CHECK(both.value() == infinity);
    both.add(other);
    CHECK(both.value() == -infinity);
}

template <int W> void fused_lanes() {
    Numbers numbers(2);
    for (int round = 0; round < 500; ++round) {
        const auto draw = [&](int) { return numbers.fraction(52); };
        const auto a = Pack<W>::of(draw), b = Pack<W>::of(draw), c = Pack<W>::of(draw);
        double x[W], y[W], z[W], out[W];
        a.store(x), b.store(y), c.store(z);
        fused(a, b, c).store(out);
        for (int k = 0; k < W; ++k) {
            volatile double product = x[k] * y[k]; // volatile: rounded, whatever the compiler likes
            const double plain = product + z[k];
            CHECK(out[k] == (fuses ? std::fma(x[k], y[k], z[k]) : plain));
        }
        (a * b + c).store(out); // never fused
        for (int k = 0; k < W; ++k) {
            volatile double product = x[k] * y[k];
            CHECK(out[k] == product + z[k]);
        }
    }
}

template <int W> void functions() {
    Numbers numbers(3);
    for (int round = 0; round < 2000; ++round) {
        const auto x = Pack<W>::of([&](int) { return -345.0 + 345.0 * numbers.fraction(45); });
        const auto y = Pack<W>::of([&](int) {
            return std::ldexp(1.5 + 0.5 * numbers.fraction(50), int(numbers.below(1900)) - 950);
        });
        double from[W], powers[W], values[W], logs[W];
        x.store(from), exp(x).store(powers), y.store(values), log(y).store(logs);
        for (int k = 0; k < W; ++k) {
            const long double power = std::exp((long double)from[k]);
            const long double logarithm = std::log((long double)values[k]);
            CHECK(std::abs(powers[k] - power) <= 2e-13L * power);
            CHECK(std::abs(logs[k] - logarithm) <= 1e-13L * std::abs(logarithm) + 1e-15L);
            CHECK(powers[k] == exp_one(from[k])); // a lane computes what a single number does
            CHECK(logs[k] == log_one(values[k]));
        }
    }
}

template <int W> void extremes() {
    Numbers numbers(5);
    const double none = std::numeric_limits<double>::quiet_NaN();
    for (int round = 0; round < 200; ++round) {
        const auto draw = [&](int) { return numbers.below(5) ? numbers.fraction(30) : none; };
        const auto a = Pack<W>::of(draw),
                   b = Pack<W>::of([&](int) { return numbers.fraction(30); });
        double x[W], y[W], low[W], high[W], sum = 0.0, most = -infinity;
        a.store(x), b.store(y), smaller(a, b).store(low), larger(a, b).store(high);
        for (int k = 0; k < W; ++k) {
            CHECK(low[k] == (x[k] < y[k] ? x[k] : y[k]));
            CHECK(high[k] == (x[k] > y[k] ? x[k] : y[k]));
            sum += y[k], most = std::max(most, y[k]); // exact: few digits
        }
        CHECK(total(b) == sum && largest(b) == most);
    }
}

// A soft minimum of zero is +0, whatever the signs of the zeros that it is made of.
template <int W> void zeros() {
    Room room(2 * W);
    const auto work = reinterpret_cast<Pack<W> *>(room.numbers());
    for (const double first : {0.0, -0.0})
        for (const double second : {0.0, -0.0, 1.0}) {
            const auto value = [&](Index x) { return Pack<W>(x ? second : first); };
            double out[W];
            soft_minimum<0, W>(2, value, work, 1000.0).store(out);
            for (const double one : out)
                CHECK(second > 0.0 ? one == 0.0 && !std::signbit(one) : one < 0.0);
        }
}

} // namespace

void check_rounding() {
    CHECK(RoundedDown::works());
    {
        volatile double third = 3.0, one = 1.0;
        const double near = one / third;
        double low;
        {
            const RoundedDown down;
            low = -(one / -third); // rounded away from zero, so up
        }
        CHECK(low == next_above(near) || low == near);
        CHECK(one / third == near); // the mode is back
    }
    CHECK(next_below(1.0) == 1.0 - unit && next_above(1.0) == 1.0 + 2 * unit);
    CHECK(next_below(0.0) < 0.0 && next_above(-infinity) == -infinity);
    sums();
}

void check_lanes() {
    fused_lanes<1>();
    fused_lanes<lanes>();
    functions<1>();
    functions<lanes>();
    extremes<1>();
    extremes<lanes>();
    zeros<1>();
    zeros<lanes>();
}

} // namespace checks
