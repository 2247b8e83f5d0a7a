"""Channels and roles in the tile interpreter: slots come in turn, and whoever touches one at the wrong time is told."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.verify import verify_module
from tilewright.runtime.tile_interpreter.kernel import interpret

F32 = np.float32
Array = np.ndarray[Any, Any]
BUFFERS = "%x: !tile.buf<[8], f32, global>, %y: !tile.buf<[8], f32, global>"


def kernel(body: str, arguments: str = BUFFERS, grid: str = "(%g) = [1]") -> KernelOp:
    """A kernel with a channel of two slots of four elements."""
    module = parse_module(
        f"""tile.kernel @k({arguments}) grid {grid} {{
  %zero = sym.apply 0
  %four = sym.apply 4
  %ch = tile.channel : !tile.channel<2, !tile.buf<[4], f32, shared>>
{body}
}}""",
        "k.mlir",
        make_context(),
    )
    verify_module(module)
    (found,) = (op for op in module.walk() if isinstance(op, KernelOp))
    return found


def run(body: str) -> Array:
    """What the kernel makes of 1 to 8 in %y, which is -1 before."""
    x, y = np.arange(1, 9, dtype=F32), np.full(8, -1, F32)
    interpret(kernel(body), [x, y])
    return y


FILL = """
    %s = tile.acquire %ch
    tile.copy %x[%i] to %s bounds [proved]
    tile.publish %ch
"""
DRAIN = """
    %r = tile.receive %ch
    tile.copy %r to %y[%i] bounds [proved]
    tile.release %ch
"""
LOOP = "  tile.for %i = 0 to 8 step 4 {"
ROLES = (
    "  tile.roles {{ role consumer warpgroups [0, 1] {{{consumer}}} role producer warpgroups [1, 2] {{{producer}}} }}"
)


def test_one_thread_of_control() -> None:
    np.testing.assert_array_equal(run(f"{LOOP}\n{FILL}{DRAIN}}}"), np.arange(1, 9, dtype=F32))


@pytest.mark.parametrize("names", [("consumer", "producer"), ("producer", "consumer")])
def test_roles_meet_whichever_comes_first(names: tuple[str, str]) -> None:
    # Four turns over two slots: the producer has to wait for free ones, the consumer for full ones.
    loop = "\n    tile.for %t = 0 to 2 step 1 {\n    tile.for %i = 0 to 8 step 4 {"
    sides = {"consumer": f"{loop}{DRAIN}}} }}\n", "producer": f"{loop}{FILL}}} }}\n"}
    text = " ".join(f"role {n} warpgroups [{i}, {i + 1}] {{{sides[n]}}}" for i, n in enumerate(names))
    np.testing.assert_array_equal(run(f"  tile.roles {{ {text} }}"), np.arange(1, 9, dtype=F32))


def test_release_with_lag_keeps_the_last_slot() -> None:
    body = """
    %a = tile.acquire %ch
    tile.copy %x[%zero] to %a bounds [proved]
    tile.publish %ch
    %b = tile.acquire %ch
    tile.copy %x[%four] to %b bounds [proved]
    tile.publish %ch
    %r0 = tile.receive %ch
    %r1 = tile.receive %ch
    tile.release %ch lag 1
    tile.copy %r1 to %y[%four] bounds [proved]
    tile.copy %r0 to %y[%zero] bounds [proved]
    tile.release %ch
"""
    y = run(body)
    np.testing.assert_array_equal(y[4:], [5, 6, 7, 8])
    assert np.isnan(y[:4]).all(), "a released slot is undefined"


def test_an_acquired_slot_holds_nothing_of_its_last_turn() -> None:
    body = f"""{LOOP}{FILL}{DRAIN}}}
    %s = tile.acquire %ch
    tile.publish %ch
    %r = tile.receive %ch
    tile.copy %r to %y[%zero] bounds [proved]
    tile.release %ch
