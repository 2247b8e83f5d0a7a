// The threads of a block as fibers of one worker thread, which runs them in turns: each goes on until it waits at a barrier
// or a shuffle, or ends. TW_CPU_UCONTEXT takes the portable context switch.

#if !defined(TW_CPU_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define TW_CPU_UCONTEXT
#endif
#ifdef TW_CPU_UCONTEXT
#include <ucontext.h>
#endif

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
enum TwFault { TW_NO_FAULT, TW_BARRIER_DIVERGENCE, TW_SHUFFLE_DIVERGENCE, TW_DEADLOCK, TW_NO_MEMORY, TW_COPIES_LEFT };
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
  tw_cpu_begin_copies();
  b->call(b->arguments);
  if (tw_cpu_copies_left()) {
    const int line = tw_cpu_copies[b->current].line;
    b->report = TwReport{TW_COPIES_LEFT, int(blockIdx.x), b->current, line, b->current, line};
  }
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
