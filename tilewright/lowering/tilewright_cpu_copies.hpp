// cp.async on this machine: a copy is queued, and its bytes land at the latest legal moment, when its thread waits for the
// group. So a wait that is missing or too weak leaves what was in shared memory before.

#include <stdlib.h>

struct TwCopy {
  void *to;
  const void *from;
  int bytes, valid;
  int group;
};

struct TwCopies {
  TwCopy *list;
  int count, capacity;
  int groups;  // committed so far
  int line;    // of the source, of the last copy
};

static __thread TwCopies tw_cpu_copies[1024];  // of the threads of the worker's block

__attribute__((noinline)) static void tw_cpu_copy(TwCopy copy, int line) {
  TwCopies *q = &tw_cpu_copies[threadIdx.x];
  if (q->count == q->capacity) {
    q->capacity = q->capacity == 0 ? 16 : 2 * q->capacity;
    q->list = static_cast<TwCopy *>(realloc(q->list, q->capacity * sizeof *q->list));
    if (q->list == nullptr) abort();
  }
  copy.group = q->groups;
  q->list[q->count++] = copy;
  q->line = line;
}

template <int Bytes>
inline void tw_cp_async_zfill(void *to, const void *from, int valid, int line = __builtin_LINE()) {
  tw_cpu_copy(TwCopy{to, from, Bytes, valid, 0}, line);
}
template <int Bytes>
inline void tw_cp_async(void *to, const void *from, int line = __builtin_LINE()) {
  tw_cpu_copy(TwCopy{to, from, Bytes, Bytes, 0}, line);
}

inline void tw_cp_async_commit() { ++tw_cpu_copies[threadIdx.x].groups; }

template <int Pending>
inline void tw_cp_async_wait() {
  TwCopies *q = &tw_cpu_copies[threadIdx.x];
  int landed = 0;
  for (; landed < q->count && q->list[landed].group < q->groups - Pending; ++landed) {
    const TwCopy *c = &q->list[landed];
    memcpy(c->to, c->from, c->valid);
    memset(static_cast<unsigned char *>(c->to) + c->valid, 0, c->bytes - c->valid);
  }
  if (landed == 0) return;
  q->count -= landed;
  memmove(q->list, q->list + landed, q->count * sizeof *q->list);
}

// A thread begins; whether one ends with copies that it has not waited for.
inline void tw_cpu_begin_copies() {
  TwCopies *q = &tw_cpu_copies[threadIdx.x];
  q->count = q->groups = 0;
}
inline bool tw_cpu_copies_left() { return tw_cpu_copies[threadIdx.x].count != 0; }

static void tw_cpu_free_copies() {
  for (TwCopies &q : tw_cpu_copies) {
    free(q.list);
    q = TwCopies{};
  }
}
