// Pack<W>: a SIMD vector of W doubles, one per lane, for the same operation on W edges or labels.
//
// Pack<1> is one plain double, so that a kernel written over Pack<W> is its own scalar case. A
// wider pack is an array of native vectors, because compilers split wider vectors badly. exp is for
// x <= 0; it returns about 1e-300 for x below -690 and for NaN. log is for normal x > 0. Both have
// a relative error of about 1e-13. All operations are inlined, because passes spend most of their
// time in them, and a pack that is passed to a function goes through memory.
//
// This file and the kernels are compiled without contraction: a product followed by a sum is
// rounded twice, and `fused` is rounded once. So every lane, the scalar case and every instruction
// set with a fused multiply-add (x86-64-v3 and v4, aarch64) compute the same bits. x86-64-v2 has no
// fused multiply-add: there `fused` is rounded twice, and results differ in the last digits.
#pragma once

// Unroll a loop completely, or SOFTMAP_UNROLL(count) times, in code for a GPU: arrays indexed by
// the loop then stay in registers instead of local memory. On a CPU both macros are empty.
#ifdef __CUDACC_RTC__
#define SOFTMAP_TEXT_OF(...) #__VA_ARGS__
#define SOFTMAP_UNROLL(...) _Pragma(SOFTMAP_TEXT_OF(unroll(__VA_ARGS__)))
#define SOFTMAP_UNROLL_ALL _Pragma("unroll")
#else
#define SOFTMAP_UNROLL(...)
#define SOFTMAP_UNROLL_ALL
#endif