"""
    y = run(body)
    assert np.isnan(y[:4]).all()
    np.testing.assert_array_equal(y[4:], [5, 6, 7, 8])


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("  tile.publish %ch", 5, "tile.publish: no slot has been acquired"),
        ("  %r = tile.receive %ch", 5, "tile.receive: waits for a slot that nothing can publish"),
        (
            "  %s = tile.acquire %ch\n  tile.publish %ch\n  %r = tile.receive %ch\n  %q = tile.receive %ch",
            8,
            "tile.receive: waits for a slot that nothing can publish",
        ),
        (
            "  %s = tile.acquire %ch\n  %q = tile.acquire %ch",
            6,
            "tile.acquire: the slot that was acquired last is not published",
        ),
        (
            "  tile.for %i = 0 to 3 step 1 {\n  %s = tile.acquire %ch\n  tile.publish %ch\n  }",
            6,
            "tile.acquire: waits for a slot that nothing can release",
        ),
        (
            "  %s = tile.acquire %ch\n  tile.publish %ch\n  tile.copy %x[%zero] to %s bounds [proved]",
            7,
            "tile.copy: writes a slot that has been published",
        ),
        (
            "  %s = tile.acquire %ch\n  tile.publish %ch\n  %r = tile.receive %ch\n"
            "  tile.copy %x[%zero] to %r bounds [proved]",
            8,
            "tile.copy: writes a slot through what tile.receive gave to read",
        ),
        (
            "  %s = tile.acquire %ch\n  tile.copy %s to %y[%zero] bounds [proved]",
            6,
            "tile.copy: reads a slot through what tile.acquire gave to write",
        ),
        (
            "  %s = tile.acquire %ch\n  tile.publish %ch",
            4,
            "tile.channel: at the end of the block 1 slots have been acquired, 1 published, 0 received and 0 released",
        ),
    ],
)
def test_misused_slots(body: str, line: int, message: str) -> None:
    with pytest.raises(TilewrightError) as raised:
        run(body)
    assert str(raised.value).startswith(f"k.mlir:{line}:")
    assert str(raised.value).endswith(f"error: {message}")


def test_roles_that_wait_for_each_other_are_named() -> None:
    body = ROLES.format(
        consumer="\n%r = tile.receive %ch\n",
        producer="\ntile.for %i = 0 to 3 step 1 {\n%s = tile.acquire %other\ntile.publish %other\n}\n",
    )
    declared = "  %other = tile.channel : !tile.channel<1, !tile.buf<[4], f32, shared>>\n"
    with pytest.raises(TilewrightError) as raised:
        run(declared + body)
    assert str(raised.value).endswith(
        "error: tile.roles: nothing can run: consumer at tile.receive (k.mlir:7:1), producer at tile.acquire "
        "(k.mlir:10:1)"
    )


PRODUCT = """
  %f = tile.alloc : !tile.buf<[64, 8], f32, fragment>
  tile.fill %f with 0.0 : f32
  %ring = tile.channel : !tile.channel<2, !tile.buf<[64, 64], bf16, shared, #tile.swizzled<128, 1>>, \
!tile.buf<[8, 64], bf16, shared, #tile.swizzled<128, 1>>>
  %a, %b = tile.acquire %ring
  tile.copy %p[%zero, %zero] to %a bounds [proved, proved] via tma
  tile.copy %q[%zero, %zero] to %b bounds [proved, proved] via tma
  tile.publish %ring
  %c, %d = tile.receive %ring
  tile.mma (d0, d1, d2) %c[d0, d2], %d[d1, d2] into %f[d0, d1] inst wgmma
