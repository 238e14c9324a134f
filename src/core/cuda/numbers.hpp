// Pack<W> of the GPU kernels, in place of the SIMD packs of lanes.hpp: one number per thread.
//
// Families are templates over Pack<W>. Here W selects the precision and rounding of the number.
#pragma once

#include "shim.hpp"

namespace softmap {

#ifdef __CUDACC_RTC__
inline constexpr double infinity = __builtin_bit_cast(double, 0x7ff0000000000000ull);
#else
inline constexpr double infinity = std::numeric_limits<double>::infinity();
#endif
inline constexpr int lanes = 8; // the families refer to it; not used on the device

namespace device {

enum : int {
    single = 0,  // float, with the fast exp2 and log2 of the device
    exact = 2,   // double
    wide = 3,    // double for its range; exp and log only as accurate as those of `single`
    lowered = 4, // double; every sum and product is rounded down
};

inline constexpr double log2e = 1.4426950408889634;
inline constexpr double ln2 = 0.6931471805599453;

template <int W> struct Arithmetic {
    using Number = double;
    static constexpr double safe = 600.0, tiny = 1e-300;
    static double add(double a, double b) { return a + b; }
    static double multiply(double a, double b) { return a * b; }
    static double exp(double x) { return x > -690.0 ? exp_double(x) : 1e-300; }
    static double log(double x) { return log_double(x); }
};

template <> struct Arithmetic<single> {
    using Number = float;
    static constexpr double safe = 80.0, tiny = 1e-37;
    static float add(float a, float b) { return a + b; }
    static float multiply(float a, float b) { return a * b; }
    static float exp(float x) { return x > -86.0f ? exp2_fast(x * float(log2e)) : 0.0f; }
    static float log(float x) { return log2_fast(x) * float(ln2); }
};

template <> struct Arithmetic<wide> {
    using Number = double;
    static constexpr double safe = 600.0, tiny = 1e-300;
    static double add(double a, double b) { return a + b; }
    static double multiply(double a, double b) { return a * b; }
    static double exp(double x) {
        const double t = x > -690.0 ? x * log2e : -690.0 * log2e;
        const int n = whole(t);
        const double mantissa = double(exp2_fast(float(t - n)));
        return of_bits(bits_of(mantissa) + ((long long)n << 52));
    }
    static double log(double x) {
        const long long bits = bits_of(x), power = (bits >> 52) - 1023;
        const float mantissa = float(of_bits(bits - (power << 52)));
        return (double(power) + double(log2_fast(mantissa))) * ln2;
    }
};

template <> struct Arithmetic<lowered> {
    using Number = double;
    static constexpr double safe = 600.0, tiny = 1e-300;
    static double add(double a, double b) { return add_down(a, b); }
    static double multiply(double a, double b) { return multiply_down(a, b); }
    static double exp(double x) { return exp_double(x); } // never called: bounds need no exp
    static double log(double x) { return log_double(x); }
};

} // namespace device

template <int W> struct Pack {
    using Rules = device::Arithmetic<W>;
    using Part = typename Rules::Number;
    static constexpr int width = 1;
    static constexpr double safe = Rules::safe, tiny = Rules::tiny;

    Part part[1];

    Pack() = default;
    Pack(double value) { part[0] = Part(value); }
    Pack(float value) { part[0] = Part(value); }

    template <class S> static Pack load(const S *from) { return Pack(*from); }
    template <class S> void store(S *to) const { *to = S(part[0]); }
    template <class At> static Pack of(At at) { return Pack(at(0)); }
    template <class Put> void each(int, Put put) const { put(0, double(part[0])); }

    Pack &operator+=(const Pack &b) { return *this = *this + b; }
    Pack &operator-=(const Pack &b) { return *this = *this - b; }
    Pack &operator*=(const Pack &b) { return *this = *this * b; }

    friend Pack operator+(const Pack &a, const Pack &b) {
        return Pack(Rules::add(a.part[0], b.part[0]));
    }
    friend Pack operator-(const Pack &a, const Pack &b) {
        return Pack(Rules::add(a.part[0], -b.part[0]));
    }
    friend Pack operator*(const Pack &a, const Pack &b) {
        return Pack(Rules::multiply(a.part[0], b.part[0]));
    }
    friend Pack operator/(const Pack &a, const Pack &b) { return Pack(a.part[0] / b.part[0]); }
};

// a · b + c; the device compiler decides whether it is rounded once or twice.
template <int W> Pack<W> fused(const Pack<W> &a, const Pack<W> &b, const Pack<W> &c) {
    return a * b + c;
}

template <int W> Pack<W> least(const Pack<W> &a, const Pack<W> &b) {
    return a.part[0] < b.part[0] ? a : b;
}
template <int W> Pack<W> greatest(const Pack<W> &a, const Pack<W> &b) {
    return a.part[0] > b.part[0] ? a : b;
}
template <int W> Pack<W> smaller(const Pack<W> &a, const Pack<W> &b) { return least(a, b); }
template <int W> Pack<W> larger(const Pack<W> &a, const Pack<W> &b) { return greatest(a, b); }
template <int W>
Pack<W> choose(const Pack<W> &a, const Pack<W> &b, const Pack<W> &x, const Pack<W> &y) {
    return a.part[0] < b.part[0] ? x : y;
}
template <int W> Pack<W> unless_infinite(const Pack<W> &a, const Pack<W> &x) {
    return a.part[0] < typename Pack<W>::Part(infinity) ? x : Pack<W>(0.0);
}
template <int W> Pack<W> size_of(const Pack<W> &a) { return greatest(a, 0.0 - a); }
template <int W> double total(const Pack<W> &a) { return double(a.part[0]); }
template <int W> double largest(const Pack<W> &a) { return double(a.part[0]); }
template <int W> Pack<W> exp(const Pack<W> &x) { return Pack<W>::Rules::exp(x.part[0]); }
template <int W> Pack<W> log(const Pack<W> &x) { return Pack<W>::Rules::log(x.part[0]); }

} // namespace softmap
