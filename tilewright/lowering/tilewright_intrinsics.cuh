// What the emitter's output calls: one wrapper for each thing that is not plain C++.
//
// The text is put in front of every generated source, so NVRTC needs no file of it. TW_F16 and TW_BF16 are defined by the
// source when it uses these types, and bring in NVIDIA's header for them. Inline assembly for the GPU stands here and
// nowhere else. A C++ compiler for the host gets the same text behind tilewright_cpu_shim.hpp, which gives it the words of
// CUDA; where that is not enough, the host's body stands beside the GPU's.

#ifndef TW_INTRINSICS
#define TW_INTRINSICS

#ifdef __CUDACC__
#ifdef TW_F16
#include <cuda_fp16.h>
#endif
#ifdef TW_BF16
#include <cuda_bf16.h>
#endif
// Every value of the IR is a variable, used or not.
#pragma nv_diag_suppress 177
#endif

#define TW_DEVICE __device__ __forceinline__
#define TW_ALL_LANES 0xffffffffu

// ---- Bits ----------------------------------------------------------------------------------------------------------

template <typename To, typename From>
TW_DEVICE To tw_bitcast(From x) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To y;
  memcpy(&y, &x, sizeof(To));
  return y;
}

// The built-in type of a memory access of so many bytes.
template <int Bytes>
struct TwWord;
template <>
struct TwWord<1> { typedef unsigned char type; };
template <>
struct TwWord<2> { typedef unsigned short type; };
template <>
struct TwWord<4> { typedef unsigned int type; };
template <>
struct TwWord<8> { typedef uint2 type; };
template <>
struct TwWord<16> { typedef uint4 type; };

// ---- Swizzled arrays -----------------------------------------------------------------------------------------------
// Where element i of a shared array lies whose rows of Bytes bytes have their 16-byte chunks permuted, as
// `dialects.simt.types.swizzled` has it. The array starts at a multiple of 1024 bytes.

template <int Bytes, typename T>
TW_DEVICE T *tw_swizzled(T *array, int i) {
  int place = i * int(sizeof(T));
  place ^= ((place >> 7) & (Bytes / 16 - 1)) << 4;
  return reinterpret_cast<T *>(reinterpret_cast<unsigned char *>(array) + place);
}

// ---- Memory --------------------------------------------------------------------------------------------------------
// N neighbouring elements between memory and registers, in accesses of at most 16 bytes. The address is a multiple of N
// elements, so of each access's size.

template <int N, typename T>
TW_DEVICE void tw_load(T *r, const T *p) {
  constexpr int bytes = N * sizeof(T) < 16 ? N * sizeof(T) : 16;
  constexpr int each = bytes / sizeof(T);
  typedef typename TwWord<bytes>::type Word;
#pragma unroll
  for (int i = 0; i < N / each; ++i) {
    Word word = reinterpret_cast<const Word *>(p)[i];
    T part[each];
    memcpy(part, &word, bytes);
#pragma unroll
    for (int j = 0; j < each; ++j) r[i * each + j] = part[j];
  }
}

// The same for global memory that nothing writes while the kernel runs: through the read-only path.
template <int N, typename T>
TW_DEVICE void tw_load_readonly(T *r, const T *p) {
  constexpr int bytes = N * sizeof(T) < 16 ? N * sizeof(T) : 16;
  constexpr int each = bytes / sizeof(T);
  typedef typename TwWord<bytes>::type Word;
#pragma unroll
  for (int i = 0; i < N / each; ++i) {
    Word word = __ldg(reinterpret_cast<const Word *>(p) + i);
    T part[each];
    memcpy(part, &word, bytes);
#pragma unroll
    for (int j = 0; j < each; ++j) r[i * each + j] = part[j];
  }
}

