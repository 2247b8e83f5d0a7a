"""The emitter table: for each class of op the function that writes it.

An entry is a function `(w: Writer, op) -> None`. It writes the op's statements with `w.line` and `w.braces`, reads the
expressions of operands with `w.name(value)`, and says what the results are called: `w.result(op, expression)` declares
the variable of an op with one result, `w.bind(value)` makes a name, and `w.names[value] = text` stands for a value that
needs no variable. Types, casts and constants are written by `w.c_type`, `w.cast_to` and `w.literal`, which ask the
target's `Spelling`. What is not plain C++ is a call of a wrapper `tw_...`, which the target's header defines:

| wrapper | does |
|---|---|
| `tw_load<N>(T *r, const T *p)`, `tw_load_readonly<N>` | memory to registers; p is a multiple of N elements |
| `tw_load_or<N, T>(T *r, const T *p, bool mask, T other)`, `tw_load_readonly_or<N, T>` | the same, or N times `other` |
| `tw_load_unaligned<N, Swizzle, T>(r, array, i, before, after, other)`, `tw_load_readonly_unaligned` | from any i on |
| `tw_store_unaligned<N>(T *p, const T *r, before, after)`, `tw_misaligned<N>(const T *p)` | to any p; p beyond Ns |
| `tw_store<N>(T *p, const T *r)`, `tw_fill<N, T>(T *r, T value)` | registers to memory; registers set to a value |
| `tw_barrier()`, `tw_shuffle_{xor,down,index}(T x, int)` | all threads of a block wait; 32 lanes exchange |
| `tw_ldmatrix<N, trans>(T *r, const T *p)`, `tw_mma_m16n8k16(float *c, const T *a, const T *b)` | a warp's matrices |
| `tw_cp_async<bytes>(to, from)`, `_zfill<bytes>(to, from, valid)`, `_commit()`, `_wait<N>()` | asynchronous copies |
| `tw_mbar_...`, `tw_tma_...`, `tw_wgmma_...`, `tw_stmatrix` and the rest of `tilewright_hopper.cuh` | sm_90a alone |
| `tw_quotient<T>`, `tw_remainder<T>`, `tw_floordiv<T>`, `tw_ceildiv<T>`, `tw_ipow<T, U>` | integers |
| `tw_maximum`, `tw_minimum`, `tw_maxnum`, `tw_minnum`, `tw_fma`, `tw_bitcast<T>` | floats, NaN as in `arith` |
| `tw_float`, `tw_f16`, `tw_bf16`, `tw_f16_bits`, `tw_bf16_bits` | 16-bit floats, where the target has them |
| `tw_round_bf16(float)` | to bf16 and back, in f32 |

A target takes the tables that fit it and replaces entries: `{**ARITHMETIC, **STRUCTURED, TidOp: my_tid}`. An op without
an entry is an error at the op that names it and the target.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.lowering.simt_to_cuda.arithmetic import ARITHMETIC
from tilewright.lowering.simt_to_cuda.hopper import HOPPER
from tilewright.lowering.simt_to_cuda.mathematics import CUDA_MATHEMATICS, MATHEMATICS
from tilewright.lowering.simt_to_cuda.matrices import MATRICES
from tilewright.lowering.simt_to_cuda.structured import STRUCTURED
from tilewright.lowering.simt_to_cuda.writer import Write

EMITTERS: dict[type[Operation], Write] = {
    **ARITHMETIC,
    **MATHEMATICS,
    **CUDA_MATHEMATICS,
    **STRUCTURED,
    **MATRICES,
    **HOPPER,
}
"""From the class of an op to the function that writes it as CUDA C++."""
