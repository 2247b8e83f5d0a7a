from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp

from tilewright.passes import Rewriter, TilewrightPass, apply_patterns, pattern, register_pass


@pattern(arith.SubfOp)
def add_negated(op: arith.SubfOp, rewriter: Rewriter) -> None:
    negated = arith.NegfOp(op.rhs)
    rewriter.replace(op, [negated, arith.AddfOp(op.lhs, negated.result)])


@register_pass
@dataclass(frozen=True)
class AddNegatedPass(TilewrightPass):
    """Makes x + (-y) of x - y: the same bits, and one form less for patterns to look for."""

    name = "add-negated"
    level = "any"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, [add_negated])
