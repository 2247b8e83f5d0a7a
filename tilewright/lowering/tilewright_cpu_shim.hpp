// What generated CUDA source needs to be C++ for this machine: the words of CUDA that it uses, and the 16-bit floats.
//
// It stands in front of the sources of one translation unit, with tilewright_cpu_fibers.hpp and tilewright_cpu_launch.hpp
// behind it. C headers only, since the C++ ones take longer to compile than most kernels.

#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS 1
#include <math.h>
#include <string.h>

// ---- Words of CUDA C++ ---------------------------------------------------------------------------------------------

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ __thread

// Aligned like their members: the host has tested what the GPU needs, and this machine does not need it.
struct uint2 { unsigned int x, y; };
struct uint4 { unsigned int x, y, z, w; };
struct TwDim { unsigned int x, y, z; };

static __thread TwDim threadIdx, blockIdx;

// The block's dynamic shared memory, as large as any GPU has (compute capability 9.0: 227 KiB, and 1 KiB for the system).
__thread unsigned char tw_smem[233472] __attribute__((aligned(128)));

template <typename T>
inline T __ldg(const T *p) { return *p; }

inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32) | low) >> (bits & 31));
}
inline float __int_as_float(int bits) { float x; memcpy(&x, &bits, sizeof x); return x; }
inline double __longlong_as_double(long long bits) { double x; memcpy(&x, &bits, sizeof x); return x; }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __popc(int x) { return __builtin_popcount(x); }
inline int __popcll(long long x) { return __builtin_popcountll(x); }

// Functions that are not rounded correctly anywhere are computed in f64 and rounded once, as the simulator does.
#define acosf(x) static_cast<float>(acos(static_cast<double>(x)))
#define acoshf(x) static_cast<float>(acosh(static_cast<double>(x)))
#define asinf(x) static_cast<float>(asin(static_cast<double>(x)))
#define asinhf(x) static_cast<float>(asinh(static_cast<double>(x)))
#define atanf(x) static_cast<float>(atan(static_cast<double>(x)))
#define atan2f(y, x) static_cast<float>(atan2(static_cast<double>(y), static_cast<double>(x)))
#define atanhf(x) static_cast<float>(atanh(static_cast<double>(x)))
#define cbrtf(x) static_cast<float>(cbrt(static_cast<double>(x)))
#define cosf(x) static_cast<float>(cos(static_cast<double>(x)))
#define coshf(x) static_cast<float>(cosh(static_cast<double>(x)))
#define erff(x) static_cast<float>(erf(static_cast<double>(x)))
#define expf(x) static_cast<float>(exp(static_cast<double>(x)))
#define exp2f(x) static_cast<float>(exp2(static_cast<double>(x)))
#define expm1f(x) static_cast<float>(expm1(static_cast<double>(x)))
#define logf(x) static_cast<float>(log(static_cast<double>(x)))
#define log10f(x) static_cast<float>(log10(static_cast<double>(x)))
#define log1pf(x) static_cast<float>(log1p(static_cast<double>(x)))
#define log2f(x) static_cast<float>(log2(static_cast<double>(x)))
#define powf(x, y) static_cast<float>(pow(static_cast<double>(x), static_cast<double>(y)))
#define rsqrt(x) (1.0 / sqrt(static_cast<double>(x)))
#define rsqrtf(x) static_cast<float>(1.0 / sqrt(static_cast<double>(x)))
#define sinf(x) static_cast<float>(sin(static_cast<double>(x)))
#define sinhf(x) static_cast<float>(sinh(static_cast<double>(x)))
#define tanf(x) static_cast<float>(tan(static_cast<double>(x)))
#define tanhf(x) static_cast<float>(tanh(static_cast<double>(x)))

// ---- 16-bit floats -------------------------------------------------------------------------------------------------

#define TW_F16
#define TW_BF16

struct __half { unsigned short bits; };
struct __nv_bfloat16 { unsigned short bits; };

