// What the run-time compiler of CUDA (NVRTC) knows without any header, as far as the kernels use it,
// for a compiler of the host that checks their syntax.
#pragma once

#define __global__
#define __shared__
#define __launch_bounds__(...)

struct ThreeNumbers {
    unsigned x, y, z;
};
extern const ThreeNumbers threadIdx, blockIdx, blockDim;
struct float4 {
    float x, y, z, w;
};
float4 make_float4(float x, float y, float z, float w);

void __syncthreads();
int __syncthreads_or(int value);
double __shfl_down_sync(unsigned mask, double value, int far);
template <class T> T __ldcs(const T *from);

double exp(double x);
double log(double x);
double sqrt(double x);
double ceil(double x);
double fabs(double x);
double __dadd_rd(double a, double b);
double __dadd_rn(double a, double b);
double __dmul_rd(double a, double b);
double __dmul_rn(double a, double b);
int __double2int_rn(double x);
long long __double_as_longlong(double x);
double __longlong_as_double(long long x);
float __int_as_float(int x);
