"""The ops that need a `Machine`, and which register arrays matrix instructions add to."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.simt.mbarriers import NamedBarrierOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.wgmma import WgmmaOp, WgmmaRegsOp
from tilewright.runtime.sim.addresses import PLACED, report_control
from tilewright.runtime.sim.clusters import cluster_table
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler, around
from tilewright.runtime.sim.mbarriers import mbarrier_table
from tilewright.runtime.sim.named_barriers import compile_named_barrier
from tilewright.runtime.sim.roles import role_table
from tilewright.runtime.sim.state import State, Waiting
from tilewright.runtime.sim.stmatrix import stmatrix_table
from tilewright.runtime.sim.tma import tma_table
from tilewright.runtime.sim.wgmma import wgmma_table


def asynchronous_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for all that sm_90a brings."""
    table: dict[type[Operation], CompileFn] = {NamedBarrierOp: compile_named_barrier}
    table |= cluster_table() | mbarrier_table() | role_table() | stmatrix_table() | tma_table() | wgmma_table()
    return table | {type_: _with_wrap_check(table[type_]) for type_ in PLACED}


def _with_wrap_check(fn: CompileFn) -> CompileFn:
    """The op's compile function, with a report of places that come from 32-bit arithmetic that wrapped."""

    def compile_checked(compiler: Compiler, op: Any) -> Compiled:
        made = fn(compiler, op)
        if not compiler.checks:
            return made
        slots = [compiler.slot(operand) for operand in op.operands if operand.type == i32]
        place = str(compiler.site(op))

        def run(state: State) -> Generator[Waiting, None, None]:
            if state.poisoned:
                report_control(state, slots, place)
            yield from made.drive(state)

        return around(run, made.waits)

    return compile_checked


def needs_machine(kernel: KernelOp) -> bool:
    """Whether a kernel has such an op: its order is then more than block barriers."""
    table = asynchronous_table()
    return any(type(op) in table for op in kernel.walk())


def accumulators(kernel: KernelOp) -> set[SSAValue]:
    """The register arrays that matrix instructions add to, or read while they run."""
    found = {op.acc for op in kernel.walk() if isinstance(op, WgmmaOp | WgmmaRegsOp)}
    return found | {op.lhs for op in kernel.walk() if isinstance(op, WgmmaRegsOp)}
