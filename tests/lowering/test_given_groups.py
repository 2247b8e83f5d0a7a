"""Groups that `fuse-groups` would not make, and casts of sizes: lin-to-tile computes them all the same.

A group that is no one kernel becomes a kernel for each generic; results are held to the reference in the simulator.
"""

from __future__ import annotations

import pytest

from tests.passes.tile.support import Lowering
from tilewright.diagnostics import TilewrightError

TYPES = {
    "!MN": "tensor<?x?xf32, #sym.dims<M, N>>",
    "!MM": "tensor<?x?xf32, #sym.dims<M, M>>",
    "!M1": "tensor<?x1xf32, #sym.dims<M, 1>>",
    "!M": "tensor<?xf32, #sym.dims<M>>",
    "!N": "tensor<?xf32, #sym.dims<N>>",
}
DOUBLE = "{ ^bb0(%p: f32): %r = arith.addf %p, %p : f32 lin.yield %r : f32 }"
ADD = "{ ^bb0(%p: f32, %q: f32): %r = arith.addf %p, %q : f32 lin.yield %r : f32 }"
ITSELF = "{ ^bb0(%p: f32): lin.yield %p : f32 }"
SIZES = {"M": 7, "N": 37}


def lowering(signature: str, body: str, *passes: str, facts: str = "") -> Lowering:
    """The program through these passes of the tensor level, lin-to-tile, and all of the tile level."""
    text = f"sym.symbol @M sym.symbol @N {facts} func.func @main{signature} {{ {body} }}"
    for short in sorted(TYPES, key=len, reverse=True):
        text = text.replace(short, TYPES[short])
    return Lowering(text, tensor=(*passes, "lin-to-tile", "host-plan"))


GROUPS = {
    "a value that is read turned by what reads it straight": (
        "(%x: !MM) -> !MM",
        "%y = lin.group ins(%x : !MM) -> !MM { ^bb0(%v: !MM):"
        f" %a = lin.generic (i, j) ins(%v[i, j] : !MM) out[i, j] : !MM {DOUBLE}"
        f" %b = lin.generic (i, j) ins(%a[i, j] : !MM, %a[j, i] : !MM) out[i, j] : !MM {ADD}"
        " lin.yield %b : !MM } func.return %y : !MM",
        2,
    ),
    "a result for each row beside one for each element": (
        "(%x: !M, %z: !MN) -> (!M, !MN)",
        "%y:2 = lin.group ins(%x, %z : !M, !MN) -> !M, !MN { ^bb0(%v: !M, %w: !MN):"
        f" %a = lin.generic (i) ins(%v[i] : !M) out[i] : !M {DOUBLE}"
        f" %b = lin.generic (i, j) ins(%a[i] : !M, %w[i, j] : !MN) out[i, j] : !MN {ADD}"
        " lin.yield %a, %b : !M, !MN } func.return %y#0, %y#1 : !M, !MN",
        2,
    ),
    "sums of the rows and of the columns": (
        "(%x: !MN) -> (!M, !N)",
        "%y:2 = lin.group ins(%x : !MN) -> !M, !N { ^bb0(%v: !MN):"
        f" %a = lin.generic (i, j) ins(%v[i, j] : !MN) out[i] combine sum : !M {ITSELF}"
        f" %b = lin.generic (i, j) ins(%v[i, j] : !MN) out[j] combine sum : !N {ITSELF}"
        " lin.yield %a, %b : !M, !N } func.return %y#0, %y#1 : !M, !N",
        2,
    ),
    "a value that leaves twice": (
        "(%x: !M) -> (!M, !M)",
        "%y:2 = lin.group ins(%x : !M) -> !M, !M { ^bb0(%v: !M):"
        f" %a = lin.generic (i) ins(%v[i] : !M) out[i] : !M {DOUBLE}"
        " lin.yield %a, %a : !M, !M } func.return %y#0, %y#1 : !M, !M",
        2,
    ),
    "an argument that leaves as it came": (
        "(%x: !M) -> (!M, !M)",
        "%y:2 = lin.group ins(%x : !M) -> !M, !M { ^bb0(%v: !M):"
        f" %a = lin.generic (i) ins(%v[i] : !M) out[i] : !M {DOUBLE}"
        " lin.yield %a, %v : !M, !M } func.return %y#0, %y#1 : !M, !M",
        2,
    ),
    "a dim of one element that no result has": (
        "(%x: !M1) -> !M",
        "%y = lin.group ins(%x : !M1) -> !M { ^bb0(%v: !M1):"
        f" %a = lin.generic (i, k) ins(%v[i, k] : !M1) out[i, k] : !M1 {DOUBLE}"
        f" %b = lin.generic (i) ins(%a[i, 0] : !M1) out[i] : !M {ITSELF}"
        " lin.yield %b : !M } func.return %y : !M",
        1,
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_is_one_kernel_or_one_for_each_step(name: str) -> None:
    signature, body, kernels = GROUPS[name]
    made = lowering(signature, body)
    assert len(made.assert_right(SIZES).launches) == kernels


def test_a_cast_of_sizes_is_the_value_and_a_guard() -> None:
    made = lowering(
        "(%x: !M, %y: !N) -> !N",
        f"%c = sym.cast %x : !M to !N %r = lin.generic (i) ins(%c[i] : !N, %y[i] : !N) out[i] : !N {ADD}"
        " func.return %r : !N",
    )
    assert len(made.assert_right({"M": 5, "N": 5}).launches) == 1
    with pytest.raises(TilewrightError, match="M == N: required by the program"):
        made.call(made.inputs({"M": 5, "N": 6}))


def test_a_reshape_to_sizes_that_are_required_to_agree_is_no_kernel() -> None:
    made = lowering(
        "(%x: !M, %z: !N) -> !N",
        "%y = lin.reshape %x : !M -> !N"
        f" %r = lin.generic (i) ins(%y[i] : !N, %z[i] : !N) out[i] : !N {ADD} func.return %r : !N",
        "infer-shapes",
        "cancel-movement",
        facts="sym.require M == N",
    )
    assert "sym.cast" not in str(made.planned)
    assert len(made.assert_right({"M": 5, "N": 5}).launches) == 1


def test_what_two_steps_read_at_the_same_positions_is_gathered_once() -> None:
    made = lowering(
        "(%x: !M) -> (!M, !M)",
        "%y:2 = lin.group ins(%x : !M) -> !M, !M { ^bb0(%v: !M):"
        f" %a = lin.generic (i) ins(%v at [M - 1 - i] : !M) out[i] : !M {DOUBLE}"
        f" %b = lin.generic (i) ins(%v at [M - 1 - i] : !M, %a[i] : !M) out[i] : !M {ADD}"
        " lin.yield %a, %b : !M, !M } func.return %y#0, %y#1 : !M, !M",
    )
    assert len(made.assert_right(SIZES).launches) == 1
    assert [op.name for op in made.planned.walk()].count("tile.gather") == 1
