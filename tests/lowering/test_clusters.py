"""Clusters on their way down: which products get them, and the C++ of a kernel that has them."""

from __future__ import annotations

import pytest

from tests.lowering.test_repack import decide, operand
from tests.runtime.sim.ring_gemm import CLUSTERS, planted
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import KernelOp
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.nvrtc import compile_cubin


@pytest.mark.parametrize(
    ("m", "n", "k", "tile"),
    [
        (4088, 4088, 4088, "128x256_rows"),
        (2056, 2056, 2056, "128x128_rows"),
        (1000, 1000, 1000, "64x128_rows"),
        (4096, 4096, 4096, "128x256"),
        (4096, 4096, 4088, "128x256"),
        (1024, 1024, 1024, "64x128"),
        (8192, 128, 8192, "64x128"),
    ],
)
def test_clusters_are_for_rows_that_lie_across_lines(m: int, n: int, k: int, tile: str) -> None:
    """The fastest ones as measured on one H200."""
    assert decide(operand(m, k), operand(k, n))[1] == [f"tile{tile}"]


def test_operands_that_are_copied_lie_in_whole_lines() -> None:
    assert decide(operand(4089, 4089), operand(4089, 4089))[1][-1] in ("tile128x256", "tile128x128", "tile64x128")


def kernel() -> KernelOp:
    """The product in clusters of the simulator's tests."""
    module = parse_module(planted(CLUSTERS), "cluster.mlir", make_context())
    (found,) = (op for op in module.body.block.ops if isinstance(op, KernelOp))
    return found


def test_what_is_printed() -> None:
    source = emit_kernel(kernel(), "sm_90a").partition('extern "C"')[2]
    lines = [line.strip() for line in source.splitlines()]
    assert "__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(256, 1) " in lines[0]
    assert sum(line == "tw_cluster_barrier();" for line in lines) == 2
    assert sum(line.startswith("tw_mbar_arrive_at(") and line.endswith(", 1);") for line in lines) == 2
    assert sum(line.startswith("tw_tma_load_multicast<3>(tw_shared_address(") for line in lines) == 1
    assert lines[-2] == "tw_cluster_barrier();", "nothing of a block is left behind the barrier of its cluster"


def test_clusters_are_for_sm_90a() -> None:
    text = "simt.kernel @k(%p: !simt.global<f32>) threads 32 smem 0 grid [2] cluster 2 params [] {\n}"
    (found,) = (op for op in parse_module(text, "k.mlir", make_context()).body.block.ops if isinstance(op, KernelOp))
    with pytest.raises(TilewrightError, match="clusters are for sm_90a, got sm_80"):
        emit_kernel(found, "sm_80")


@pytest.mark.nvrtc
def test_it_compiles_without_spills() -> None:
    compiled = compile_cubin(emit_kernel(kernel(), "sm_90a"), "sm_90a")
    (used,) = compiled.resources.values()
    assert (used.stack_bytes, used.spill_store_bytes, used.spill_load_bytes) == (0, 0, 0)
    assert "C75" not in compiled.log
