// RUN: tilewright-opt %s -t 'cuda{arch=sm_90a}' | filecheck %s

sym.symbol @N

// The intrinsics header comes first, then each kernel under a name that holds no other text of the IR.
// CHECK-NOT:  #define TW_F16
// CHECK:      #define TW_BF16
// CHECK:      #define TW_DEVICE
// CHECK:      extern __shared__ __align__(16) unsigned char tw_smem[];
// CHECK:      extern "C" __global__ void __launch_bounds__(64) tw_sum_up_{{[0-9a-f]*}}(const float *__restrict__ v0, __nv_bfloat16 *__restrict__ v1, float v2, int v3) {
// CHECK-NEXT:   const int v4 = static_cast<int>(threadIdx.x);
// CHECK-NEXT:   float *v5 = reinterpret_cast<float *>(tw_smem + 0);
// CHECK-NEXT:   float v6[2][4];
// CHECK-NEXT:   #pragma unroll
// CHECK-NEXT:   for (int v7 = 0; v7 < 2; ++v7) {
// CHECK-NEXT:     const int v8 = v7 * 256;
// CHECK-NEXT:     const int v9 = static_cast<int>(static_cast<unsigned int>(v8) + static_cast<unsigned int>(v4));
// CHECK-NEXT:     const bool v10 = v9 < v3;
// CHECK-NEXT:     tw_load_readonly_or<4, float>(&v6[v7][0], v0 + v9, v10, __int_as_float(0xff800000));
// CHECK-NEXT:   }
// CHECK-NEXT:   tw_barrier();
// CHECK-NEXT:   const float v11 = v6[1][3];
// CHECK-NEXT:   const float v12 = tw_shuffle_xor(v11, 16);
// CHECK-NEXT:   const float v13 = tw_maximum(v11, v12);
// CHECK-NEXT:   const float v14 = tw_fma(v13, v2, 0.1{{[0-9]*}}f);
// CHECK-NEXT:   float v15 = v14;
// CHECK-NEXT:   #pragma unroll 2
// CHECK-NEXT:   for (int v16 = 0; v16 < v3; v16 += 1) {
// CHECK-NEXT:     const float v17 = v15 * v2;
// CHECK-NEXT:     v15 = v17;
// CHECK-NEXT:   }
// CHECK-NEXT:   const __nv_bfloat16 v18 = tw_bf16(v15);
simt.kernel @"sum up"(%x : !simt.global<f32>, %y : !simt.global<bf16>, %scale : f32, %n : i32) threads 64 smem 64 grid [1] params [N] {
  %t = simt.tid
  %s = simt.shared at 0 : !simt.smem<[16], f32>
  %r = simt.regs.alloc : !simt.regs<[2, 4], f32>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %step = arith.constant 256 : i32
  simt.unroll %u < 2 {
    %o = arith.muli %u, %step overflow<nsw> : i32
    %i = arith.addi %o, %t : i32
    %c = arith.cmpi slt, %i, %n : i32
    simt.load %x[%i] into %r[%u, %zero] width 4 if %c else 0xFF800000 : f32
  }
  simt.barrier
  %a = simt.regs.load %r[%one, %three]
  %b = simt.shuffle xor %a, 16
  %m = arith.maximumf %a, %b : f32
  %tenth = arith.constant 0.1 : f32
  %f = math.fma %m, %scale, %tenth : f32
  %p = scf.for %i = %zero to %n step %one iter_args(%q = %f) -> (f32) : i32 {
    %w = arith.mulf %q, %scale : f32
    scf.yield %w : f32
  } {unroll = 2 : i64}
  %h = arith.truncf %p : f32 to bf16
  %g = simt.regs.alloc : !simt.regs<[], bf16>
  simt.regs.store %h to %g
  simt.store %g to %y[%t] width 1
}