// The same where `mask` holds; elsewhere nothing is read, and the registers get `other`. Words are chosen, not elements: for
// 16-bit elements half as many choices.
template <int N, bool ReadOnly, typename T>
TW_DEVICE void tw_load_masked(T *r, const T *p, bool mask, T other) {
  constexpr int bytes = N * sizeof(T) < 16 ? N * sizeof(T) : 16;
  constexpr int each = bytes / sizeof(T);
  typedef typename TwWord<bytes>::type Word;
  T part[each];
#pragma unroll
  for (int j = 0; j < each; ++j) part[j] = other;
  Word word[N / each];
#pragma unroll
  for (int i = 0; i < N / each; ++i) memcpy(&word[i], part, bytes);
  if (mask) {
#pragma unroll
    for (int i = 0; i < N / each; ++i) {
      const Word *from = reinterpret_cast<const Word *>(p) + i;
      if constexpr (ReadOnly) {
        word[i] = __ldg(from);
      } else {
        word[i] = *from;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < N / each; ++i) {
    memcpy(part, &word[i], bytes);
#pragma unroll
    for (int j = 0; j < each; ++j) r[i * each + j] = part[j];
  }
}

template <int N, typename T>
TW_DEVICE void tw_load_or(T *r, const T *p, bool mask, T other) { tw_load_masked<N, false>(r, p, mask, other); }
template <int N, typename T>
TW_DEVICE void tw_load_readonly_or(T *r, const T *p, bool mask, T other) { tw_load_masked<N, true>(r, p, mask, other); }

// How many elements lie between the last multiple of N elements in memory and p.
template <int N, typename T>
TW_DEVICE int tw_misaligned(const T *p) {
  return static_cast<int>(reinterpret_cast<size_t>(p) / sizeof(T) % N);
}

// N elements from element i of an array on, whose address may be any; a shared array may be swizzled (0: it is not). What
// lies from i - before up to, not including, i + after may be read, what else is wanted becomes `other`. The N elements lie
// in two aligned words, or in one. Where these may be read, they are, and their 32-bit parts are shifted into place: by 8, 4
// and so on down to single bits, each a choice between registers that are known when it compiles.
template <int N, int Swizzle, bool ReadOnly, typename T, typename I>
TW_DEVICE void tw_load_words(T *r, const T *array, I i, I before, I after, T other) {
  typedef typename TwWord<N * sizeof(T)>::type Word;
  constexpr int parts = N * sizeof(T) / 4;
  const auto at = [array](I place) {
    if constexpr (Swizzle != 0) {
      return tw_swizzled<Swizzle>(const_cast<T *>(array), place);
    } else {
      return array + place;
    }
  };
  // Elements of the first word that lie before i. A swizzled array begins at an aligned word, and moves words as a whole.
  const int skip = Swizzle != 0 ? static_cast<int>(size_t(i) % N) : tw_misaligned<N>(array + i);
  const int next = skip == 0 ? 0 : N;
  // Written such that no branch is left where both counts are constants that always suffice.
  if (before >= skip && after >= N && (skip == 0 || skip >= 2 * N - after)) {
    const Word *first = reinterpret_cast<const Word *>(at(i - skip));
    const Word *second = reinterpret_cast<const Word *>(at(i - skip + next));
    Word word[2];
    if constexpr (ReadOnly) {
      word[0] = __ldg(first), word[1] = __ldg(second);
    } else {
      word[0] = *first, word[1] = *second;
    }
    unsigned part[2 * parts];
    memcpy(part, word, sizeof part);
    const int bytes = skip * int(sizeof(T));
#pragma unroll
    for (int step = parts / 2; step > 0; step /= 2) {
      const bool moves = (bytes & 4 * step) != 0;
#pragma unroll
      for (int j = 0; j + step < 2 * parts; ++j) part[j] = moves ? part[j + step] : part[j];
    }
    if constexpr (sizeof(T) < 4) {
#pragma unroll
      for (int j = 0; j < parts; ++j) part[j] = __funnelshift_r(part[j], part[j + 1], 8 * (bytes & 3));
    }
    memcpy(r, part, N * sizeof(T));
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      r[k] = other;
      if (-before <= k && k < after) r[k] = *at(i + k);
    }
  }
}

template <int N, int Swizzle, typename T, typename I>
TW_DEVICE void tw_load_unaligned(T *r, const T *array, I i, I before, I after, T other) {
  tw_load_words<N, Swizzle, false>(r, array, i, before, after, other);
}

template <int N, int Swizzle, typename T, typename I>
TW_DEVICE void tw_load_readonly_unaligned(T *r, const T *array, I i, I before, I after, T other) {
  tw_load_words<N, Swizzle, true>(r, array, i, before, after, other);
}

template <int N, typename T>
TW_DEVICE void tw_store(T *p, const T *r) {
  constexpr int bytes = N * sizeof(T) < 16 ? N * sizeof(T) : 16;
  constexpr int each = bytes / sizeof(T);
  typedef typename TwWord<bytes>::type Word;
#pragma unroll
  for (int i = 0; i < N / each; ++i) {
    T part[each];
#pragma unroll
    for (int j = 0; j < each; ++j) part[j] = r[i * each + j];
    Word word;
    memcpy(&word, part, bytes);
#ifdef __CUDACC__
    // The compiler tears the assignment of a vector into scalars that it may fail to join again (it does where addresses
    // have 64 bits), but keeps this one, the same store. Which memory a pointer points into is known when it compiles.
    if (bytes > 4 && __isGlobal(p)) {
      __stwb(reinterpret_cast<Word *>(p) + i, word);
      continue;
    }
#endif
    reinterpret_cast<Word *>(p)[i] = word;
  }
}

// N elements to any address p, of which those from p - before up to, not including, p + after may be written.
template <int N, typename T, typename I>
TW_DEVICE void tw_store_unaligned(T *p, const T *r, I before, I after) {
  if (tw_misaligned<N>(p) == 0 && before >= 0 && after >= N) {
    tw_store<N>(p, r);
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (-before <= k && k < after) p[k] = r[k];
    }
  }
}

