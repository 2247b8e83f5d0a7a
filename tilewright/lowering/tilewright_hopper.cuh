// What sources for sm_90a call beyond tilewright_intrinsics.cuh: barriers in memory, tensor maps, matrix instructions of a
// warpgroup. The text stands in a source that uses one of them. For the GPU alone: a host compiler has no bodies for these.
// Instructions as in the PTX ISA 8.0 and later: mbarrier, cp.async.bulk.tensor, wgmma, stmatrix, setmaxnreg.

#ifndef TW_HOPPER
#define TW_HOPPER

// A CUtensorMap, passed by value.
struct alignas(64) TwTensorMap { unsigned char bytes[128]; };

// ---- Barriers and fences -------------------------------------------------------------------------------------------

TW_DEVICE void tw_mbar_init(unsigned bar, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}
TW_DEVICE void tw_mbar_arrive(unsigned bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
TW_DEVICE void tw_mbar_expect(unsigned bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
TW_DEVICE void tw_mbar_wait(unsigned bar, int parity) {
  unsigned done;
  do {
    asm volatile(
        "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
  } while (!done);
}
// Blocks of a cluster. The scope of the default, the block, is enough for barriers between copies and matrix instructions:
// what they guard is written and read by asynchronous units. With .cluster they became fences of all memory.
TW_DEVICE int tw_cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
TW_DEVICE void tw_cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
}
TW_DEVICE void tw_mbar_arrive_at(unsigned bar, int rank) {
  asm volatile(
      "{\n .reg .b32 remote;\n mapa.shared::cluster.u32 remote, %0, %1;\n"
      " mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(bar),
      "r"(rank)
      : "memory");
}
TW_DEVICE void tw_fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
TW_DEVICE void tw_fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
template <int Number, int Threads>
TW_DEVICE void tw_named_barrier() {
  asm volatile("bar.sync %0, %1;" ::"n"(Number), "n"(Threads) : "memory");
}

// Registers of each thread of a warpgroup: more, or fewer, than the kernel started with.
template <int Count>
TW_DEVICE void tw_more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count)); }
template <int Count>
TW_DEVICE void tw_fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count)); }

// ---- Tensor maps ---------------------------------------------------------------------------------------------------
// Coordinates count elements, innermost dim first.

TW_DEVICE void tw_prefetch_map(const TwTensorMap *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
TW_DEVICE void tw_tma_load(unsigned to, const TwTensorMap *map, unsigned bar, int c0) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];" ::"r"(to),
      "l"(map), "r"(bar), "r"(c0)
      : "memory");
}
TW_DEVICE void tw_tma_load(unsigned to, const TwTensorMap *map, unsigned bar, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(bar), "r"(c0), "r"(c1)
      : "memory");
}
TW_DEVICE void tw_tma_load(unsigned to, const TwTensorMap *map, unsigned bar, int c0, int c1, int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(
          to),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
// To the same place in the blocks of the cluster whose bits are set in Blocks, counted at the same barrier of each.
template <int Blocks>
TW_DEVICE void tw_tma_load_multicast(unsigned to, const TwTensorMap *map, unsigned bar, int c0) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4}], "
      "[%2], %3;" ::"r"(to),
      "l"(map), "r"(bar), "h"(static_cast<unsigned short>(Blocks)), "r"(c0)
      : "memory");
}
template <int Blocks>
TW_DEVICE void tw_tma_load_multicast(unsigned to, const TwTensorMap *map, unsigned bar, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5}], "
      "[%2], %3;" ::"r"(to),
      "l"(map), "r"(bar), "h"(static_cast<unsigned short>(Blocks)), "r"(c0), "r"(c1)
      : "memory");
}
template <int Blocks>
TW_DEVICE void tw_tma_load_multicast(unsigned to, const TwTensorMap *map, unsigned bar, int c0, int c1, int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5, %6}], "
      "[%2], %3;" ::"r"(to),
      "l"(map), "r"(bar), "h"(static_cast<unsigned short>(Blocks)), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
TW_DEVICE void tw_tma_store(unsigned from, const TwTensorMap *map, int c0) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%1, {%2}], [%0];" ::"r"(from), "l"(map), "r"(c0)
               : "memory");
}
TW_DEVICE void tw_tma_store(unsigned from, const TwTensorMap *map, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%1, {%2, %3}], [%0];" ::"r"(from), "l"(map),
               "r"(c0), "r"(c1)
               : "memory");
}
TW_DEVICE void tw_tma_store(unsigned from, const TwTensorMap *map, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%1, {%2, %3, %4}], [%0];" ::"r"(from), "l"(map),
               "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}
TW_DEVICE void tw_bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int Pending>
TW_DEVICE void tw_bulk_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(Pending) : "memory"); }
template <int Pending>
TW_DEVICE void tw_bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory"); }

// ---- Matrix instructions -------------------------------------------------------------------------------------------

TW_DEVICE void tw_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TW_DEVICE void tw_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Pending>
TW_DEVICE void tw_wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory"); }

// Keeps the compiler from moving uses of accumulators above the wait for them.
template <int Count>
TW_DEVICE void tw_pin(float *r) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(r[i])::"memory");
}

// The descriptor of an operand in shared memory. Layout: 1, 2, 3 for a swizzle of 128, 64, 32 bytes.
template <int Leading, int Stride, int Layout>
TW_DEVICE unsigned long long tw_wgmma_operand(unsigned address) {
  return static_cast<unsigned long long>((address & 0x3ffff) >> 4) | (static_cast<unsigned long long>(Leading >> 4) << 16) |
         (static_cast<unsigned long long>(Stride >> 4) << 32) | (static_cast<unsigned long long>(Layout) << 62);
}

