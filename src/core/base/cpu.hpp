// The x86-64 microarchitecture level (psABI: v1 to v4) of the processor that runs this code.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace softmap {

#if defined(__x86_64__)

namespace detail {

// The four registers that the cpuid instruction fills; 0 if the processor has no such leaf.
struct Registers {
    unsigned a = 0, b = 0, c = 0, d = 0;
};

inline Registers cpuid(unsigned leaf) {
    Registers r;
    __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);
    return r;
}

// XCR0: which registers the operating system saves. May be called only if cpuid reports OSXSAVE.
inline unsigned saved_state() {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

constexpr bool all(unsigned value, unsigned mask) { return (value & mask) == mask; }

} // namespace detail

inline const char *cpu_level() {
    using detail::all;
    const auto basic = detail::cpuid(1);
    const auto extended = detail::cpuid(7);
    const auto amd = detail::cpuid(0x80000001);

    constexpr unsigned v2 = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT;
    constexpr unsigned v3 = bit_AVX | bit_FMA | bit_F16C | bit_MOVBE | bit_OSXSAVE;
    constexpr unsigned v3_extended = bit_AVX2 | bit_BMI | bit_BMI2;
    constexpr unsigned v4_extended =
        bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
    constexpr unsigned lzcnt = 1u << 5;
    constexpr unsigned xmm_ymm = 0x06, opmask_zmm = 0xe0;

    if (!all(basic.c, v2))
        return "v1";
    if (!all(basic.c, v3) || !all(extended.b, v3_extended) || !all(amd.c, lzcnt))
        return "v2";
    const unsigned state = detail::saved_state();
    if (!all(state, xmm_ymm))
        return "v2";
    return all(extended.b, v4_extended) && all(state, opmask_zmm) ? "v4" : "v3";
}

#else

inline const char *cpu_level() { return "plain"; }

#endif

} // namespace softmap
