// What generated CUDA source needs to be C++ for this machine: it stands in front of the sources of one translation unit.
//
// Each CUDA thread of a block is a fiber; a worker thread of the operating system runs the fibers of one block in turns,
// and blocks one after the other. A fiber goes on until it waits at a barrier or a shuffle, or ends. C headers only, since
// the C++ ones take longer to compile than most kernels. TW_CPU_UCONTEXT takes the portable context switch.

#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS 1
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(TW_CPU_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define TW_CPU_UCONTEXT
#endif
#ifdef TW_CPU_UCONTEXT
#include <ucontext.h>
#endif

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
inline double tw_cpu_odd(long long x) { return x < 0 ? -tw_cpu_odd(0ull - (unsigned long long)x) : tw_cpu_odd((unsigned long long)x); }

inline __half tw_cpu_half(double x) { return __half{tw_cpu_narrow<5, 10>(x)}; }
inline float __half2float(__half x) {
  const unsigned int magnitude = x.bits & 0x7fff, sign = (x.bits & 0x8000u) << 16;
  if (magnitude >= 0x7c00) return __int_as_float(int(sign | 0x7f800000u | (magnitude & 0x3ff) << 13));
  // The exponent field starts 112 later in f32; a subnormal is a number of units of 2^-24.
  const float value = magnitude < 0x400 ? float(magnitude) * 0x1p-24f : __int_as_float(int((magnitude << 13) + (112u << 23)));
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

// ---- Context switch ------------------------------------------------------------------------------------------------
// `tw_cpu_switch(from, to)` leaves the running context in `from` and goes on with `to`; `tw_cpu_prepare` makes a context
// that starts `entry` on a stack. Signal masks and floating-point modes are the worker's own, never a fiber's.

typedef void (*TwEntry)();

#ifdef TW_CPU_UCONTEXT
// swapcontext makes a system call each time, which costs several times what a fiber does in between.
typedef ucontext_t TwContext;
static void tw_cpu_prepare(TwContext *context, unsigned char *bottom, unsigned char *top, TwEntry entry) {
  getcontext(context);
  context->uc_stack.ss_sp = bottom;
  context->uc_stack.ss_size = top - bottom;
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
}
inline void tw_cpu_switch(TwContext *from, TwContext *to) { swapcontext(from, to); }
#else
typedef void *TwContext;  // the stack pointer; what a call keeps is on the stack
extern "C" __attribute__((visibility("hidden"))) void tw_cpu_switch(TwContext *from, TwContext *to);
#ifdef __x86_64__
// System V ABI: a call keeps rbx, rbp and r12 to r15.
asm(".text\n.p2align 4\n.globl tw_cpu_switch\n.hidden tw_cpu_switch\n.type tw_cpu_switch, @function\n"
    "tw_cpu_switch:\n"
    "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, (%rdi)\n  mov (%rsi), %rsp\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
    "  ret\n.size tw_cpu_switch, .-tw_cpu_switch\n");
static void tw_cpu_prepare(TwContext *context, unsigned char *, unsigned char *top, TwEntry entry) {
  // Six registers, the address to return to, and one word: the stack is 16 bytes aligned before a call pushes its address.
  void **stack = reinterpret_cast<void **>(top) - 8;
  memset(stack, 0, 8 * sizeof *stack);
  stack[6] = reinterpret_cast<void *>(entry);
  *context = stack;
}
#else
// AAPCS64: a call keeps x19 to x30 and the low halves of v8 to v15.
asm(".text\n.p2align 4\n.globl tw_cpu_switch\n.hidden tw_cpu_switch\n.type tw_cpu_switch, %function\n"
    "tw_cpu_switch:\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  ldr x9, [x1]\n  mov sp, x9\n"
    "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n  ret\n.size tw_cpu_switch, .-tw_cpu_switch\n");
static void tw_cpu_prepare(TwContext *context, unsigned char *, unsigned char *top, TwEntry entry) {
  void **stack = reinterpret_cast<void **>(top) - 20;
  memset(stack, 0, 20 * sizeof *stack);
  stack[11] = reinterpret_cast<void *>(entry);
  *context = stack;
}
#endif
#endif

// ---- Blocks --------------------------------------------------------------------------------------------------------

typedef unsigned long long TwSlot;  // one kernel argument, in its first bytes
typedef void (*TwCall)(const TwSlot *arguments);

enum TwState { TW_READY, TW_AT_BARRIER, TW_AT_SHUFFLE, TW_ENDED };
enum TwFault { TW_NO_FAULT, TW_BARRIER_DIVERGENCE, TW_SHUFFLE_DIVERGENCE, TW_DEADLOCK, TW_NO_MEMORY };
constexpr int TW_WARP = 32;

struct TwFiber {
  TwContext context;
  TwState state;
  int line;  // of the source, where it waits
};

// A shuffle hands its values over in one of two rows: a lane may be at the next shuffle while another still reads.
struct TwWarp {
  unsigned long long values[2][TW_WARP];
  unsigned int generation;
  int arrived;
};

struct TwReport { int fault, block, thread, line, other_thread, other_line; };

struct TwBlock {
  TwCall call;
  const TwSlot *arguments;
  int threads;
  TwFiber *fibers;
  TwWarp *warps;
  int *order;
  TwContext scheduler;
  int current;
  TwReport report;
};

static __thread TwBlock *tw_cpu_block;

static void tw_cpu_fiber() {
  TwBlock *b = tw_cpu_block;
  b->call(b->arguments);
  b->fibers[b->current].state = TW_ENDED;
  tw_cpu_switch(&b->fibers[b->current].context, &b->scheduler);
  __builtin_unreachable();
}

__attribute__((noinline)) static void tw_cpu_wait(TwState state, int line) {
  TwBlock *b = tw_cpu_block;
  TwFiber *f = &b->fibers[b->current];
  f->state = state;
  f->line = line;
  tw_cpu_switch(&f->context, &b->scheduler);
}

static void tw_cpu_fault(TwBlock *b, TwFault fault, int thread, int other) {
  b->report = TwReport{fault, int(blockIdx.x), thread, b->fibers[thread].line, other, b->fibers[other].line};
}

// Offer a value to the warp, and get the row that holds the values of all its lanes.
__attribute__((noinline)) static const unsigned long long *tw_cpu_exchange(unsigned long long value, int line) {
  TwBlock *b = tw_cpu_block;
  const int first = b->current / TW_WARP * TW_WARP;
  const int lanes = b->threads - first < TW_WARP ? b->threads - first : TW_WARP;
  TwWarp *w = &b->warps[b->current / TW_WARP];
  unsigned long long *row = w->values[w->generation & 1];
  row[b->current - first] = value;
  b->fibers[b->current].line = line;
  if (++w->arrived < lanes) {
    tw_cpu_wait(TW_AT_SHUFFLE, line);
    return row;
  }
  for (int t = first; t < first + lanes; ++t) {
    if (b->fibers[t].line != line) {
      tw_cpu_fault(b, TW_SHUFFLE_DIVERGENCE, t, b->current);
      tw_cpu_wait(TW_AT_SHUFFLE, line);
    }
    b->fibers[t].state = TW_READY;
  }
  w->arrived = 0;
  ++w->generation;
  return row;
}

inline void tw_barrier(int line = __builtin_LINE()) { tw_cpu_wait(TW_AT_BARRIER, line); }

template <typename T>
inline T tw_cpu_shuffle(T x, int source, int line) {
  unsigned long long bits = 0;
  memcpy(&bits, &x, sizeof x);
  bits = tw_cpu_exchange(bits, line)[source];
  memcpy(&x, &bits, sizeof x);
  return x;
}
template <typename T>
inline T tw_shuffle_xor(T x, int lanes, int line = __builtin_LINE()) {
  return tw_cpu_shuffle(x, (int(threadIdx.x) & (TW_WARP - 1)) ^ lanes, line);
}
template <typename T>
inline T tw_shuffle_down(T x, int lanes, int line = __builtin_LINE()) {
  const int lane = int(threadIdx.x) & (TW_WARP - 1);
  return tw_cpu_shuffle(x, lane + lanes < TW_WARP ? lane + lanes : lane, line);
}
template <typename T>
inline T tw_shuffle_index(T x, int lane, int line = __builtin_LINE()) {
  return tw_cpu_shuffle(x, lane, line);
}

// xorshift64* (Vigna 2016); a seed of 0 stands for the order of thread numbers.
static void tw_cpu_mix(int *order, int count, unsigned long long *seed) {
  for (int i = count - 1; *seed != 0 && i > 0; --i) {
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    const int j = int((*seed * 0x2545f4914f6cdd1dull >> 33) % (unsigned int)(i + 1));
    const int kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
}

// Run the fibers of one block to their end, or to a fault.
static void tw_cpu_run_fibers(TwBlock *b, unsigned long long seed) {
  TwDim *thread = &threadIdx;
  for (;;) {
    bool ran = false;
    tw_cpu_mix(b->order, b->threads, &seed);
    for (int i = 0; i < b->threads; ++i) {
      const int t = b->order[i];
      if (b->fibers[t].state != TW_READY) continue;
      ran = true;
      b->current = t;
      thread->x = t;
      tw_cpu_switch(&b->scheduler, &b->fibers[t].context);
      if (b->report.fault != TW_NO_FAULT) return;
    }
    if (ran) continue;
    // All wait or have ended. Threads that have ended count at no barrier.
    int first = -1;
    for (int t = 0; t < b->threads; ++t) {
      const TwFiber *f = &b->fibers[t];
      if (f->state == TW_ENDED) continue;
      if (first < 0) first = t;
      const TwFiber *g = &b->fibers[first];
      if (f->state == TW_AT_SHUFFLE) return tw_cpu_fault(b, TW_DEADLOCK, t, first);
      if (f->line != g->line) return tw_cpu_fault(b, TW_BARRIER_DIVERGENCE, t, first);
    }
    if (first < 0) return;
    for (int t = first; t < b->threads; ++t) {
      if (b->fibers[t].state == TW_AT_BARRIER) b->fibers[t].state = TW_READY;
    }
  }
}

// ---- Launches ------------------------------------------------------------------------------------------------------

constexpr size_t TW_STACK_BYTES = 64 << 10;

// Memory for the fibers of one block: for each a stack with a page below that no access is allowed to.
struct TwArena {
  TwArena *next;
  unsigned char *base;
  size_t stride, page;
  int count;
};

static pthread_mutex_t tw_cpu_arenas_lock = PTHREAD_MUTEX_INITIALIZER;
static TwArena *tw_cpu_arenas;  // those that no worker uses

static void tw_cpu_drop(TwArena *arena) {
  munmap(arena->base, arena->stride * arena->count);
  free(arena);
}

// An arena of at least `count` stacks, or null where memory is short.
static TwArena *tw_cpu_take(int count) {
  pthread_mutex_lock(&tw_cpu_arenas_lock);
  TwArena *arena = tw_cpu_arenas;
  if (arena != nullptr) tw_cpu_arenas = arena->next;
  pthread_mutex_unlock(&tw_cpu_arenas_lock);
  if (arena != nullptr && arena->count >= count) return arena;
  if (arena != nullptr) tw_cpu_drop(arena);
  arena = static_cast<TwArena *>(malloc(sizeof *arena));
  if (arena == nullptr) return nullptr;
  const size_t page = sysconf(_SC_PAGESIZE), stride = TW_STACK_BYTES + 2 * page;
  void *base = mmap(nullptr, stride * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    free(arena);
    return nullptr;
  }
  *arena = TwArena{nullptr, static_cast<unsigned char *>(base), stride, page, count};
  for (int i = 0; i < count; ++i) {
    if (mprotect(arena->base + i * stride, page, PROT_NONE) != 0) {
      tw_cpu_drop(arena);
      return nullptr;
    }
  }
  return arena;
}

static void tw_cpu_give_back(TwArena *arena) {
  pthread_mutex_lock(&tw_cpu_arenas_lock);
  arena->next = tw_cpu_arenas;
  tw_cpu_arenas = arena;
  pthread_mutex_unlock(&tw_cpu_arenas_lock);
}

// All numbers of a launch, as the caller passes them.
struct TwShape {
  int grid, threads, smem_bytes;
  int waits;  // whether the kernel has barriers or shuffles, and so needs fibers
  int workers;
  unsigned int seed;  // of the order of threads; 0 is the order of their numbers
};

struct TwJob {
  TwCall call;
  const TwSlot *arguments;
  const TwShape *shape;
  int next_block;
  int faults;
  TwReport *report;
};

static void tw_cpu_fail(TwJob *job, TwReport report) {
  if (__atomic_fetch_add(&job->faults, 1, __ATOMIC_ACQ_REL) == 0) *job->report = report;
  __atomic_store_n(&job->next_block, job->shape->grid, __ATOMIC_RELEASE);
}

static void tw_cpu_run_block(TwJob *job, TwBlock *b, TwArena *arena, int block) {
  const TwShape *s = job->shape;
  blockIdx.x = block;
  // What nobody wrote reads as NaN in every float type.
  memset(tw_smem, 0xff, s->smem_bytes);
  unsigned long long seed = s->seed == 0 ? 0 : s->seed * 0x9e3779b97f4a7c15ull + (unsigned int)block;
  if (arena == nullptr) {
    tw_cpu_mix(b->order, s->threads, &seed);
    for (int i = 0; i < s->threads; ++i) {
      threadIdx.x = b->order[i];
      job->call(job->arguments);
    }
    return;
  }
  memset(b->warps, 0, sizeof *b->warps * ((s->threads + TW_WARP - 1) / TW_WARP));
  for (int t = 0; t < s->threads; ++t) {
    unsigned char *low = arena->base + t * arena->stride + arena->page, *top = low + TW_STACK_BYTES + arena->page;
    // Equal offsets in all stacks would share the same few sets of the caches.
    tw_cpu_prepare(&b->fibers[t].context, low, top - t * 320 % int(arena->page), tw_cpu_fiber);
    b->fibers[t].state = TW_READY;
  }
  tw_cpu_run_fibers(b, seed);
  if (b->report.fault != TW_NO_FAULT) tw_cpu_fail(job, b->report);
}

static void *tw_cpu_work(void *given) {
  TwJob *job = static_cast<TwJob *>(given);
  const TwShape *s = job->shape;
  TwArena *arena = s->waits ? tw_cpu_take(s->threads) : nullptr;
  TwBlock b = {};
  b.call = job->call;
  b.arguments = job->arguments;
  b.threads = s->threads;
  b.fibers = static_cast<TwFiber *>(malloc(sizeof(TwFiber) * s->threads));
  b.warps = static_cast<TwWarp *>(malloc(sizeof(TwWarp) * ((s->threads + TW_WARP - 1) / TW_WARP)));
  b.order = static_cast<int *>(malloc(sizeof(int) * s->threads));
  if ((s->waits && arena == nullptr) || b.fibers == nullptr || b.warps == nullptr || b.order == nullptr) {
    tw_cpu_fail(job, TwReport{TW_NO_MEMORY, 0, 0, 0, 0, 0});
  } else {
    tw_cpu_block = &b;
    for (int i = 0; i < s->threads; ++i) b.order[i] = i;
    for (;;) {
      const int block = __atomic_fetch_add(&job->next_block, 1, __ATOMIC_ACQ_REL);
      if (block < 0 || block >= s->grid) break;
      tw_cpu_run_block(job, &b, arena, block);
    }
    tw_cpu_block = nullptr;
  }
  free(b.fibers);
  free(b.warps);
  free(b.order);
  if (arena != nullptr) tw_cpu_give_back(arena);
  return nullptr;
}

// Run all blocks; the fault of one of them in `report`, which starts as none.
__attribute__((noinline)) static void tw_cpu_launch(TwCall call, const TwSlot *arguments, const TwShape *shape, TwReport *report) {
  TwJob job = {call, arguments, shape, 0, 0, report};
  pthread_t helpers[64];
  int count = 0;
  while (count < shape->workers - 1 && count < 64 && pthread_create(&helpers[count], nullptr, tw_cpu_work, &job) == 0) {
    ++count;
  }
  tw_cpu_work(&job);
  while (count > 0) pthread_join(helpers[--count], nullptr);
}

// Call a kernel with the arguments in the slots, whatever its parameters.
template <int... I>
struct TwNumbers {};
template <int N, int... I>
struct TwCount : TwCount<N - 1, N - 1, I...> {};
template <int... I>
struct TwCount<0, I...> { typedef TwNumbers<I...> numbers; };

template <typename T>
inline T tw_cpu_argument(const TwSlot *slot) {
  T value;
  memcpy(&value, slot, sizeof value);
  return value;
}
template <typename... T, int... I>
inline void tw_cpu_apply(void (*kernel)(T...), const TwSlot *arguments, TwNumbers<I...>) {
  kernel(tw_cpu_argument<T>(arguments + I)...);
}
template <typename... T>
inline void tw_cpu_call(void (*kernel)(T...), const TwSlot *arguments) {
  tw_cpu_apply(kernel, arguments, typename TwCount<int(sizeof...(T))>::numbers());
}
