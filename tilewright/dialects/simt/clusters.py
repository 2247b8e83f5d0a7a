"""Clusters: neighbouring blocks that run at the same time and reach each other's shared memory.

A kernel with `cluster 2` is launched in pairs of blocks 2c and 2c + 1. A block is through with its shared memory when
nothing of another block can reach it any more: copies that go to several blocks, and arrivals from others, must be
known to have come before it ends. Source: PTX ISA 8.0, barrier.cluster, mapa.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, result_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.simt.structure import KernelOp


def cluster_around(op: Operation) -> int | None:
    """Blocks of a cluster of the kernel around an op, 1 without clusters; None outside of a kernel."""
    kernel = op.parent_op()
    while kernel is not None and not isinstance(kernel, KernelOp):
        kernel = kernel.parent_op()
    return None if kernel is None else kernel.cluster_size


def check_cluster(op: Operation) -> None:
    """Raise VerifyException unless the kernel around has clusters."""
    if cluster_around(op) == 1:
        raise VerifyException("expected a kernel with clusters of several blocks")


@irdl_op_definition
class ClusterRankOp(IRDLOperation):
    """`%r = simt.cluster_rank`: the block's place in its cluster, from 0 on, as i32."""

    name = "simt.cluster_rank"
    res = result_def(i32)
    traits = traits_def(Pure())
    assembly_format: ClassVar[str | None] = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[i32])

    def verify_(self) -> None:
        check_cluster(self)


@irdl_op_definition
class ClusterBarrierOp(IRDLOperation):
    """`simt.cluster_barrier`: all threads of the cluster wait for each other, and see what each has done before."""

    name = "simt.cluster_barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format: ClassVar[str | None] = "attr-dict"

    def __init__(self) -> None:
        super().__init__()

    def verify_(self) -> None:
        check_cluster(self)
