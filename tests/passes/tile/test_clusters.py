"""Products in clusters of two blocks: right after each pass, and in the simulator with every access checked."""

from __future__ import annotations

import pytest

from tests.passes.support import CONTEXT
from tests.passes.tile.matrix import ARCH, MATRIX, Matrix
from tests.passes.tile.matrix_programs import PRODUCTS
from tests.passes.tile.support import check_facts
from tilewright.api.testing.execute import PlannedCall, kernel_of
from tilewright.dialects.simt.clusters import ClusterBarrierOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.tma import TmaLoadOp
from tilewright.lowering import pipelines
from tilewright.lowering.instantiate import instantiate
from tilewright.passes.pipeline import run_pipeline
from tilewright.runtime.inputs import make_inputs
from tilewright.runtime.reference import compare, run_reference

ALONG = ("rows", "columns")


def simulate(matrix: Matrix, sizes: dict[str, int], left_out: tuple[str, ...] = ()) -> KernelOp:
    """Run a product in the simulator, copies landing as late and as early as is legal; its kernel."""
    arrays = make_inputs(matrix.function, sizes, 0)
    expected = run_reference(matrix.module, matrix.function.sym_name.data, arrays, sizes)
    call = PlannedCall(matrix.planned, arrays)
    ((name, site),) = call.sites.items()
    module = instantiate(matrix.planned, site.launch, ARCH)
    passes = pipelines.make_passes([n for n in pipelines.TILE if n not in left_out])
    run_pipeline(module, CONTEXT, passes, verify_each=True, on_after=check_facts)
    kernel = kernel_of(module)
    assert isinstance(kernel, KernelOp)
    for landing in ("latest", "earliest"):
        for got, want in zip(call.simulate({name: kernel}, landing), expected, strict=True):
            assert compare(got, want) is None
    return kernel


@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize(
    "name", ["plain", "bias_gelu", "two_groups", "right_transposed", "batched", "result_transposed"]
)
def test_each_pass_preserves(name: str, along: str) -> None:
    case = PRODUCTS[name]
    matrix = Matrix(case.build(), case.tiles, along=along)
    changed: set[str] = set()
    for number, sizes in enumerate(case.sizes):
        changed |= matrix.check(sizes, seed=number)
    assert changed >= {*MATRIX, "share-copies"}, [str(r) for r in matrix.remarks]


SIZES = (
    {"M": 200, "N": 264, "K": 136},
    {"M": 1, "N": 8, "K": 8},
    {"M": 65, "N": 72, "K": 0},
    {"M": 330, "N": 8, "K": 72},
)
"""Odd and even numbers of tiles, one tile, none of the sum."""


@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_no_fault_in_the_simulator(sizes: dict[str, int], along: str) -> None:
    kernel = simulate(Matrix(PRODUCTS["bias_gelu"].build(), along=along), sizes)
    assert kernel.cluster_size == 2
    loads = [op for op in kernel.walk() if isinstance(op, TmaLoadOp)]
    assert sorted(op.ranks for op in loads) == [(), (0, 1)]
    assert len([op for op in kernel.walk() if isinstance(op, ClusterBarrierOp)]) == 2


@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize("name", ["two_panels", "two_groups", "right_transposed", "deep", "left_transposed"])
def test_parts_are_panels_or_rows(name: str, along: str) -> None:
    case = PRODUCTS[name]
    simulate(Matrix(case.build(), case.tiles, along=along), {"M": 200, "N": 328, "K": 136})


@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize("left_out", ["share-copies", "make-persistent", "specialise-warps"])
def test_a_pass_may_be_left_out(left_out: str, along: str) -> None:
    kernel = simulate(Matrix(PRODUCTS["plain"].build(), along=along), {"M": 200, "N": 328, "K": 136}, (left_out,))
    loads = [op for op in kernel.walk() if isinstance(op, TmaLoadOp)]
    assert any(op.ranks for op in loads) == (left_out != "share-copies")