template <int N, typename T>
TW_DEVICE void tw_fill(T *r, T value) {
#pragma unroll
  for (int i = 0; i < N; ++i) r[i] = value;
}

// ---- Threads -------------------------------------------------------------------------------------------------------
// The host's are in its shim, as they switch from one thread to another.

#ifdef __CUDACC__
TW_DEVICE void tw_barrier() { __syncthreads(); }

// Shuffles take all 32 lanes. Values of 8 and 16 bits travel in 32; i1 as 0 or 1.
template <typename T>
TW_DEVICE T tw_shuffle_xor(T x, int lanes) {
  if constexpr (sizeof(T) == 8) {
    return tw_bitcast<T>(__shfl_xor_sync(TW_ALL_LANES, tw_bitcast<long long>(x), lanes));
  } else {
    typedef typename TwWord<sizeof(T)>::type Word;
    return tw_bitcast<T>(static_cast<Word>(__shfl_xor_sync(TW_ALL_LANES, unsigned(tw_bitcast<Word>(x)), lanes)));
  }
}

template <typename T>
TW_DEVICE T tw_shuffle_down(T x, int lanes) {
  if constexpr (sizeof(T) == 8) {
    return tw_bitcast<T>(__shfl_down_sync(TW_ALL_LANES, tw_bitcast<long long>(x), lanes));
  } else {
    typedef typename TwWord<sizeof(T)>::type Word;
    return tw_bitcast<T>(static_cast<Word>(__shfl_down_sync(TW_ALL_LANES, unsigned(tw_bitcast<Word>(x)), lanes)));
  }
}

template <typename T>
TW_DEVICE T tw_shuffle_index(T x, int lane) {
  if constexpr (sizeof(T) == 8) {
    return tw_bitcast<T>(__shfl_sync(TW_ALL_LANES, tw_bitcast<long long>(x), lane));
  } else {
    typedef typename TwWord<sizeof(T)>::type Word;
    return tw_bitcast<T>(static_cast<Word>(__shfl_sync(TW_ALL_LANES, unsigned(tw_bitcast<Word>(x)), lane)));
  }
}

#endif

// ---- Matrices of a warp, asynchronous copies -----------------------------------------------------------------------
// PTX ISA, ldmatrix, mma.sync and cp.async, sm_80. All lanes of a warp call the first two together; which lane holds which
// element is in dialects/simt/fragments.py. The host's bodies are in its shim.

