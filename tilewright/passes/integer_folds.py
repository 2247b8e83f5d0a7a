"""What integer ops of `arith` compute on constants: two's complement arithmetic in plain Python, no IR is built here.

A constant is held as a signed integer of its width, the way xDSL holds it (i1 true is -1); `index` counts as 64 bits.
Meaning of each op: the MLIR documentation of the arith dialect.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.ir import Operation

Fold = Callable[[int, int, int], int | None]
"""(left, right, width) -> the result, not wrapped yet; None where there is no value (division by zero, long shift)."""


def wrap(value: int, width: int) -> int:
    """The signed integer of `width` bits that is congruent to `value`."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def unsigned(value: int, width: int) -> int:
    """The same bits as an unsigned integer."""
    return value & ((1 << width) - 1)


def _truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _div_s(left: int, right: int, width: int) -> int | None:
    overflow = left == -(1 << (width - 1)) and right == -1
    return None if right == 0 or overflow else _truncated(left, right)


def _rem_s(left: int, right: int, width: int) -> int | None:
    return None if right == 0 else left - right * _truncated(left, right)


def _floor_div_s(left: int, right: int, width: int) -> int | None:
    return None if _div_s(left, right, width) is None else left // right


def _ceil_div_s(left: int, right: int, width: int) -> int | None:
    return None if _div_s(left, right, width) is None else -(-left // right)


def _div_u(left: int, right: int, width: int) -> int | None:
    return None if right == 0 else unsigned(left, width) // unsigned(right, width)


def _ceil_div_u(left: int, right: int, width: int) -> int | None:
    return None if right == 0 else -(-unsigned(left, width) // unsigned(right, width))


def _rem_u(left: int, right: int, width: int) -> int | None:
    return None if right == 0 else unsigned(left, width) % unsigned(right, width)


def _shift(function: Callable[[int, int], int], *, logical: bool = False) -> Fold:
    def fold(left: int, right: int, width: int) -> int | None:
        amount = unsigned(right, width)
        return None if amount >= width else function(unsigned(left, width) if logical else left, amount)

    return fold


BINARY: dict[type[Operation], Fold] = {
    arith.AddiOp: lambda a, b, w: a + b,
    arith.SubiOp: lambda a, b, w: a - b,
    arith.MuliOp: lambda a, b, w: a * b,
    arith.DivSIOp: _div_s,
    arith.DivUIOp: _div_u,
    arith.RemSIOp: _rem_s,
    arith.RemUIOp: _rem_u,
    arith.FloorDivSIOp: _floor_div_s,
    arith.CeilDivSIOp: _ceil_div_s,
    arith.CeilDivUIOp: _ceil_div_u,
    arith.MinSIOp: lambda a, b, w: min(a, b),
    arith.MaxSIOp: lambda a, b, w: max(a, b),
    arith.MinUIOp: lambda a, b, w: min(unsigned(a, w), unsigned(b, w)),
    arith.MaxUIOp: lambda a, b, w: max(unsigned(a, w), unsigned(b, w)),
    arith.AndIOp: lambda a, b, w: a & b,
    arith.OrIOp: lambda a, b, w: a | b,
    arith.XOrIOp: lambda a, b, w: a ^ b,
    arith.ShLIOp: _shift(lambda a, n: a << n),
    arith.ShRSIOp: _shift(lambda a, n: a >> n),
    arith.ShRUIOp: _shift(lambda a, n: a >> n, logical=True),
}
"""Op class -> what it computes on two constants of one width."""

COMMUTATIVE: frozenset[type[Operation]] = frozenset(
    {
        arith.AddiOp,
        arith.MuliOp,
        arith.MinSIOp,
        arith.MaxSIOp,
        arith.MinUIOp,
        arith.MaxUIOp,
        arith.AndIOp,
        arith.OrIOp,
        arith.XOrIOp,
    }
)
"""Ops whose constant operand may be put on the right."""

RIGHT_UNIT: dict[type[Operation], int] = {
    arith.AddiOp: 0,
    arith.SubiOp: 0,
    arith.OrIOp: 0,
    arith.XOrIOp: 0,
    arith.ShLIOp: 0,
    arith.ShRSIOp: 0,
    arith.ShRUIOp: 0,
    arith.AndIOp: -1,
    arith.MuliOp: 1,
    arith.DivSIOp: 1,
    arith.DivUIOp: 1,
    arith.FloorDivSIOp: 1,
    arith.CeilDivSIOp: 1,
    arith.CeilDivUIOp: 1,
}
"""Op class -> the right operand with which the op is its left operand."""

RIGHT_ABSORBING: dict[type[Operation], dict[int, int]] = {
    arith.MuliOp: {0: 0},
    arith.AndIOp: {0: 0},
    arith.OrIOp: {-1: -1},
    arith.RemSIOp: {1: 0, -1: 0},
    arith.RemUIOp: {1: 0},
}
"""Op class -> right operand -> the result whatever the left operand is."""

EQUAL_OPERANDS: dict[type[Operation], int | None] = {
    arith.SubiOp: 0,
    arith.XOrIOp: 0,
    arith.AndIOp: None,
    arith.OrIOp: None,
    arith.MinSIOp: None,
    arith.MaxSIOp: None,
    arith.MinUIOp: None,
    arith.MaxUIOp: None,
}
"""Op class -> the result on twice the same operand; None stands for that operand."""

ASSOCIATIVE: frozenset[type[Operation]] = COMMUTATIVE
"""Ops for which (x op c1) op c2 is x op (c1 op c2), wrapping included."""

COMPARISONS: tuple[Callable[[int, int, int], bool], ...] = (
    lambda a, b, w: a == b,
    lambda a, b, w: a != b,
    lambda a, b, w: a < b,
    lambda a, b, w: a <= b,
    lambda a, b, w: a > b,
    lambda a, b, w: a >= b,
    lambda a, b, w: unsigned(a, w) < unsigned(b, w),
    lambda a, b, w: unsigned(a, w) <= unsigned(b, w),
    lambda a, b, w: unsigned(a, w) > unsigned(b, w),
    lambda a, b, w: unsigned(a, w) >= unsigned(b, w),
)
"""The predicates of `arith.cmpi` by number: eq ne slt sle sgt sge ult ule ugt uge."""

TRUE_ON_EQUAL: frozenset[int] = frozenset({0, 3, 5, 7, 9})
"""Numbers of the predicates that hold between equal values."""
