"""Clusters in the simulator: a batch holds whole ones, whose blocks are neighbours in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Operation

from tilewright.dialects.simt.clusters import ClusterBarrierOp, ClusterRankOp
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler

if TYPE_CHECKING:
    from tilewright.runtime.sim.state import State


def compile_rank(compiler: Compiler, op: ClusterRankOp) -> Compiled:
    """`simt.cluster_rank`."""
    slot, cluster = compiler.slot(op.res), compiler.kernel.cluster_size

    def run(state: State) -> None:
        ranks = (state.first_block + np.arange(state.blocks)) % cluster
        state.env[slot] = ranks.astype(np.int32)[:, None]

    return Compiled(run, False)


def compile_barrier(compiler: Compiler, op: ClusterBarrierOp) -> Compiled:
    """`simt.cluster_barrier`: outside of roles all blocks of a batch are there at the same time."""
    site, checks = compiler.site(op), compiler.checks

    def run(state: State) -> None:
        if not checks:
            return
        message = "a thread does not reach a barrier that others of its cluster do"
        state.fault("barrier-divergence", site, ~state.active(), message)
        assert state.machine is not None
        assert state.machine.clocks is not None
        state.machine.clocks.on_cluster_barrier()

    return Compiled(run, False)


def cluster_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for clusters."""
    return {ClusterBarrierOp: compile_barrier, ClusterRankOp: compile_rank}
