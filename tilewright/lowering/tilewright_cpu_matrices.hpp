// ldmatrix and mma.sync on this machine: the lanes of a warp exchange addresses and operands. TwMma and TwLdmatrix, which
// lane holds what, are made from dialects/simt/fragments.py.

template <int Count, bool Transposed, typename T>
inline void tw_ldmatrix(T *r, const T *p, int line = __builtin_LINE()) {
  constexpr int per = 4 / sizeof(T);
  const unsigned long long *rows = tw_cpu_exchange(reinterpret_cast<unsigned long long>(p), line);
  const unsigned char(*places)[2] = TwLdmatrix<sizeof(T), Transposed>::places[threadIdx.x % TW_WARP];
  for (int i = 0; i < Count * per; ++i) r[i] = reinterpret_cast<const T *>(rows[places[i][0]])[places[i][1]];
}

// Operands of a warp as whole matrices, in one of two copies: a lane may be at the next product while another still reads.
struct TwOperands { float a[2][16 * 16], b[2][16 * 8]; };
static __thread TwOperands tw_cpu_operands[1024 / TW_WARP];

inline float tw_cpu_operand(__half x) { return __half2float(x); }
inline float tw_cpu_operand(__nv_bfloat16 x) { return __bfloat162float(x); }
// tf32: what is beyond 10 bits of fraction is ignored.
inline float tw_cpu_operand(float x) {
  unsigned int bits;
  memcpy(&bits, &x, sizeof bits);
  return __int_as_float(int(bits & 0xffffe000u));
}

// Products are exact, and added to c one by one, each sum rounded to f32, as the simulator does.
template <int K, typename T>
inline void tw_cpu_mma(float *c, const T *a, const T *b, int line) {
  typedef TwMma<K, sizeof(T)> Shape;
  const int lane = threadIdx.x % TW_WARP, warp = threadIdx.x / TW_WARP;
  const int copy = tw_cpu_block->warps[warp].generation & 1;
  float *whole_a = tw_cpu_operands[warp].a[copy], *whole_b = tw_cpu_operands[warp].b[copy];
  for (int i = 0; i < Shape::a_count; ++i) whole_a[Shape::a[lane][i]] = tw_cpu_operand(a[i]);
  for (int i = 0; i < Shape::b_count; ++i) whole_b[Shape::b[lane][i]] = tw_cpu_operand(b[i]);
  tw_cpu_exchange(0, line);
  for (int i = 0; i < Shape::c_count; ++i) {
    const int row = Shape::c[lane][i] / Shape::columns, column = Shape::c[lane][i] % Shape::columns;
    float sum = c[i];
    for (int k = 0; k < K; ++k) sum += whole_a[row * K + k] * whole_b[k * Shape::columns + column];
    c[i] = sum;
  }
}
template <typename T>
inline void tw_mma_m16n8k16(float *c, const T *a, const T *b, int line = __builtin_LINE()) {
  tw_cpu_mma<16>(c, a, b, line);
}
template <typename T>
inline void tw_mma_m16n8k8(float *c, const T *a, const T *b, int line = __builtin_LINE()) {
  tw_cpu_mma<8>(c, a, b, line);
}
