"""Products for sm_90a compute the same after each pass of the tile pipeline, in the tile interpreter."""

from __future__ import annotations

import pytest

from tests.passes.support import CONTEXT
from tests.passes.tile.matrix import ARCH, MATRIX, Matrix
from tests.passes.tile.matrix_programs import PRODUCTS, TF32_ACROSS, TF32_PRODUCTS, K, M, N, half
from tests.passes.tile.programs import take
from tests.passes.tile.support import check_facts
from tilewright.api import frontend as tw
from tilewright.api.testing.execute import PlannedCall, kernel_of
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.wgmma import WgmmaOp, WgmmaRegsOp
from tilewright.lowering import pipelines
from tilewright.lowering.instantiate import instantiate
from tilewright.passes.pipeline import run_pipeline
from tilewright.runtime.inputs import make_inputs
from tilewright.runtime.reference import compare, run_reference

CASES = {**PRODUCTS, **{f"tf32_{name}": case for name, case in TF32_PRODUCTS.items()}}


@pytest.mark.parametrize("name", CASES)
def test_each_pass_preserves(name: str) -> None:
    case = CASES[name]
    matrix = Matrix(case.build(), case.tiles)
    changed: set[str] = set()
    for number, sizes in enumerate(case.sizes):
        changed |= matrix.check(sizes, seed=number)
    assert changed >= set(MATRIX), [str(r) for r in matrix.remarks]


@pytest.mark.parametrize("sizes", [{"M": 5, "N": 7, "K": 9}, {"M": 64, "N": 65, "K": 64}])
def test_what_no_tensor_map_can_move_is_left_to_the_threads(sizes: dict[str, int]) -> None:
    matrix = Matrix(PRODUCTS["plain"].build())
    # Copies run ahead there, too, through registers.
    assert matrix.check(sizes) & set(MATRIX) == {"pipeline-copies"}
    (declined,) = {r.message for r in matrix.remarks if r.pass_name == "choose-mma"}
    assert declined == "multiply-adds of threads: the left operand: no dim of stride 1 for certain"


SIZES = {"M": 130, "N": 200, "K": 136}


@pytest.mark.parametrize("left_out", [*MATRIX, "all"])
def test_a_pass_may_be_left_out(left_out: str) -> None:
    case = PRODUCTS["two_groups"]
    matrix = Matrix(case.build(), case.tiles)
    skipped = MATRIX if left_out == "all" else (left_out,)
    arrays = make_inputs(matrix.function, SIZES, 0)
    (expected,) = run_reference(matrix.module, matrix.function.sym_name.data, arrays, SIZES)
    call = PlannedCall(matrix.planned, arrays)
    ((name, site),) = call.sites.items()
    module = instantiate(matrix.planned, site.launch, ARCH)
    passes = pipelines.make_passes([n for n in pipelines.TILE if n not in skipped])
    if left_out == "pipeline-copies":
        with pytest.raises(TilewrightError, match=r"tile\.mma: expected a scheduled op, got one without channel"):
            run_pipeline(module, CONTEXT, passes)
        return
    run_pipeline(module, CONTEXT, passes, verify_each=True, on_after=check_facts)
    (result,) = call.simulate({name: kernel_of(module)})
    assert compare(result, expected) is None


def test_one_tensor_map_moves_both_operands_where_they_are_one_tensor() -> None:
    a = half(M, K)
    matrix = Matrix(tw.einsum("ik,jk->ij", a, a))
    sizes = {"M": 72, "K": 136}
    arrays = make_inputs(matrix.function, sizes, 0)
    (expected,) = run_reference(matrix.module, matrix.function.sym_name.data, arrays, sizes)
    call = PlannedCall(matrix.planned, arrays)
    ((name, site),) = call.sites.items()
    module = instantiate(matrix.planned, site.launch, ARCH)
    run_pipeline(module, CONTEXT, pipelines.make_passes(pipelines.TILE), verify_each=True, on_after=check_facts)
    kernel = kernel_of(module)
    assert isinstance(kernel, KernelOp)
    assert len(kernel.maps) == 2  # the operands', and the result's
    (result,) = call.simulate({name: kernel})
    assert compare(result, expected) is None


def test_operands_of_several_panels_along_the_sum() -> None:
    """Both operands have rows of 128 elements of the sum, in panels of 64: the instructions go from one to the next."""
    case = PRODUCTS["deep"]
    matrix = Matrix(case.build(), case.tiles)
    arrays = make_inputs(matrix.function, SIZES, 0)
    (expected,) = run_reference(matrix.module, matrix.function.sym_name.data, arrays, SIZES)
    call = PlannedCall(matrix.planned, arrays)
    ((name, site),) = call.sites.items()
    module = instantiate(matrix.planned, site.launch, ARCH)
    run_pipeline(module, CONTEXT, pipelines.make_passes(pipelines.TILE), verify_each=True, on_after=check_facts)
    kernel = kernel_of(module)
    products = [op for op in kernel.walk() if isinstance(op, WgmmaOp)]
    assert [op.majors.data for op in products] == ["k,k"]
    (result,) = call.simulate({name: kernel})
    assert compare(result, expected) is None


TF32_TILES = [("right_across", 1), ("right_across_two_groups", 2), ("left_across", 2), ("right_transposed", 1)]
"""Products in tf32, and the warpgroups that multiply."""


@pytest.mark.parametrize(("name", "groups"), TF32_TILES)
@pytest.mark.parametrize("sizes", [{"M": 72, "N": 136, "K": 104}, {"M": 200, "N": 72, "K": 8}])
def test_tf32_in_the_simulator(name: str, groups: int, sizes: dict[str, int]) -> None:
    """Values, and no fault, whether operands are read when an instruction starts or when it is waited for; a left
    operand that goes through registers is loaded from banks that no other lane of a phase reads."""
    case = TF32_PRODUCTS[name]
    matrix = Matrix(case.build(), case.tiles)
    arrays = make_inputs(matrix.function, sizes, 0)
    (expected,) = run_reference(matrix.module, matrix.function.sym_name.data, arrays, sizes)
    call = PlannedCall(matrix.planned, arrays)
    ((site_name, site),) = call.sites.items()
    module = instantiate(matrix.planned, site.launch, ARCH)
    run_pipeline(module, CONTEXT, pipelines.make_passes(pipelines.TILE), verify_each=True, on_after=check_facts)
    kernel = kernel_of(module)
    assert isinstance(kernel, KernelOp)
    through = [op for op in kernel.walk() if isinstance(op, WgmmaRegsOp)]
    assert bool(through) == ("across" in name)
    assert kernel.threads.value.data == (groups + 1) * 128
    for landing in ("latest", "earliest"):
        (result,) = call.simulate({site_name: kernel}, landing)
        assert compare(result, expected) is None


def test_two_operands_that_are_not_contiguous_along_the_sum_are_left_to_the_threads() -> None:
    case = TF32_ACROSS["left_transposed"]
    matrix = Matrix(case.build(), case.tiles)
    matrix.check({"M": 64, "N": 64, "K": 64})
    (declined,) = {r.message for r in matrix.remarks if r.pass_name == "choose-mma"}
    assert declined == "multiply-adds of threads: no operand of f32 is contiguous along the sum"


def test_f32_without_precision_is_left_to_the_threads() -> None:
    matrix = Matrix(tw.einsum("ik,jk->ij", take(M, K), take(N, K)), (64, 64, 32))
    matrix.check({"M": 64, "N": 64, "K": 64})
    (declined,) = {r.message for r in matrix.remarks if r.pass_name == "choose-mma"}
    assert declined == "multiply-adds of threads: operands of f32 and f32"