"""
OPERANDS = ", ".join(
    f"%{name}: !tile.buf<[{sizes}], {element}, global>"
    for name, sizes, element in (("p", "64, 64", "bf16"), ("q", "8, 64", "bf16"), ("z", "64, 8", "f32"))
)
STORE = "  tile.copy %f to %z[%zero, %zero] bounds [proved, proved]\n"


def test_matrix_instructions_run_on_until_their_slots_are_released() -> None:
    rng = np.random.default_rng(3)
    p, q = (rng.integers(-4, 5, (n, 64)).astype(ml_dtypes.bfloat16) for n in (64, 8))
    z = np.zeros((64, 8), F32)
    interpret(kernel(f"{PRODUCT}  tile.release %ring\n{STORE}", OPERANDS), [p, q, z])
    np.testing.assert_array_equal(z, p.astype(F32) @ q.astype(F32).T)
    for early in ("", "  tile.release %ring lag 1\n"):
        with pytest.raises(TilewrightError, match="touches accumulators before the slots that they are made of"):
            interpret(kernel(f"{PRODUCT}{early}{STORE}  tile.release %ring\n", OPERANDS), [p, q, z])


TILES = """
  %n = tile.block_count
  tile.for %t = b to 6 step n where b = %g, n = %n {
    %i, %j = tile.raster %t in [3, 2] group 2
    %f = tile.alloc : !tile.buf<[1, 1], f32, fragment>
    tile.map (d0, d1) ins(%t) outs(%f[d0, d1]) {
    ^bb0(%place: index):
      %k = arith.index_cast %place : index to i32
      %v = arith.sitofp %k : i32 to f32
      tile.yield %v
    }
    tile.copy %f to %z[%i, %j] bounds [proved, proved]
  }
"""


def test_few_blocks_share_the_tiles_of_a_persistent_kernel_in_raster_order() -> None:
    z = np.full((3, 2), -1, F32)
    text = kernel(TILES, "%z: !tile.buf<[3, 2], f32, global>", "(%g) = [6] persistent")
    interpret(text, [z])
    # Groups of two rows, each column by column; the last group has one row.
    np.testing.assert_array_equal(z, np.array([[0, 2], [1, 3], [4, 5]], F32))


def test_a_part_of_a_fragment_is_a_view() -> None:
    body = """
  %f = tile.alloc : !tile.buf<[8], f32, fragment>
  tile.copy %x[%zero] to %f bounds [proved]
  %p = tile.slice %f[%four] : !tile.buf<[4], f32, fragment>
  tile.fill %p with 0.0 : f32
  tile.copy %f to %y[%zero] bounds [proved]
"""
    np.testing.assert_array_equal(run(body), [1, 2, 3, 4, 0, 0, 0, 0])
    with pytest.raises(TilewrightError, match=r"offset along dim 0 that is a multiple of 4 from 0 to 4, got 2"):
        run(body.replace("%four]", "%two]").replace("  %f = ", "  %two = sym.apply 2\n  %f = "))


SHARED = """
  %once = sym.apply {turns} where b = %g
  tile.for %i = 0 to n step 1 where n = %once {{
    %place = sym.apply {place} where b = %g
    %s = tile.acquire %ch
    tile.copy %x[%place] to %s bounds [proved] via tma multicast
    tile.publish %ch
    %r = tile.receive %ch
    %out = sym.apply 4*b where b = %g
    tile.copy %r to %y[%out] bounds [proved]
    tile.release %ch
  }}
"""


def shared(place: str, turns: str) -> Array:
    """A cluster of two blocks that copy from `place` to their own half of %y."""
    x, y = np.arange(1, 9, dtype=F32), np.full(8, -1, F32)
    interpret(kernel(SHARED.format(place=place, turns=turns), grid="(%g) = [2] cluster [2]"), [x, y])
    return y


def test_blocks_of_a_cluster_share_a_copy() -> None:
    assert shared("4", "1").tolist() == [5, 6, 7, 8, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("place", "turns", "message"),
    [
        ("4*b", "1", r"share different copies: \[4\] in one, \[0\] in another"),
        ("4", "b", r"share different copies: \[4\] in one, nothing in another"),
        ("4", "1 - b", r"share different copies: \[4\] in one, nothing in another"),
    ],
)
def test_blocks_of_a_cluster_share_the_same_copies(place: str, turns: str, message: str) -> None:
    with pytest.raises(TilewrightError, match=message):
        shared(place, turns)