// The bits of x in the IEEE format of that many exponent and fraction bits, rounded once to nearest, ties to even.
template <int Exponent, int Fraction>
inline unsigned short tw_cpu_narrow(double x) {
  constexpr int bias = (1 << (Exponent - 1)) - 1;
  constexpr int infinity = ((1 << Exponent) - 1) << Fraction;
  unsigned long long u;
  memcpy(&u, &x, sizeof u);
  const int sign = int(u >> 63) << 15;
  u &= ~0ull >> 1;
  if (u > 0x7ffull << 52) return sign | infinity | 1 << (Fraction - 1);
  const int exponent = int(u >> 52) - 1023;
  if (exponent == 1024) return sign | infinity;
  if (exponent == -1023) return sign;  // zero, or far below the least number of either format
  const unsigned long long significand = (u & ((1ull << 52) - 1)) | 1ull << 52;
  const bool subnormal = exponent < 1 - bias;
  const int shift = 52 - Fraction + (subnormal ? 1 - bias - exponent : 0);
  if (shift > 54) return sign;
  unsigned long long units = significand >> shift;
  const unsigned long long rest = significand & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  units += rest > half || (rest == half && (units & 1) != 0);
  // The hidden bit of a normal number counts one in the exponent, and so does a carry out of the fraction.
  const long long bits = (subnormal ? 0 : (long long)(exponent + bias - 1) << Fraction) + (long long)units;
  return sign | int(bits < infinity ? bits : infinity);
}

// A 64-bit integer in f64 with its last bit set where it does not fit, which rounding once more to a short format undoes.
inline double tw_cpu_odd(unsigned long long x) {
  return double(x >> 53 == 0 ? x : (x & ~0x7ffull) | ((x & 0x7ff) != 0 ? 0x800 : 0));
}
inline double tw_cpu_odd(long long x) {
  const unsigned long long magnitude = x < 0 ? 0ull - (unsigned long long)x : (unsigned long long)x;
  return x < 0 ? -tw_cpu_odd(magnitude) : tw_cpu_odd(magnitude);
}

inline __half tw_cpu_half(double x) { return __half{tw_cpu_narrow<5, 10>(x)}; }
inline float __half2float(__half x) {
  const unsigned int magnitude = x.bits & 0x7fff, sign = (x.bits & 0x8000u) << 16;
  if (magnitude >= 0x7c00) return __int_as_float(int(sign | 0x7f800000u | (magnitude & 0x3ff) << 13));
  // The exponent field starts 112 later in f32; a subnormal is a number of units of 2^-24.
  const float normal = __int_as_float(int((magnitude << 13) + (112u << 23)));
  const float value = magnitude < 0x400 ? float(magnitude) * 0x1p-24f : normal;
  return sign != 0 ? -value : value;
}
inline __half __float2half_rn(float x) { return tw_cpu_half(x); }
inline __half __double2half(double x) { return tw_cpu_half(x); }
inline __half __int2half_rn(int x) { return tw_cpu_half(x); }
inline __half __uint2half_rn(unsigned int x) { return tw_cpu_half(x); }
inline __half __ll2half_rn(long long x) { return tw_cpu_half(tw_cpu_odd(x)); }
inline __half __ull2half_rn(unsigned long long x) { return tw_cpu_half(tw_cpu_odd(x)); }
inline __half __ushort_as_half(unsigned short bits) { return __half{bits}; }
// In f64 the product is exact and, where it is not below half a unit of the result, so is the sum.
inline __half __hfma(__half a, __half b, __half c) {
  return tw_cpu_half(double(__half2float(a)) * double(__half2float(b)) + double(__half2float(c)));
}

inline __nv_bfloat16 tw_cpu_bfloat(double x) { return __nv_bfloat16{tw_cpu_narrow<8, 7>(x)}; }
inline float __bfloat162float(__nv_bfloat16 x) { return __int_as_float(int((unsigned int)x.bits << 16)); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return tw_cpu_bfloat(x); }
inline __nv_bfloat16 __double2bfloat16(double x) { return tw_cpu_bfloat(x); }
inline __nv_bfloat16 __int2bfloat16_rn(int x) { return tw_cpu_bfloat(x); }
inline __nv_bfloat16 __uint2bfloat16_rn(unsigned int x) { return tw_cpu_bfloat(x); }
inline __nv_bfloat16 __ll2bfloat16_rn(long long x) { return tw_cpu_bfloat(tw_cpu_odd(x)); }
inline __nv_bfloat16 __ull2bfloat16_rn(unsigned long long x) { return tw_cpu_bfloat(tw_cpu_odd(x)); }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16{bits}; }
inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return tw_cpu_bfloat(double(__bfloat162float(a)) * double(__bfloat162float(b)) + double(__bfloat162float(c)));
}
