"""Pass `decompose`: named ops become `lin.generic`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.dialects.lin.interfaces import Decomposable
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.rewriting import Rewriter, apply_patterns, pattern


@pattern(Operation)
def _decompose(op: Operation, rewriter: Rewriter) -> None:
    """Put the op's own decomposition, which may hold named ops again, in its place."""
    if not isinstance(op, Decomposable):
        return
    # The rewriter's insertion point is before the op.
    values = op.decomposition(rewriter)
    for value, result in zip(values, op.results, strict=True):
        if value.type != result.type:
            raise error_at(op, f"the decomposition of {op.name} has type {value.type}, expected {result.type}")
    rewriter.replace(op, (), values)


@dataclass(frozen=True)
class DecomposePass(TilewrightPass):
    """Replaces each named `lin` op by its decomposition, which stands next to the op's class, down to `lin.generic`.

    Relies on infer-shapes: result types state their sizes. Each generic has the location of the op that it comes from.
    """

    name = "decompose"
    level = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, (_decompose,))
