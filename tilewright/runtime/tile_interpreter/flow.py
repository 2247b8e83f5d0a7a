"""Runs the ops of a block, loops, branches and roles; a role stops where it waits for another."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.tile.blocks import RolesOp
from tilewright.dialects.tile.channels import AcquireOp, ReceiveOp
from tilewright.dialects.tile.structure import ForOp, YieldOp
from tilewright.runtime.tile_interpreter.channels import Waits, run_acquire, run_receive
from tilewright.runtime.tile_interpreter.ops import TILE_OPS
from tilewright.runtime.tile_interpreter.values import Frame


def run_to_end(frame: Frame, block: Block) -> Sequence[SSAValue]:
    """Run a block by itself; returns what its terminator yields. An op that waits would wait for ever: an error."""
    steps = run_steps(frame, block)
    try:
        waiting = next(steps)
    except StopIteration as end:
        return end.value
    raise TilewrightError(f"{waiting.name}: waits for a slot that nothing can {_remedy(waiting)}", location_of(waiting))


def run_steps(frame: Frame, block: Block) -> Generator[Operation, None, Sequence[SSAValue]]:
    """Run the ops of a block in order; yields each op that has to wait, returns what the terminator yields."""
    for op in block.ops:
        if isinstance(op, YieldOp | scf.YieldOp):
            return op.operands
        flow = _FLOW.get(type(op))
        if flow is not None:
            yield from flow(frame, op)
            continue
        run = TILE_OPS.get(type(op))
        if run is None:
            raise TilewrightError(f"the tile interpreter does not know {op.name}", location_of(op))
        run(frame, op)
    return ()


def _for(frame: Frame, op: ForOp) -> Waits:
    """The body for each value of the variable."""
    values = dict(frame.symbols)
    values |= {name: frame.integer(value) for name, value in op.where.items()}
    lower, upper, step = (e.data.evaluate(values) for e in (op.lower, op.upper, op.step))
    if step < 1:
        raise TilewrightError(f"tile.for: expected a step of at least 1, got {step}", location_of(op))
    for i in range(lower, upper, step):
        frame.env[op.variable] = i
        yield from run_steps(frame, op.body.block)


def _if(frame: Frame, op: scf.IfOp) -> Waits:
    """One arm."""
    region = op.true_region if bool(frame.env[op.cond]) else op.false_region
    found: Sequence[SSAValue] = ()
    if region.blocks:
        found = yield from run_steps(frame, region.block)
    for result, value in zip(op.results, found, strict=True):
        frame.env[result] = frame.env[value]


def _roles(frame: Frame, op: RolesOp) -> Waits:
    """Each role up to where it waits, in turn, until all are through; an error when a round gets nobody further."""
    running = {role.name: run_steps(frame, body.block) for role, body in zip(op.roles, op.bodies, strict=True)}
    while running:
        turns, waiting = frame.turns, dict[str, Operation]()
        for name, steps in list(running.items()):
            try:
                waiting[name] = next(steps)
            except StopIteration:
                del running[name]
        if waiting and frame.turns == turns:
            # Nobody took a turn, so the next round would find the same: also after a role has ended in this one.
            places = ", ".join(f"{name} at {each.name} ({location_of(each)})" for name, each in waiting.items())
            raise TilewrightError(f"tile.roles: nothing can run: {places}", location_of(op))
    return
    yield op


def _remedy(op: Operation) -> str:
    return "release" if isinstance(op, AcquireOp) else "publish"


_FLOW: dict[type[Operation], Callable[[Frame, Any], Waits]] = {
    AcquireOp: run_acquire,
    ForOp: _for,
    ReceiveOp: run_receive,
    RolesOp: _roles,
    scf.IfOp: _if,
}
"""Ops that hold others, or wait."""
