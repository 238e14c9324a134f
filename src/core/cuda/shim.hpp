// Primitives that differ between a GPU and the host: thread indices, sums over a block, directed
// rounding, fast functions.
//
// On the host a block is one thread, and `launch` (host.cpp) calls a kernel once per thread, so
// that kernels can be tested and debugged without a device.
#pragma once

#ifdef __CUDACC_RTC__
#define SOFTMAP_KERNEL __global__ void
// Kernels with one block per model: register use is limited so that a block can have 512 threads.
#define SOFTMAP_MODEL_KERNEL __global__ void __launch_bounds__(512)
#else
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#define SOFTMAP_KERNEL static void
#define SOFTMAP_MODEL_KERNEL static void
#endif

namespace softmap {
namespace device {

#ifdef __CUDACC_RTC__
inline long long thread_number() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }
inline int block_number() { return int(blockIdx.x); }
inline int thread_in_block() { return int(threadIdx.x); }
inline int block_size() { return int(blockDim.x); }
inline void wait_for_block() { __syncthreads(); }
inline bool any_in_block(bool value) { return __syncthreads_or(value); } // waits for the block

inline double add_down(double a, double b) { return __dadd_rd(a, b); }
inline double multiply_down(double a, double b) { return __dmul_rd(a, b); }
inline double add_nearest(double a, double b) { return __dadd_rn(a, b); }
inline double multiply_nearest(double a, double b) { return __dmul_rn(a, b); }

inline float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
inline float log2_fast(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
inline double exp_double(double x) { return ::exp(x); }
inline double log_double(double x) { return ::log(x); }
inline double sqrt_double(double x) { return ::sqrt(x); }
inline long long bits_of(double x) { return __double_as_longlong(x); }
inline double of_bits(long long x) { return __longlong_as_double(x); }
inline float of_bits(int x) { return __int_as_float(x); }
inline int whole(double x) { return __double2int_rn(x); }

// Loads a value that is not read again soon, with a streaming cache hint.
template <class T> inline T read_once(const T *from) { return __ldcs(from); }

// Sum over the threads of a block, valid in its first thread. The order of additions is fixed.
// Each addition is rounded to nearest by RoundNearest, and down by RoundDown.
struct RoundNearest {
    static double add(double a, double b) { return __dadd_rn(a, b); }
};
struct RoundDown {
    static double add(double a, double b) { return __dadd_rd(a, b); }
};
template <class Mode> inline double block_sum(double value) {
    __shared__ double of_warp[32];
    for (int far = 16; far > 0; far /= 2)
        value = Mode::add(value, __shfl_down_sync(0xffffffffu, value, far));
    const int warp = int(threadIdx.x) / 32, warps = (int(blockDim.x) + 31) / 32;
    __syncthreads(); // an earlier sum may still be read
    if (threadIdx.x % 32 == 0)
        of_warp[warp] = value;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < warps; ++w)
            value = Mode::add(value, of_warp[w]);
    return value;
}
#else
inline thread_local long long current_thread = 0;
inline long long thread_number() { return current_thread; }
inline int block_number() { return int(current_thread); }
inline int thread_in_block() { return 0; }
inline int block_size() { return 1; }
inline void wait_for_block() {}
inline bool any_in_block(bool value) { return value; }

inline long long bits_of(double x) {
    long long bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
inline double of_bits(long long bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
inline double below(double x) {
    return std::nextafter(x, -std::numeric_limits<double>::infinity());
}
inline double add_down(double a, double b) {
    const double sum = a + b, part = sum - a;
    const double error = (a - (sum - part)) + (b - part);
    return error < 0.0 ? below(sum) : sum;
}
inline double multiply_down(double a, double b) {
    const double product = a * b;
    return std::fma(a, b, -product) < 0.0 ? below(product) : product;
}
inline double add_nearest(double a, double b) { return a + b; }
inline double multiply_nearest(double a, double b) { return a * b; }
inline float exp2_fast(float x) { return std::exp2(x); }
inline float log2_fast(float x) { return std::log2(x); }
inline double exp_double(double x) { return std::exp(x); }
inline double log_double(double x) { return std::log(x); }
inline double sqrt_double(double x) { return std::sqrt(x); }
inline int whole(double x) { return int(std::nearbyint(x)); }
template <class T> inline T read_once(const T *from) { return *from; }

struct RoundNearest {
    static double add(double a, double b) { return a + b; }
};
struct RoundDown {
    static double add(double a, double b) { return add_down(a, b); }
};
template <class Mode> inline double block_sum(double value) { return value; }
#endif

// partial[block] = sum of `value` over the threads of the block; `totals` adds up the blocks.
template <class Mode> inline void deliver(double *partial, double value) {
    const double sum = block_sum<Mode>(value);
    if (thread_in_block() == 0)
        partial[block_number()] = sum;
}

} // namespace device
} // namespace softmap
