"""Schedules that tile-to-simt cannot carry out: each is one error at the op, with what was expected and what came."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i64

from tests.lowering.support import kernel_text, lowered
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.wgmma import WgmmaWaitOp

SPREAD = "dist #tile.distributed<threads [16, 16] strides [16, 1] vector [1, 1]>"
VECTOR = "!tile.buf<[16], f32, global, #tile.strided<[1]>>"
MATRIX = "!tile.buf<[16, 16], f32, global, #tile.strided<[16, 1]>>"


def kernel(body: str, arguments: str = "", threads: int = 32) -> str:
    """A kernel of one block."""
    return f"tile.kernel @k({arguments}) grid (%i) = [1] threads {threads} index_width 32 {{ {body} }}"


def fragment(name: str, sizes: list[int], threads: list[int], strides: list[int], element: str = "f32") -> str:
    """A fragment spread over threads, one element each."""
    layout = f"#tile.distributed<threads {threads} strides {strides} vector {[1] * len(sizes)}>"
    return f"%{name} = tile.alloc : !tile.buf<{sizes}, {element}, fragment, {layout}> "


def product(lhs: str, rhs: str, acc: str) -> str:
    """A product of fragments %a, %b into %c."""
    return lhs + rhs + acc + "tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %c[d0, d1] inst fma"


ERRORS = {
    "a copy without its width": (
        kernel_text("row_sum").replace("other 0.0 : f32 via thread width 1", "other 0.0 : f32"),
        "tile.copy: expected a scheduled op, got one without via, width",
    ),
    "a distribution of another rank": (
        kernel_text("matmul").replace(SPREAD, "dist #tile.distributed<threads [16] strides [1] vector [1]>"),
        "tile.copy: expected a distribution of 2 dims, got 1",
    ),
    "threads that do not divide the tile": (
        kernel_text("matmul").replace(SPREAD, SPREAD.replace("[16, 16] strides [16, 1]", "[24, 8] strides [8, 1]")),
        "tile.copy: size 64 is no multiple of threads 24 times vector 1",
    ),
    "threads that do not divide a gathered tile": (
        kernel(
            "%s = tile.alloc at 0 : !tile.buf<[16], f32, shared, #tile.strided<[1]>> "
            "tile.gather (d0) %x[d0] to %s bounds [clip] dist #tile.distributed<threads [32] strides [1] vector [1]>",
            f"%x: {VECTOR}",
        ),
        "tile.gather: size 16 is no multiple of threads 32 x 1",
    ),
    "scalars first": (
        kernel("", f"%s: f32, %x: {VECTOR}"),
        "tile.kernel: expected buffers before scalars",
    ),
    "a buffer without strides": (
        kernel("", "%x: !tile.buf<[16], f32, global>"),
        "tile.kernel: expected a buffer with strides, got !tile.buf<[16], f32, global>",
    ),
    "a fill of another type": (
        kernel(fragment("f", [32], [32], [1]) + "tile.fill %f with 0 : i32"),
        "tile.fill: expected a constant of type f32, got i32",
    ),
    "a summed dim over threads": (
        kernel(
            product(
                fragment("a", [4, 8], [4, 8], [8, 1]),
                fragment("b", [8, 1], [8, 1], [1, 8]),
                fragment("c", [4, 1], [4, 1], [8, 1]),
            )
        ),
        "tile.mma: summed dim d2 must lie in one thread, got 8 threads",
    ),
    "integers into floats": (
        kernel(
            product(
                fragment("a", [32, 1], [32, 1], [1, 32], "i32"),
                fragment("b", [1, 1], [1, 1], [1, 1], "i32"),
                fragment("c", [32, 1], [32, 1], [1, 32]),
            )
        ),
        "tile.mma: expected operands that extend to f32, got i32",
    ),
    "a reduction over 24 threads": (
        kernel(
            fragment("a", [4, 24], [4, 24], [1, 4])
            + fragment("r", [4], [4], [1])
            + "tile.reduce sum (d0, d1) %a[d0, d1] into %r[d0]",
            threads=96,
        ),
        "tile.reduce: expected powers of two for threads and stride of a reduced dim, got threads 24 stride 4",
    ),
    "a scratch of another type": (
        kernel_text("row_sum").replace("!tile.buf<[8, 4], f32, shared", "!tile.buf<[8, 4], f64, shared"),
        "tile.reduce: expected a scratch of f32",
    ),
    "control flow in a map": (
        kernel(
            fragment("a", [32], [32], [1])
            + "tile.map (d0) ins(%a[d0]) outs(%a[d0]) { ^bb0(%p: f32): %c = arith.constant true"
            " %n = scf.if %c -> (f32) { scf.yield %p : f32 } else { scf.yield %p : f32 } tile.yield %n }"
        ),
        "tile-to-simt has no lowering of scf.if",
    ),
    "strides of threads that interleave": (
        kernel(
            fragment("a", [4, 8], [4, 8], [3, 16])
            + "%o = sym.apply 0 tile.copy %a to %x[%o, %o] bounds [clip, clip] via thread width 1",
            f"%x: {MATRIX}",
            threads=128,
        ),
        "thread strides must be multiples of what lies below them, got 16 over 12",
    ),
    "unaligned accesses of two bytes": (
        kernel_text("odd_rows").replace("width 8 unaligned", "width 1 unaligned"),
        "tile.copy: unaligned accesses take 4, 8, 16 bytes, got 2",
    ),
    "too few threads for the ends of a row": (
        kernel(
            "%ch = tile.channel at [0] : !tile.channel<1, !tile.buf<[32, 64], bf16, shared, #tile.swizzled<128, 1>>> "
            "%s = tile.acquire %ch tile.publish %ch %r = tile.receive %ch tile.copy %r to %x bounds [clip, clip] via "
            "thread width 8 unaligned dist #tile.distributed<threads [8, 4] strides [4, 1] vector [1, 8]> "
            "tile.release %ch",
            "%x: !tile.buf<[32, 64], bf16, global, #tile.strided<[64, 1]>>",
        ),
        "tile.copy: unaligned stores need 8 threads along a row, got 4",
    ),
    "ends of a row of two panels": (
        kernel(
            "%ch = tile.channel at [0] : !tile.channel<1, !tile.buf<[8, 128], bf16, shared, #tile.swizzled<128, 1>>> "
            "%s = tile.acquire %ch tile.publish %ch %r = tile.receive %ch tile.copy %r to %x bounds [clip, clip] via "
            "thread width 8 unaligned dist #tile.distributed<threads [8, 16] strides [16, 1] vector [1, 8]> "
            "tile.release %ch",
            "%x: !tile.buf<[8, 128], bf16, global, #tile.strided<[128, 1]>>",
            threads=128,
        ),
        "tile.copy: unaligned stores read rows of one panel, got "
        "!tile.buf<[8, 128], bf16, shared, #tile.swizzled<128, 1>>",
    ),
    "an offset beyond the index type": (
        kernel(
            "%o = sym.apply 3000000000 "
            + fragment("a", [32], [32], [1])
            + "tile.copy %x[%o] to %a bounds [clip] other 0.0 : f32 via thread width 1",
            f"%x: {VECTOR}",
        ),
        "expected an integer of 32 bits for index arithmetic, got 3000000000",
    ),
}


SLOT = "!tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>"
PLAIN = "!tile.buf<[64, 64], bf16, shared, #tile.strided<[64, 1]>>"
TILE = "!tile.buf<[64, 64], bf16, global, #tile.strided<[64, 1]>>"


def channel(slot: str, body: str, stages: int = 1, barriers: str = "") -> str:
    """A channel of such slots, of which the body may fill %s."""
    return f"%c = tile.channel at [0] {barriers}: !tile.channel<{stages}, {slot}> %s = tile.acquire %c {body}"


def hopper(body: str, memory: str = TILE) -> str:
    """A kernel of 128 threads, an argument %x, and an index %o of 0."""
    return kernel("%o = sym.apply 0 " + body, f"%x: {memory}", threads=128)


def warp_product(element: str, threads: list[int]) -> str:
    """A product of two slots on matrix instructions of warps, into a fragment over these threads."""
    slots = ", ".join([f"!tile.buf<[64, 32], {element}, shared, #tile.swizzled<64, 1>>"] * 2)
    return (
        fragment("acc", [64, 64], threads, [threads[1], 1])
        + f"%c = tile.channel at [0, 8192] : !tile.channel<1, {slots}> %a, %b = tile.receive %c "
        + "tile.mma (d0, d1, d2) %a[d0, d2], %b[d1, d2] into %acc[d0, d1] inst mma.sync"
    )


ERRORS |= {
    "a swizzled buffer apart from a channel": (
        hopper(f"%s = tile.alloc at 0 : {SLOT} tile.copy %x[%o, %o] to %s bounds [proved, proved] via tma"),
        "tile.copy: via tma moves the buffers of a channel's slot",
    ),
    "a tensor map into a plain buffer": (
        hopper(f"%s = tile.alloc at 0 : {PLAIN} tile.copy %x[%o, %o] to %s bounds [proved, proved] via tma"),
        "tile.copy: via tma moves the buffers of a channel's slot",
    ),
    "a tensor map along every other element": (
        hopper(
            channel(SLOT, "tile.copy %x[%o, %o] to %s bounds [proved, proved] via tma", barriers="barriers 8192"),
            TILE.replace("[64, 1]", "[128, 2]"),
        ),
        "tile.copy: via tma needs a stride along dim 1 that is known to be 1",
    ),
    "a matrix store into a plain buffer": (
        hopper(
            fragment("f", [64, 64], [16, 8], [8, 1], "bf16")
            + f"%s = tile.alloc at 0 : {PLAIN} tile.copy %f to %s via stmatrix"
        ),
        "tile.copy: via stmatrix stores rows to a slot that is swizzled along them",
    ),
    "a matrix store of two matrices": (
        hopper(
            fragment("f", [2, 16, 64], [1, 16, 8], [128, 8, 1], "bf16")
            + channel(SLOT.replace("[64, 64]", "[2, 16, 64]").replace("128, 1", "128, 2"), "")
            + "tile.copy %f to %s via stmatrix"
        ),
        "tile.copy: via stmatrix stores one matrix, got a tile of [2, 16, 64]",
    ),
    "a matrix store of a row": (
        hopper(
            fragment("f", [64], [64], [1], "bf16")
            + channel(SLOT.replace("[64, 64]", "[64]").replace("128, 1", "128, 0"), "")
            + "tile.copy %f to %s via stmatrix"
        ),
        "tile.copy: via stmatrix stores one matrix, got a tile of [64]",
    ),
    "slots that no loop takes in turn": (
        hopper(channel(SLOT, "tile.publish %c", stages=2)),
        "tile.channel: expected 2 slots to be used in a loop unrolled a multiple of that often",
    ),
    "a swizzled buffer of less than a panel": (
        hopper("%s = tile.alloc at 0 : !tile.buf<[16, 64], bf16, shared, #tile.swizzled<128, 0>>"),
        "tile.alloc: a panel has 64 elements along dim 0, got "
        "!tile.buf<[16, 64], bf16, shared, #tile.swizzled<128, 0>>",
    ),
    "a part without a layout": (
        hopper(
            fragment("f", [64, 64], [16, 8], [8, 1])
            + "%p = tile.slice %f[%o, %o] : !tile.buf<[64, 32], f32, fragment> tile.fill %p with 0.0 : f32"
        ),
        "tile.slice: expected a fragment with a layout over threads, got !tile.buf<[64, 32], f32, fragment>",
    ),
    "a part that is spread over other threads than its whole": (
        hopper(
            fragment("f", [64, 64], [16, 8], [8, 1])
            + "%p = tile.slice %f[%o, %o] : !tile.buf<[64, 32], f32, fragment, "
            + "#tile.distributed<threads [16, 8] strides [1, 16] vector [1, 1]>>"
        ),
        "tile.slice: dim 0 of !tile.buf<[64, 32], f32, fragment, #tile.distributed<threads [16, 8] strides [1, 16] "
        "vector [1, 1]>> is spread otherwise than that part of "
        "!tile.buf<[64, 64], f32, fragment, #tile.distributed<threads [16, 8] strides [8, 1] vector [1, 1]>>",
    ),
    "a part that some threads have nothing of": (
        hopper(
            fragment("f", [64, 64], [16, 8], [8, 1])
            + "%p = tile.slice %f[%o, %o] : !tile.buf<[64, 4], f32, fragment, "
            + "#tile.distributed<threads [16, 1] strides [8, 1] vector [1, 1]>>"
        ),
        "tile.slice: dim 1 of !tile.buf<[64, 4], f32, fragment, #tile.distributed<threads [16, 1] strides [8, 1] "
        "vector [1, 1]>> is spread otherwise than that part of "
        "!tile.buf<[64, 64], f32, fragment, #tile.distributed<threads [16, 8] strides [8, 1] vector [1, 1]>>",
    ),
    "matrix instructions into a part": (
        hopper(
            fragment("acc", [64, 128], [16, 8], [8, 1])
            + "%h = tile.slice %acc[%o, %o] : !tile.buf<[64, 64], f32, fragment, "
            + "#tile.distributed<threads [16, 8] strides [8, 1] vector [1, 1]>> "
            + "%c = tile.channel at [0, 8192] barriers 16384 : !tile.channel<1, "
            + "!tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>, "
            + "!tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>> %a, %b = tile.receive %c "
            + "tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %h[d0, d1] inst wgmma"
        ),
        "tile.mma: inst wgmma adds to whole accumulators, got a part of a fragment",
    ),
    "matrix instructions with columns first": (
        hopper(
            fragment("acc", [64, 64], [16, 8], [8, 1])
            + f"%c = tile.channel at [0, 8192] barriers 16384 : !tile.channel<1, {SLOT}, {SLOT}> "
            + "%a, %b = tile.receive %c "
            + "tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %acc[d1, d0] inst wgmma"
        ),
        "tile.mma: inst wgmma adds to one dim of rows, then one of columns, over one summed dim",
    ),
    "matrix instructions on f32": (
        hopper(
            fragment("acc", [64, 64], [16, 8], [8, 1])
            + "%c = tile.channel at [0, 8192] barriers 16384 : !tile.channel<1, "
            + "!tile.buf<[64, 32], f32, shared, #tile.swizzled<128, 1>>, "
            + "!tile.buf<[32, 64], f32, shared, #tile.swizzled<128, 1>>> %a, %b = tile.receive %c "
            + "tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %acc[d0, d1] inst wgmma"
        ),
        "tile.mma: inst wgmma takes bf16, f16 or with precision tf32 f32, got f32",
    ),
    "matrix instructions of warps on buffers": (
        hopper(
            product(
                f"%a = tile.alloc at 0 : {PLAIN} ",
                f"%b = tile.alloc at 8192 : {PLAIN} ",
                fragment("c", [64, 64], [16, 8], [8, 1]),
            ).replace("inst fma", "inst mma.sync")
        ),
        "tile.mma: inst mma.sync takes its operands from swizzled shared memory; run choose-mma",
    ),
    "matrix instructions of warps on f32": (
        hopper(warp_product("f32", [16, 8])),
        "tile.mma: inst mma.sync takes bf16, f16 or with precision tf32 f32, got f32",
    ),
    "accumulators that no matrix instruction of warps makes": (
        hopper(warp_product("bf16", [16, 8])),
        "tile.mma: inst mma.sync: accumulators lie otherwise than its fragments: "
        "!tile.buf<[64, 64], f32, fragment, #tile.distributed<threads [16, 8] strides [8, 1] vector [1, 1]>>",
    ),
    "a part of a slot, moved by threads": (
        hopper(
            channel(
                SLOT,
                fragment("f", [64, 64], [16, 8], [8, 1], "bf16") + "tile.copy %f to %s[%o, %o] via thread width 1",
            )
        ),
        f"a copy by threads moves a slot as a whole, got offsets into {SLOT}",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    text, message = ERRORS[name]
    with pytest.raises(TilewrightError) as caught:
        lowered(text)
    assert caught.value.message == message
    assert caught.value.location is not None


def test_indices_are_stored_as_64_bits() -> None:
    made = lowered(kernel(fragment("f", [32], [32], [1], "index") + "tile.fill %f with 7 : index"))
    constants = [op.value for op in made.walk() if isinstance(op, arith.ConstantOp)]
    assert IntegerAttr(7, i64) in constants


def test_what_is_stored_by_nobody_needs_no_fence() -> None:
    made = lowered(hopper(channel(SLOT, "tile.publish %c")))
    assert [op.name for op in made.walk() if op.name in ("simt.fence", "simt.named_barrier")] == [
        "simt.named_barrier",
        "simt.named_barrier",
    ]


def test_a_loop_of_no_turn_is_none() -> None:
    made = lowered(kernel("tile.for %j = 4 to 4 step 1 { }"))
    assert [op.name for op in made.body.block.ops if op.name.startswith("scf.")] == []


def test_the_end_of_two_products_waits_once_for_their_accumulators() -> None:
    one = "tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %acc[d0, d1] inst wgmma "
    fill = "tile.copy %x[%o, %o] to {} bounds [proved, proved] via tma"
    layout = "#tile.mixed<[8:4, 2, 4:32], [2, 4:1, 8]>"
    made = lowered(
        hopper(
            f"%acc = tile.alloc : !tile.buf<[64, 64], f32, fragment, {layout}> tile.fill %acc with 0.0 : f32 "
            f"%c = tile.channel at [0, 8192] barriers 16384 : !tile.channel<1, {SLOT}, {SLOT}> "
            f"%p, %q = tile.acquire %c {fill.format('%p')} {fill.format('%q')} tile.publish %c "
            f"%a, %b = tile.receive %c {one} {one} tile.release %c"
        )
    )
    assert [len(op.operands) for op in made.walk() if isinstance(op, WgmmaWaitOp)] == [1]