#ifdef __CUDACC__
TW_DEVICE unsigned tw_shared_address(const void *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Count matrices of 8 rows of 16 bytes, whose addresses the lanes hand over; a word of each into the registers r.
template <int Count, bool Transposed, typename T>
TW_DEVICE void tw_ldmatrix(T *r, const T *p) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "1, 2 or 4 matrices");
  unsigned w[Count];
  const unsigned at = tw_shared_address(p);
  if constexpr (Count == 1) {
    if constexpr (Transposed) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(w[0]) : "r"(at) : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(w[0]) : "r"(at) : "memory");
    }
  } else if constexpr (Count == 2) {
    if constexpr (Transposed) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                   : "=r"(w[0]), "=r"(w[1]) : "r"(at) : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                   : "=r"(w[0]), "=r"(w[1]) : "r"(at) : "memory");
    }
  } else if constexpr (Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(at) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(at) : "memory");
  }
  memcpy(r, w, sizeof w);
}

// c += a * b. The words of a fragment are pairs of 16-bit elements, or one of 32 bits.
#define TW_MMA_K16(T, type)                                                                                \
  TW_DEVICE void tw_mma_m16n8k16(float *c, const T *a, const T *b) {                                       \
    unsigned x[4], y[2];                                                                                   \
    memcpy(x, a, sizeof x);                                                                                \
    memcpy(y, b, sizeof y);                                                                                \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                            \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                         \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                          \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));                      \
  }                                                                                                        \
  TW_DEVICE void tw_mma_m16n8k8(float *c, const T *a, const T *b) {                                        \
    unsigned x[2], y;                                                                                      \
    memcpy(x, a, sizeof x);                                                                                \
    memcpy(&y, b, sizeof y);                                                                               \
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." type "." type ".f32 "                             \
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                                     \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(x[0]), "r"(x[1]), "r"(y));         \
  }
#ifdef TW_F16
TW_MMA_K16(__half, "f16")
#endif
#ifdef TW_BF16
TW_MMA_K16(__nv_bfloat16, "bf16")
#endif
#undef TW_MMA_K16

TW_DEVICE void tw_mma_m16n8k8(float *c, const float *a, const float *b) {
  unsigned x[4], y[2];
  memcpy(x, a, sizeof x);
  memcpy(y, b, sizeof y);
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}

// Bytes from global to shared memory; with zfill the last Bytes - valid are zeros that nothing is read for. Copies of 16
// bytes go past the L1 cache.
template <int Bytes>
TW_DEVICE void tw_cp_async_zfill(void *to, const void *from, int valid) {
  const unsigned at = tw_shared_address(to);
  const size_t source = __cvta_generic_to_global(from);
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(at), "l"(source), "r"(valid) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 : : "r"(at), "l"(source), "n"(Bytes), "r"(valid) : "memory");
  }
}
template <int Bytes>
TW_DEVICE void tw_cp_async(void *to, const void *from) {
  const unsigned at = tw_shared_address(to);
  const size_t source = __cvta_generic_to_global(from);
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(at), "l"(source) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" : : "r"(at), "l"(source), "n"(Bytes) : "memory");
  }
}
TW_DEVICE void tw_cp_async_commit() { asm volatile("cp.async.commit_group;" : : : "memory"); }
template <int Pending>
TW_DEVICE void tw_cp_async_wait() { asm volatile("cp.async.wait_group %0;" : : "n"(Pending) : "memory"); }
#endif

// ---- Integers ------------------------------------------------------------------------------------------------------
// Division by zero, and of the least number by -1, has no meaning; but lanes whose result nobody keeps do it, and where
// the GPU gives some number the host's instruction ends the process. There it is what the simulator has: 0, and wrapping.

