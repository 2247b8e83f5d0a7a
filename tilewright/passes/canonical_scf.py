"""Canonicalization patterns for `scf`: branches and loops whose course is known."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from tilewright.passes.canonical_arith import constant_integer
from tilewright.passes.rewriting import Pattern, Rewriter, pattern


def _inline(op: Operation, block: Block, arguments: Sequence[SSAValue], rewriter: Rewriter) -> None:
    """Put the ops of a block that ends in `scf.yield` in the place of `op`, whose results become what it yields."""
    terminator = block.last_op
    assert isinstance(terminator, scf.YieldOp)  # the traits of `scf.if` and `scf.for` see to it
    rewriter.inline_block(block, InsertPoint.before(op), arguments)
    rewriter.replace(op, (), tuple(terminator.operands))
    rewriter.erase(terminator)


@pattern(scf.IfOp)
def fold_known_branch(op: scf.IfOp, rewriter: Rewriter) -> None:
    """An `scf.if` of a constant is the branch taken; without that branch it is nothing."""
    condition = constant_integer(op.cond)
    if condition is None:
        return
    region = op.true_region if condition else op.false_region
    if not region.blocks:
        rewriter.erase(op)
        return
    _inline(op, region.block, (), rewriter)


@pattern(scf.ForOp)
def fold_known_loop(op: scf.ForOp, rewriter: Rewriter) -> None:
    """A loop of no iteration is its initial values; of one iteration, its body."""
    lower, upper, step = (constant_integer(value) for value in (op.lb, op.ub, op.step))
    if op.lb is op.ub or (lower is not None and upper is not None and lower >= upper):
        rewriter.replace(op, (), tuple(op.iter_args))
        return
    if lower is None or upper is None or step is None or step <= 0 or lower + step < upper:
        return
    _inline(op, op.body.block, (op.lb, *op.iter_args), rewriter)


PATTERNS: tuple[Pattern[Operation], ...] = (fold_known_branch, fold_known_loop)
"""All of them, for `apply_patterns`."""
