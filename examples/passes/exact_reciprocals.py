"""A pass of one's own: division by a power of two becomes multiplication, where that gives the same bits.

tilewright-opt program.mlir --load examples/passes/exact_reciprocals.py -p exact-reciprocals --remarks --statistics
"""

# [imports]
from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from math import frexp
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp

from tilewright.passes import Pattern, Rewriter, TilewrightPass, apply_patterns, pattern, register_pass, remark

# [/imports]

# [arithmetic]
GREATEST_EXPONENT: dict[str, int] = {"f16": 15, "bf16": 127, "f32": 127, "f64": 1023}
"""Of normal numbers; the least is 1 minus it (IEEE 754-2019, table 3.5)."""


def exact_reciprocal(divisor: float, dtype: str) -> float | None:
    """1 / divisor where `x / divisor` and `x * (1 / divisor)` are one number for every x, else None.

    Both round the same real number if the reciprocal is a number of the type: if the divisor is a power of two. The
    reciprocal must be normal too, since a device may take a subnormal factor for zero.
    """
    fraction, exponent = frexp(abs(divisor))  # abs(divisor) = fraction * 2**exponent, 0.5 <= fraction < 1
    if fraction != 0.5:
        return None  # also zero, infinity and NaN
    reciprocal_exponent = 1 - exponent
    greatest = GREATEST_EXPONENT[dtype]
    return 1.0 / divisor if 1 - greatest <= reciprocal_exponent <= greatest else None


# [/arithmetic]


# [pattern]
def divide_by_power_of_two(dtypes: Container[str]) -> Pattern[arith.DivfOp]:
    """The pattern for divisions of these element types."""

    @pattern(arith.DivfOp)
    def divide_by_power_of_two(op: arith.DivfOp, rewriter: Rewriter) -> None:
        """`x / c` is `x * (1 / c)` where c is a constant power of two."""
        divisor, dtype = op.rhs.owner, str(op.result.type)
        if not isinstance(divisor, arith.ConstantOp) or not isinstance(divisor.value, FloatAttr) or dtype not in dtypes:
            return
        value: float = divisor.value.value.data
        reciprocal = exact_reciprocal(value, dtype)
        if reciprocal is None:
            remark(op, ExactReciprocalsPass.name, f"division by {value:g} stays: the reciprocal is not exact")
            return
        factor = arith.ConstantOp(FloatAttr(reciprocal, divisor.value.type))
        rewriter.replace(op, [factor, arith.MulfOp(op.lhs, factor, op.fastmath)])

    return divide_by_power_of_two


# [/pattern]


# [pass]
@register_pass
@dataclass(frozen=True)
class ExactReciprocalsPass(TilewrightPass):
    """Multiplies by the reciprocal of a constant instead of dividing, where every result keeps its bits.

    A division takes several times as long as a multiplication. Relies on nothing; divisors that are no powers of two
    stay, with a remark.
    """

    name = "exact-reciprocals"
    level = "any"

    dtypes: tuple[Literal["f16", "bf16", "f32", "f64"], ...] = ("f16", "bf16", "f32", "f64")
    """Element types whose divisions are looked at."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.statistic("divisions seen", sum(isinstance(each, arith.DivfOp) for each in op.walk()))
        apply_patterns(op, [divide_by_power_of_two(self.dtypes)], erase_dead=True)


# [/pass]