#ifdef SOFTMAP_DEVICE
#include "cuda/numbers.hpp" // the scalar number types of the GPU kernels
#define SOFTMAP_IN_LINE     // the GPU compiler decides what is inlined
#else
#define SOFTMAP_IN_LINE [[gnu::always_inline]]

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace softmap {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr int lanes = 8; // edges in one tile, the same for every instruction set

#if defined(__AVX512F__)
inline constexpr int native = 8;
#elif defined(__AVX__)
inline constexpr int native = 4;
#else
inline constexpr int native = 2; // 128-bit registers: SSE2, NEON
#endif

#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool fuses = true; // whether `fused` rounds once
#else
inline constexpr bool fuses = false;
#endif

namespace detail {
using Vector = double __attribute__((vector_size(native * sizeof(double))));
using VectorBits = std::int64_t __attribute__((vector_size(native * sizeof(double))));
using Singles = float __attribute__((vector_size(native * sizeof(float))));
using Integers = std::int32_t __attribute__((vector_size(native * sizeof(std::int32_t))));

template <int W> struct Parts {
    static_assert(W % native == 0);
    using Part = Vector;
    using Bits = VectorBits;
    static constexpr int count = W / native;
    static constexpr int width = native;
};
template <> struct Parts<1> {
    using Part = double;
    using Bits = std::int64_t;
    static constexpr int count = 1;
    static constexpr int width = 1;
};

SOFTMAP_IN_LINE inline Vector load_part(const double *from) {
    Vector part;
    std::memcpy(&part, from, sizeof part);
    return part;
}
SOFTMAP_IN_LINE inline Vector load_part(const float *from) {
    Singles part;
    std::memcpy(&part, from, sizeof part);
    return __builtin_convertvector(part, Vector);
}
SOFTMAP_IN_LINE inline Vector load_part(const std::int32_t *from) {
    Integers part;
    std::memcpy(&part, from, sizeof part);
    return __builtin_convertvector(part, Vector);
}
SOFTMAP_IN_LINE inline void store_part(double *to, Vector part) {
    std::memcpy(to, &part, sizeof part);
}
SOFTMAP_IN_LINE inline void store_part(float *to, Vector part) {
    const Singles narrow = __builtin_convertvector(part, Singles);
    std::memcpy(to, &narrow, sizeof narrow);
}

// a · b + c. Written with intrinsics, because compilers do not always turn a plain loop over the
// lanes into single instructions.
SOFTMAP_IN_LINE inline double fused_part(double a, double b, double c) {
    if constexpr (fuses)
        return __builtin_fma(a, b, c);
    else
        return a * b + c;
}
SOFTMAP_IN_LINE inline Vector fused_part(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
    return _mm256_fmadd_pd(a, b, c);
#elif defined(__aarch64__)
    return vfmaq_f64(c, a, b);
#else
    return a * b + c;
#endif
}

// The larger or the smaller of two numbers, y if x is NaN; of two zeros, either. On aarch64 this is
// one instruction, and a comparison with a selection are two.
SOFTMAP_IN_LINE inline double larger_part(double x, double y) { return x > y ? x : y; }
SOFTMAP_IN_LINE inline double smaller_part(double x, double y) { return x < y ? x : y; }
SOFTMAP_IN_LINE inline Vector larger_part(Vector x, Vector y) {
#if defined(__aarch64__)
    return vmaxnmq_f64(x, y);
#else
    return x > y ? x : y;
#endif
}
SOFTMAP_IN_LINE inline Vector smaller_part(Vector x, Vector y) {
#if defined(__aarch64__)
    return vminnmq_f64(x, y);
#else
    return x < y ? x : y;
#endif
}
} // namespace detail

template <int W> struct alignas(W == 1 ? 8 : 8 * native) Pack {
    using Part = typename detail::Parts<W>::Part;
    using Bits = typename detail::Parts<W>::Bits;
    static constexpr int parts = detail::Parts<W>::count;
    static constexpr int width = detail::Parts<W>::width;
    static constexpr double safe = 600.0;  // exp(-safe) and products with it do not underflow
    static constexpr double tiny = 1e-300; // smallest argument passed to log

    Part part[parts];

    Pack() = default;
    SOFTMAP_IN_LINE Pack(double value)
        : Pack(by_parts([=](int) -> Part { return Part{} + value; })) {}

    // The pack whose part p is at(p). The parts are written out, because GCC keeps an array that a
    // loop goes over in memory instead of registers.
    template <class At> SOFTMAP_IN_LINE static Pack by_parts(At at) {
        return [&]<int... p>(std::integer_sequence<int, p...>) __attribute__((always_inline)) {
            Pack out;
            ((out.part[p] = at(p)), ...);
            return out;
        }(std::make_integer_sequence<int, parts>{});
    }

    template <class S> SOFTMAP_IN_LINE static Pack load(const S *from) {
        return by_parts([=](int p) -> Part {
            if constexpr (W == 1)
                return static_cast<double>(*from);
            else
                return detail::load_part(from + p * width);
        });
    }

    template <class S> SOFTMAP_IN_LINE void store(S *to) const {
        if constexpr (W == 1)
            *to = static_cast<S>(part[0]);
        else
            by_parts([&](int p) -> Part {
                detail::store_part(to + p * width, part[p]);
                return part[p];
            });
    }

    // The pack whose lane k is at(k).
    template <class At> SOFTMAP_IN_LINE static Pack of(At at) {
        double value[W];
        for (int k = 0; k < W; ++k)
            value[k] = at(k);
        return load(value);
    }

    // Calls put(k, value) for the first `count` lanes.
    template <class Put> SOFTMAP_IN_LINE void each(int count, Put put) const {
        double value[W];
        store(value);
        for (int k = 0; k < count; ++k)
            put(k, value[k]);
    }

    SOFTMAP_IN_LINE Pack &operator+=(const Pack &b) { return *this = *this + b; }
    SOFTMAP_IN_LINE Pack &operator-=(const Pack &b) { return *this = *this - b; }
    SOFTMAP_IN_LINE Pack &operator*=(const Pack &b) { return *this = *this * b; }

    SOFTMAP_IN_LINE friend Pack operator+(const Pack &a, const Pack &b) {
        return map(a, b, [](Part x, Part y) { return x + y; });
    }
    SOFTMAP_IN_LINE friend Pack operator-(const Pack &a, const Pack &b) {
        return map(a, b, [](Part x, Part y) { return x - y; });
    }
    SOFTMAP_IN_LINE friend Pack operator*(const Pack &a, const Pack &b) {
        return map(a, b, [](Part x, Part y) { return x * y; });
    }
    SOFTMAP_IN_LINE friend Pack operator/(const Pack &a, const Pack &b) {
        return map(a, b, [](Part x, Part y) { return x / y; });
    }

    template <class F> SOFTMAP_IN_LINE static Pack map(const Pack &a, const Pack &b, F f) {
        return by_parts([&](int p) -> Part { return f(a.part[p], b.part[p]); });
    }
};

// a · b + c, rounded once if the instruction set has a fused multiply-add (`fuses`).
template <int W>
SOFTMAP_IN_LINE inline Pack<W> fused(const Pack<W> &a, const Pack<W> &b, const Pack<W> &c) {
    return Pack<W>::by_parts(
        [&](int p) { return detail::fused_part(a.part[p], b.part[p], c.part[p]); });
}

// Prefetches the entries that the strip's tile 4 positions ahead will read: the stride of a strip
// is too long for the hardware prefetcher. A prefetch past the end of an array does no harm.
template <class S> void fetch_ahead(const S *from) { __builtin_prefetch(from + 4 * lanes); }

// Lane-wise minimum; b in the lanes where a or b is NaN.
template <int W> SOFTMAP_IN_LINE inline Pack<W> least(const Pack<W> &a, const Pack<W> &b) {
    using Part = typename Pack<W>::Part;
    return Pack<W>::map(a, b, [](Part x, Part y) -> Part { return x < y ? x : y; });
}

// Lane-wise maximum; b in the lanes where a or b is NaN.
template <int W> SOFTMAP_IN_LINE inline Pack<W> greatest(const Pack<W> &a, const Pack<W> &b) {
    using Part = typename Pack<W>::Part;
    return Pack<W>::map(a, b, [](Part x, Part y) -> Part { return x > y ? x : y; });
}

// As `least` and `greatest`, but of two zeros either, so that the sign must not matter.
template <int W> SOFTMAP_IN_LINE inline Pack<W> smaller(const Pack<W> &a, const Pack<W> &b) {
    using Part = typename Pack<W>::Part;
    return Pack<W>::map(a, b, [](Part x, Part y) { return detail::smaller_part(x, y); });
}
template <int W> SOFTMAP_IN_LINE inline Pack<W> larger(const Pack<W> &a, const Pack<W> &b) {
    using Part = typename Pack<W>::Part;
    return Pack<W>::map(a, b, [](Part x, Part y) { return detail::larger_part(x, y); });
}

// x in the lanes where a < b, y in all other lanes.
template <int W>
SOFTMAP_IN_LINE inline Pack<W> choose(const Pack<W> &a, const Pack<W> &b, const Pack<W> &x,
                                      const Pack<W> &y) {
    using Part = typename Pack<W>::Part;
    return Pack<W>::by_parts(
        [&](int p) -> Part { return a.part[p] < b.part[p] ? x.part[p] : y.part[p]; });
}

// x; 0 in the lanes where a is +inf or NaN.
template <int W>
SOFTMAP_IN_LINE inline Pack<W> unless_infinite(const Pack<W> &a, const Pack<W> &x) {
    return choose(a, Pack<W>(infinity), x, Pack<W>(0.0));
}

template <int W> SOFTMAP_IN_LINE inline Pack<W> size_of(const Pack<W> &a) {
    return greatest(a, 0.0 - a);
}

namespace detail {
// join(x, y) over all lanes, by repeated halving: lane k with lane k + half.
template <int W, class Join> SOFTMAP_IN_LINE inline double joined(const Pack<W> &a, Join join) {
    if constexpr (Pack<W>::parts > 1) {
        constexpr int half = Pack<W>::parts / 2;
        const auto both = [&](int p) { return join(a.part[p], a.part[p + half]); };
        return joined(Pack<W / 2>::by_parts(both), join);
    } else {
        double value[W];
        a.store(value);
        for (int half = W / 2; half > 0; half /= 2)
            for (int k = 0; k < half; ++k)
                value[k] = join(value[k], value[k + half]);
        return value[0];
    }
}
} // namespace detail

// Sum over the lanes: the order, and so the rounding, is the same everywhere.
template <int W> double total(const Pack<W> &a) {
    return detail::joined(a, [](auto x, auto y) { return x + y; });
}

template <int W> double largest(const Pack<W> &a) {
    return detail::joined(a, [](auto x, auto y) { return detail::larger_part(x, y); });
}

namespace detail {
inline constexpr double log2e = 1.4426950408889634;
inline constexpr double ln2 = 0.6931471805599453;
inline constexpr double rounder =
    6755399441055744.0; // 1.5 · 2^52: leaves an integer in the low bits
inline constexpr double lowest =
    -690.0; // exp of it is 1e-300: products with it stay normal numbers
inline constexpr std::int64_t sqrt_half = 0x3FE6A09E667F3BCD; // the bits of sqrt(1/2)

// The coefficients of a polynomial, from the highest power down, for numbers and for vectors.
template <int N> struct Terms {
    double one[N];
    alignas(sizeof(Vector)) double wide[N][native];

    constexpr Terms(const double (&terms)[N]) : one{}, wide{} {
        for (int k = 0; k < N; ++k) {
            one[k] = terms[k];
            for (double &lane : wide[k])
                lane = terms[k];
        }
    }
    template <class Part> SOFTMAP_IN_LINE Part at(int k) const {
        if constexpr (std::is_same_v<Part, double>)
            return one[k];
#if defined(__aarch64__)
        // Volatile, so that it is loaded at each use: a fused multiply-add of NEON overwrites its
        // addend. The copy of a register would take the time of an operation; a load takes none.
        else
            return *reinterpret_cast<const volatile Vector *>(wide[k]);
#else
        else
            return *reinterpret_cast<const Vector *>(wide[k]);
#endif
    }
};
// Minimax polynomial for exp(r) on |r| <= log(2) / 2; relative error 1.4e-14.
inline constexpr Terms<10>
    exp_terms({2.7482182513431903e-06, 2.4884026451421244e-05, 1.984159649626849e-04,
               1.3888802794591272e-03, 8.333333002656124e-03, 4.166666703268063e-02,
               1.6666666667827756e-01, 0.4999999999945755, 0.9999999999998926, 1.0000000000000129});
// Minimax polynomial in s² for (atanh(s) / s - 1) / s², |s| <= (√2 - 1) / (√2 + 1); error 2.4e-14.
inline constexpr Terms<6> atanh_terms({0.08311681001527367, 0.09070040555845871,
                                       0.11111432578152125, 0.14285712054190225,
                                       0.20000000005657737, 0.3333333333333101});

template <class Part, class Bits> SOFTMAP_IN_LINE inline Part exp_part(Part x) {
    const Part t = larger_part(x, Part{} + lowest);
    const Part shifted = fused_part(t, Part{} + log2e, Part{} + rounder);
    const Part r = fused_part(shifted - rounder, Part{} - ln2, t);
    // odd and even powers side by side: half the steps that wait for each other
    const Part z = r * r;
    Part odd = exp_terms.at<Part>(0), even = exp_terms.at<Part>(1);
    for (int k = 2; k < 10; k += 2) {
        odd = fused_part(odd, z, exp_terms.at<Part>(k));
        even = fused_part(even, z, exp_terms.at<Part>(k + 1));
    }
    const Part p = fused_part(odd, r, even);
    return std::bit_cast<Part>(std::bit_cast<Bits>(p) + (std::bit_cast<Bits>(shifted) << 52));
}

template <class Bits> auto to_doubles(Bits whole) {
    if constexpr (std::is_same_v<Bits, std::int64_t>)
        return static_cast<double>(whole);
    else
        return __builtin_convertvector(whole, Vector);
}

template <class Part, class Bits> SOFTMAP_IN_LINE inline Part log_part(Part x) {
    const Bits bits = std::bit_cast<Bits>(x);
    const Bits shift = (bits - sqrt_half) >> 52;
    const Part mantissa = std::bit_cast<Part>(bits - (shift << 52)); // in [sqrt(1/2), sqrt(2))
    const Part s = (mantissa - 1.0) / (mantissa + 1.0);
    const Part z = s * s;
    Part p = atanh_terms.at<Part>(0);
    for (int k = 1; k < 6; ++k)
        p = fused_part(p, z, atanh_terms.at<Part>(k));
    const Part inner = fused_part(s * z, p, s);
    return fused_part(to_doubles(shift), Part{} + ln2, inner + inner);
}
} // namespace detail

template <int W> SOFTMAP_IN_LINE inline Pack<W> exp(const Pack<W> &x) {
    using P = Pack<W>;
    return P::by_parts([&](int p) __attribute__((always_inline)) {
        return detail::exp_part<typename P::Part, typename P::Bits>(x.part[p]);
    });
}

template <int W> SOFTMAP_IN_LINE inline Pack<W> log(const Pack<W> &x) {
    using P = Pack<W>;
    return P::by_parts([&](int p) __attribute__((always_inline)) {
        return detail::log_part<typename P::Part, typename P::Bits>(x.part[p]);
    });
}

inline double exp_one(double x) { return detail::exp_part<double, std::int64_t>(x); }
inline double log_one(double x) { return detail::log_part<double, std::int64_t>(x); }

// An array of doubles aligned to 64 bytes, enough for packs of every instruction set.
class Room {
  public:
    explicit Room(std::int64_t numbers) : lines_(static_cast<std::size_t>(numbers / lanes + 1)) {}
    double *numbers() { return lines_.data()->number; }

  private:
    struct alignas(64) Line {
        double number[lanes];
    };
    std::vector<Line> lines_;
};

} // namespace softmap

#endif // SOFTMAP_DEVICE