#ifdef __CUDACC__
template <typename T>
TW_DEVICE T tw_quotient(T a, T b) { return a / b; }
template <typename T>
TW_DEVICE T tw_remainder(T a, T b) { return a % b; }
#else
template <typename T>
TW_DEVICE T tw_quotient(T a, T b) {
  if (b == 0) return 0;
  return T(-1) < T(0) && b == T(-1) ? T(0ull - (unsigned long long)a) : T(a / b);
}
template <typename T>
TW_DEVICE T tw_remainder(T a, T b) {
  if (b == 0 || (T(-1) < T(0) && b == T(-1))) return 0;
  return a % b;
}
#endif

// Division rounds to minus infinity (floor) or plus infinity (ceil); T is int or long long.

template <typename T>
TW_DEVICE T tw_floordiv(T a, T b) {
  T q = tw_quotient(a, b);
  return (tw_remainder(a, b) != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

template <typename T>
TW_DEVICE T tw_ceildiv(T a, T b) {
  T q = tw_quotient(a, b);
  return (tw_remainder(a, b) != 0 && ((a < 0) == (b < 0))) ? q + 1 : q;
}

// Powers with a negative exponent follow integer division: 0 but for bases 1 and -1 (`math.ipowi`).
template <typename T, typename U>
TW_DEVICE T tw_ipow(T base, T exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  U result = 1, factor = U(base);
  for (U e = U(exponent); e != 0; e >>= 1) {
    if (e & 1) result *= factor;
    factor *= factor;
  }
  return T(result);
}

TW_DEVICE int tw_count_leading_zeros(int x) { return __clz(x); }
TW_DEVICE long long tw_count_leading_zeros(long long x) { return __clzll(x); }
TW_DEVICE int tw_count_trailing_zeros(int x) { return x == 0 ? 32 : __ffs(x) - 1; }
TW_DEVICE long long tw_count_trailing_zeros(long long x) { return x == 0 ? 64 : __ffsll(x) - 1; }
TW_DEVICE int tw_count_ones(int x) { return __popc(x); }
TW_DEVICE long long tw_count_ones(long long x) { return __popcll(x); }

// ---- Floats --------------------------------------------------------------------------------------------------------
// Maximum and minimum: a NaN operand gives NaN (`arith.maximumf`), and +0.0 is greater than -0.0. PTX ISA, max.NaN, sm_80.

#ifdef __CUDACC__
TW_DEVICE float tw_maximum(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

TW_DEVICE float tw_minimum(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

// PTX has no max.NaN for f64.
TW_DEVICE double tw_maximum(double a, double b) { return a != a ? a : b != b ? b : fmax(a, b); }
TW_DEVICE double tw_minimum(double a, double b) { return a != a ? a : b != b ? b : fmin(a, b); }
#else
template <typename T>
TW_DEVICE T tw_maximum(T a, T b) {
  if (a != a || b != b) return a + b;
  return a == b ? (__builtin_signbit(a) ? b : a) : a > b ? a : b;
}
template <typename T>
TW_DEVICE T tw_minimum(T a, T b) {
  if (a != a || b != b) return a + b;
  return a == b ? (__builtin_signbit(a) ? a : b) : a < b ? a : b;
}
#endif

// A NaN operand is ignored when the other is none (`arith.maxnumf`).
TW_DEVICE float tw_maxnum(float a, float b) { return fmaxf(a, b); }
TW_DEVICE float tw_minnum(float a, float b) { return fminf(a, b); }
TW_DEVICE double tw_maxnum(double a, double b) { return fmax(a, b); }
TW_DEVICE double tw_minnum(double a, double b) { return fmin(a, b); }

// 16-bit types compute in f32 and round once to nearest, ties to even: for + - * / the double rounding is innocuous, since
// f32 has more than twice the digits and two (Figueroa 1995). A fused multiply-add is not covered by that; see tw_fma.
TW_DEVICE float tw_float(float x) { return x; }

#ifdef TW_F16
TW_DEVICE float tw_float(__half x) { return __half2float(x); }
#ifdef TW_MATRIX_INSTRUCTIONS
TW_DEVICE __half tw_f16(float x) {
  unsigned short r;
  asm volatile("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return __ushort_as_half(r);
}
#else
TW_DEVICE __half tw_f16(float x) { return __float2half_rn(x); }
#endif
TW_DEVICE __half tw_f16(double x) { return __double2half(x); }
TW_DEVICE __half tw_f16(int x) { return __int2half_rn(x); }
TW_DEVICE __half tw_f16(unsigned int x) { return __uint2half_rn(x); }
TW_DEVICE __half tw_f16(long long x) { return __ll2half_rn(x); }
TW_DEVICE __half tw_f16(unsigned long long x) { return __ull2half_rn(x); }
TW_DEVICE __half tw_f16_bits(unsigned short bits) { return __ushort_as_half(bits); }
TW_DEVICE __half tw_fma(__half a, __half b, __half c) { return __hfma(a, b, c); }
#endif

#ifdef TW_BF16
TW_DEVICE float tw_float(__nv_bfloat16 x) { return __bfloat162float(x); }
#ifdef TW_MATRIX_INSTRUCTIONS
#define TW_CONVERSION asm volatile
// Not to be moved: ptxas would else merge the conversions of accumulators at a place where it then serialises wgmma.
TW_DEVICE __nv_bfloat16 tw_bf16(float x) {
  unsigned short r;
  asm volatile("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return __ushort_as_bfloat16(r);
}
#else
#define TW_CONVERSION asm
TW_DEVICE __nv_bfloat16 tw_bf16(float x) { return __float2bfloat16_rn(x); }
#endif
// To bf16 and back: as the upper half of a pair whose lower half is zero, one instruction.
TW_DEVICE float tw_round_bf16(float x) {
#ifdef __CUDACC__
  unsigned r;
  TW_CONVERSION("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(0.0f));
  return __uint_as_float(r);
#else
  return tw_float(tw_bf16(x));
#endif
}
TW_DEVICE __nv_bfloat16 tw_bf16(double x) { return __double2bfloat16(x); }
TW_DEVICE __nv_bfloat16 tw_bf16(int x) { return __int2bfloat16_rn(x); }
TW_DEVICE __nv_bfloat16 tw_bf16(unsigned int x) { return __uint2bfloat16_rn(x); }
TW_DEVICE __nv_bfloat16 tw_bf16(long long x) { return __ll2bfloat16_rn(x); }
TW_DEVICE __nv_bfloat16 tw_bf16(unsigned long long x) { return __ull2bfloat16_rn(x); }
TW_DEVICE __nv_bfloat16 tw_bf16_bits(unsigned short bits) { return __ushort_as_bfloat16(bits); }
TW_DEVICE __nv_bfloat16 tw_fma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) { return __hfma(a, b, c); }
#endif

// erf of f32: an odd polynomial near 0, 1 - 2^p(|x|) elsewhere, both computed and one of them taken. Without a branch and
// without choices of coefficients a chain of it takes 15 instructions, and others fit in between. Within 3 units in the
// last place; `tests/lowering/erf_coefficients.py` derives the numbers. The host has its own.
#ifdef __CUDACC__
TW_DEVICE float tw_erf(float x) {
  const float t = fabsf(x), s = x * x;
  float near = fmaf(4.16047871e-3f, s, -2.63623502e-2f);
  near = fmaf(near, s, 0.112738244f);
  near = fmaf(near, s, -0.376119435f);
  near = fmaf(near, s, 0.128379092f);
  near = fmaf(near, x, x);
  float far = fmaf(-2.03446881e-3f, t, 2.41735373e-2f);
  far = fmaf(far, t, -0.13633208f);
  far = fmaf(far, t, -0.932002604f);
  far = fmaf(far, t, -1.62074494f);
  far = fmaf(far, t, -1.47660635e-3f);
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(far));
  far = copysignf(1.0f - far, x);
  return t < 0.75f ? near : far;
}
#else
TW_DEVICE float tw_erf(float x) { return erff(x); }
#endif
TW_DEVICE double tw_erf(double x) { return erf(x); }

TW_DEVICE float tw_fma(float a, float b, float c) { return fmaf(a, b, c); }
TW_DEVICE double tw_fma(double a, double b, double c) { return fma(a, b, c); }

#endif