// d[i * Row + (2 * j + c) * Column] is the accumulator of rows 8 * i + .., columns 8 * j + c + .., in the order of the
// instruction.
#define TW_4(j) "+f"(d[2 * (j) * Column]), "+f"(d[(2 * (j) + 1) * Column]), "+f"(d[Row + 2 * (j) * Column]), \
                "+f"(d[Row + (2 * (j) + 1) * Column])
#define TW_8(j) TW_4(j), TW_4(j + 1)
#define TW_16(j) TW_8(j), TW_8(j + 2)
#define TW_32(j) TW_16(j), TW_16(j + 4)
#define TW_64(j) TW_32(j), TW_32(j + 8)
#define TW_NAMES_4 "%0, %1, %2, %3"
#define TW_NAMES_8 TW_NAMES_4 ", %4, %5, %6, %7"
#define TW_NAMES_16 TW_NAMES_8 \
  ", %8, %9, %10, %11, %12, %13, %14, %15"
#define TW_NAMES_32 TW_NAMES_16 \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TW_NAMES_48 TW_NAMES_32 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define TW_NAMES_64 TW_NAMES_48 \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TW_NAMES_96 TW_NAMES_64 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TW_NAMES_128 TW_NAMES_96 \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// The operands behind the accumulators: the two descriptors, a true predicate's source, whether each operand is contiguous
// along its own dim (16-bit types alone may be).
#define TW_WGMMA_16(n, name, type, names, a, b, one, ta, tb, ...)                                                     \
  template <int Row, int TransA, int TransB, int Column = 1>                                                          \
  TW_DEVICE void tw_wgmma_##name##_n##n(float *d, unsigned long long lhs, unsigned long long rhs) {                   \
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %" #one ", 0;\n wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." \
                 type "." type " {" names "}, %" #a ", %" #b ", p, 1, 1, %" #ta ", %" #tb ";\n}"                        \
                 : __VA_ARGS__                                                                                        \
                 : "l"(lhs), "l"(rhs), "r"(1), "n"(TransA), "n"(TransB));                                             \
  }
#define TW_WGMMA_32(n, names, a, b, one, ...)                                                                         \
  template <int Row, int TransA, int TransB, int Column = 1>                                                          \
  TW_DEVICE void tw_wgmma_tf32_n##n(float *d, unsigned long long lhs, unsigned long long rhs) {                       \
    static_assert(TransA == 0 && TransB == 0, "tf32 operands are contiguous along k");                                \
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %" #one ", 0;\n wgmma.mma_async.sync.aligned.m64n" #n             \
                 "k8.f32.tf32.tf32 {" names "}, %" #a ", %" #b ", p, 1, 1;\n}"                                         \
                 : __VA_ARGS__                                                                                        \
                 : "l"(lhs), "l"(rhs), "r"(1));                                                                       \
  }
// The same with the left operand in registers, which stand in front of the other's descriptor.
#define TW_WGMMA_REGS(n, names, a0, a1, a2, a3, b, one, ...)                                                          \
  template <int Row, int Column>                                                                                      \
  TW_DEVICE void tw_wgmma_tf32_regs_n##n(float *d, const float *a, unsigned long long rhs) {                          \
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %" #one ", 0;\n wgmma.mma_async.sync.aligned.m64n" #n             \
                 "k8.f32.tf32.tf32 {" names "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b ", p, 1, 1;\n}"         \
                 : __VA_ARGS__                                                                                        \
                 : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),                \
                   "r"(__float_as_uint(a[3])), "l"(rhs), "r"(1));                                                     \
  }
#define TW_WGMMA(n, names, a, b, one, ta, tb, last, ...)                            \
  TW_WGMMA_16(n, bf16, "bf16", names, a, b, one, ta, tb, __VA_ARGS__)               \
  TW_WGMMA_16(n, f16, "f16", names, a, b, one, ta, tb, __VA_ARGS__)                 \
  TW_WGMMA_32(n, names, a, b, one, __VA_ARGS__)                                     \
  TW_WGMMA_REGS(n, names, a, b, one, ta, tb, last, __VA_ARGS__)

TW_WGMMA(8, TW_NAMES_4, 4, 5, 6, 7, 8, 9, TW_4(0))
TW_WGMMA(16, TW_NAMES_8, 8, 9, 10, 11, 12, 13, TW_8(0))
TW_WGMMA(32, TW_NAMES_16, 16, 17, 18, 19, 20, 21, TW_16(0))
TW_WGMMA(64, TW_NAMES_32, 32, 33, 34, 35, 36, 37, TW_32(0))
TW_WGMMA(96, TW_NAMES_48, 48, 49, 50, 51, 52, 53, TW_32(0), TW_16(8))
TW_WGMMA(128, TW_NAMES_64, 64, 65, 66, 67, 68, 69, TW_64(0))
TW_WGMMA(192, TW_NAMES_96, 96, 97, 98, 99, 100, 101, TW_64(0), TW_32(16))
TW_WGMMA(256, TW_NAMES_128, 128, 129, 130, 131, 132, 133, TW_64(0), TW_64(16))

// Eight 16-bit elements of each lane, two of each of four 8 x 8 matrices, to the rows whose addresses the lanes give.
template <bool Trans, typename T>
TW_DEVICE void tw_stmatrix(unsigned row, const T *r) {
  unsigned word[4];
  T part[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) part[i] = r[i];
  memcpy(word, part, 16);
  if constexpr (Trans) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(word[0]),
                 "r"(word[1]), "r"(word[2]), "r"(word[3])
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(word[0]),
                 "r"(word[1]), "r"(word[2]), "r"(word[3])
                 : "memory");
  }
}

#endif
