// A launch: worker threads that take one block after the other, the stacks of their fibers, and the kernel's arguments.

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

constexpr size_t TW_STACK_BYTES = 64 << 10;

// Memory for the fibers of one block: for each a stack with a page below that no access is allowed to.
struct TwArena {
  unsigned char *base;
  size_t stride, page;
  int count;
};

// Arenas that no worker uses. All loaded units share one pool, which the caller hands to each launch: each stack is two
// mappings of the process, of which a system has some ten thousand.
constexpr int TW_POOL_ARENAS = 32;
struct TwPool {
  TwArena *free[TW_POOL_ARENAS];
};

static void tw_cpu_drop(TwArena *arena) {
  munmap(arena->base, arena->stride * arena->count);
  free(arena);
}

// An arena of at least `count` stacks, or null where memory is short.
static TwArena *tw_cpu_take(TwPool *pool, int count) {
  TwArena *arena = nullptr;
  for (int i = 0; i < TW_POOL_ARENAS; ++i) {
    if (__atomic_load_n(&pool->free[i], __ATOMIC_RELAXED) == nullptr) continue;
    arena = __atomic_exchange_n(&pool->free[i], static_cast<TwArena *>(nullptr), __ATOMIC_ACQ_REL);
    if (arena == nullptr) continue;
    if (arena->count >= count) return arena;
    tw_cpu_drop(arena);
  }
  arena = static_cast<TwArena *>(malloc(sizeof *arena));
  if (arena == nullptr) return nullptr;
  const size_t page = sysconf(_SC_PAGESIZE), stride = TW_STACK_BYTES + 2 * page;
  void *base = mmap(nullptr, stride * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    free(arena);
    return nullptr;
  }
  *arena = TwArena{static_cast<unsigned char *>(base), stride, page, count};
  for (int i = 0; i < count; ++i) {
    if (mprotect(arena->base + i * stride, page, PROT_NONE) != 0) {
      tw_cpu_drop(arena);
      return nullptr;
    }
  }
  return arena;
}

static void tw_cpu_give_back(TwPool *pool, TwArena *arena) {
  for (int i = 0; i < TW_POOL_ARENAS; ++i) {
    TwArena *none = nullptr;
    if (__atomic_compare_exchange_n(&pool->free[i], &none, arena, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  }
  tw_cpu_drop(arena);
}

// All numbers of a launch, as the caller passes them.
struct TwShape {
  int grid, threads, smem_bytes;
  int waits;  // whether threads wait for each other or for copies, and so are fibers
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
  TwPool *pool;
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
  TwArena *arena = s->waits ? tw_cpu_take(job->pool, s->threads) : nullptr;
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
  if (s->waits) tw_cpu_free_copies();
  if (arena != nullptr) tw_cpu_give_back(job->pool, arena);
  return nullptr;
}

// Run all blocks; the fault of one of them in `report`, which starts as none.
__attribute__((noinline)) static void tw_cpu_launch(
    TwCall call, const TwSlot *arguments, const TwShape *shape, TwReport *report, TwPool *pool) {
  TwJob job = {call, arguments, shape, 0, 0, report, pool};
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
