"""Twenty faults written by hand, before the first run: what a person gets wrong in a compiler, and no table of
operators would think of. Each is a piece of a file, unique there, and what it becomes.

A piece that is no longer in its file is an error of `python -m tests.mutants --list` and of `test_mutants.py`: write
the same fault for the code as it is now, and keep the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Handwritten:
    """A fault: in the file (below `tilewright/`), `old`, which stands there once, becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    why: str


HANDWRITTEN: Final = (
    Handwritten(
        "pitch-of-outer-dims-only",
        "passes/pad_shared.py",
        "for d, s in enumerate(strides) if d != axis):",
        "for d, s in enumerate(strides) if d > axis):",
        "only strides inside the vector dim are held to the width, so an odd pitch gets wide, unaligned accesses",
    ),
    Handwritten(
        "alignment-in-elements",
        "passes/vectorise.py",
        "        size = bytes_of(type_.element) * width\n",
        "        size = width\n",
        "a base address is a number of bytes, but is held to a multiple of elements",
    ),
    Handwritten(
        "loop-seen-once",
        "passes/remove_barriers.py",
        "TURNS = (0, 1, 2)",
        "TURNS = (0, 1)",
        "what the end of a loop's body does to the start of its next turn is not looked at",
    ),
    Handwritten(
        "write-after-read-forgotten",
        "passes/remove_barriers.py",
        "(earlier.writes or event.writes)",
        "earlier.writes",
        "a buffer is overwritten while other threads still read it",
    ),
    Handwritten(
        "read-served-past-a-write",
        "passes/cse.py",
        "            reads = _Scope(None)\n            continue\n",
        "            continue\n",
        "a load after a store is taken for the load before it",
    ),
    Handwritten(
        "ceiling-for-positive-numbers",
        "passes/integer_folds.py",
        "is None else -(-left // right)",
        "is None else (left + right - 1) // right",
        "the usual ceiling formula is wrong for a negative divisor",
    ),
    Handwritten(
        "negative-index-is-inside",
        "passes/prove_bounds.py",
        'inside = (Relation(at, ">=", Expr.const(0)), Relation(at, "<", size))',
        'inside = (Relation(at, "<", size),)',
        "an index is held to the end of the dim, not to its start",
    ),
    Handwritten(
        "producer-read-in-result-order",
        "passes/generic_fusion.py",
        "at = dict(zip(producer.out_map, indices, strict=True))",
        "at = dict(enumerate(indices))",
        "the iteration dims of a producer are taken to be the dims of its result: right unless it transposes",
    ),
    Handwritten(
        "slice-offset-not-scaled",
        "passes/cancel_movement.py",
        "[a + s * b for a, s, b in zip(inner.offsets, inner.strides, op.offsets, strict=True)]",
        "[a + b for a, b in zip(inner.offsets, op.offsets, strict=True)]",
        "a slice of a slice with steps starts where the outer one starts in elements of the original",
    ),
    Handwritten(
        "loop-facts-leak",
        "passes/tile_analysis.py",
        "        scope = outer.child()\n",
        "        scope = outer\n",
        "what a loop implies (it runs, so its bound is positive) is believed after it as well",
    ),
    Handwritten(
        "sign-lost-when-widened",
        "lowering/tile_to_simt/builder.py",
        "op = arith.TruncIOp if narrow else arith.ExtSIOp",
        "op = arith.TruncIOp if narrow else arith.ExtUIOp",
        "a negative i32 becomes a number near 2^32 when addresses are 64 bits wide",
    ),
    Handwritten(
        "trips-rounded-down",
        "lowering/tile_to_simt/kernel.py",
        "trips = max(0, -((first - last) // by))",
        "trips = max(0, (last - first) // by)",
        "the last, partial turn of a loop with constant bounds is not run",
    ),
    Handwritten(
        "mask-of-the-tile-not-the-thread",
        "lowering/tile_to_simt/copies.py",
        "builder.sub_int(builder.param(type_.dims[d]), firsts[d])",
        "builder.sub_int(builder.param(type_.dims[d]), builder.widen(starts[d]))",
        "the place of the thread in the tile is left out of its mask",
    ),
    Handwritten(
        "scratch-reused-too-soon",
        "lowering/tile_to_simt/reduction.py",
        "        mask = first_copy(builder, writers)\n        self.barrier()\n",
        "        mask = first_copy(builder, writers)\n",
        "the next turn of a loop writes to the scratch while a warp still reads what this one wrote",
    ),
    Handwritten(
        "unordered-is-false",
        "lowering/simt_to_cuda/arithmetic.py",
        '    "!({a} <= {b})",\n',
        '    "{a} > {b}",\n',
        "the unordered comparison is false for a NaN",
    ),
    Handwritten(
        "carried-values-one-by-one",
        "lowering/simt_to_cuda/structured.py",
        "    if len(targets) > 1:\n",
        "    if len(targets) > 2:\n",
        "two values that a loop swaps are assigned one after the other",
    ),
    Handwritten(
        "schedule-facts-leak",
        "lowering/host_plan.py",
        "facts = children[schedule.facts] = self.facts.child()\n",
        "facts = children[schedule.facts] = self.facts\n",
        "what holds where one schedule is chosen is believed for the next",
    ),
    Handwritten(
        "negative-stride-forgotten",
        "lowering/host_variants.py",
        "smax(stride, -stride, 1)",
        "smax(stride, 1)",
        "32-bit indices are thought to suffice for a tensor that is walked backwards",
    ),
    Handwritten(
        "input-read-in-two-ways",
        "lowering/lin_to_tile/group_space.py",
        "                self.parent = before\n                return\n",
        "                return\n",
        "dims stay joined that would make one generic walk a diagonal (x plus its transpose)",
    ),
    Handwritten(
        "zeros-ordered-the-wrong-way",
        "lowering/tilewright_intrinsics.cuh",
        "return a == b ? (__builtin_signbit(a) ? a : b) : a < b ? a : b;",
        "return a == b ? (__builtin_signbit(a) ? b : a) : a < b ? a : b;",
        "the minimum of +0.0 and -0.0 is +0.0 on the host: pasted from the maximum",
    ),
)
"""All of them; the number is fixed, the order is not of interest."""
