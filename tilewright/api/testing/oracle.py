"""When a result is what the reference says, element by element, special values among them.

- NaN is equal to NaN, whatever its payload; an infinity to itself.
- A finite element, also a subnormal one (nothing is flushed to zero), may be off by the reference's bound; integers and
  truth values by none. A bound of inf says that nothing is known: sums that may overflow on the way, for example.
- The two zeros are equal, unless the program promises which one it is: see `zero_signs`.
- What a float that is NaN or out of range becomes as an integer is open (`arith.fptosi`): `lin_programs` never asks.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith, func, math
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.lin.body import IndexOp, YieldOp
from tilewright.dialects.lin.clamp import ClampOp
from tilewright.dialects.lin.concat import ConcatOp
from tilewright.dialects.lin.elementwise import CastOp, MapOp
from tilewright.dialects.lin.gather import GatherOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.pad import PadOp
from tilewright.dialects.lin.reshape import ReshapeOp
from tilewright.dialects.lin.slice import SliceOp
from tilewright.dialects.lin.transpose import TransposeOp
from tilewright.dialects.sym import ApplyOp
from tilewright.runtime.numerics import Array
from tilewright.runtime.reference import ReferenceValue
from tilewright.runtime.reference.bounded import distance

_MOVES: tuple[type[Operation], ...] = (TransposeOp, SliceOp, PadOp, ConcatOp, ReshapeOp, GatherOp, CastOp, ClampOp)
"""Ops whose result has the zeros of their operands, or of constants."""
_SCALAR: tuple[type[Operation], ...] = (
    arith.NegfOp,
    math.AbsFOp,
    arith.SelectOp,
    arith.MaximumfOp,
    arith.MinimumfOp,
    arith.ExtFOp,
    arith.TruncFOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.ConstantOp,
    arith.CmpfOp,
    arith.CmpiOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.IndexCastOp,
    IndexOp,
    ApplyOp,
    YieldOp,
)
"""Scalar ops that decide the sign of a zero: copies, -x, |x|, and maximum and minimum, for which +0 is the greater. The
sign of a sum is left open (x + 0 may become x), and with it what sums, roots and exponentials make."""


def zero_signs(function: func.FuncOp) -> tuple[bool, ...]:
    """For each result of a function of the tensor level, whether the sign of its zeros is promised.

    It is where an element is an input or a constant that was moved, negated, compared and chosen, or converted on the
    way, and nothing else; a reduction promises nothing of the kind.
    """
    last = function.body.block.last_op
    known: dict[SSAValue, bool] = {}
    return tuple(_promised(value, known) for value in last.operands) if last is not None else ()


def _promised(value: SSAValue, known: dict[SSAValue, bool]) -> bool:
    if value not in known:
        op = value.owner
        known[value] = isinstance(op, Block) or (
            _keeps(op) and all(_promised(operand, known) for operand in op.operands)
        )
    return known[value]


def _keeps(op: Operation) -> bool:
    if isinstance(op, MapOp) or (isinstance(op, GenericOp) and op.combine is None):
        return all(isinstance(inner, _SCALAR) for inner in op.body.block.ops)
    return isinstance(op, _MOVES)


def differs(got: Array, want: ReferenceValue, *, zero_signs: bool = False) -> Array:
    """Where a result is not what the reference says: truth values of the result's shape.

    `got` has the shape and dtype of `want.rounded`. With `zero_signs`, an exact zero must have the reference's sign.
    """
    with np.errstate(all="ignore"):
        wide, expected = got.astype(np.float64), want.value.astype(np.float64)
        beyond = distance(wide, expected) > want.bound
        if zero_signs and got.dtype.kind not in "biu":
            exact = (want.bound == 0) & (expected == 0)
            beyond = beyond | (exact & (np.signbit(wide) != np.signbit(expected)))
    return beyond
