"""Products for sm_80 compute the same after each pass of the tile pipeline, and in the simulator without faults."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from xdsl.dialects import scf
from xdsl.ir import Operation

from tests.passes.support import CONTEXT
from tests.passes.tile.matrix import Matrix
from tests.passes.tile.matrix_programs import PRODUCTS as HALF
from tests.passes.tile.matrix_programs import TF32_ACROSS, TF32_PRODUCTS, Product
from tests.passes.tile.programs import at
from tests.passes.tile.support import Lowering, check_facts
from tilewright.api.testing.execute import Faults, PlannedCall, kernel_of
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.async_copy import CpAsyncCommitOp, CpAsyncOp, CpAsyncWaitOp
from tilewright.dialects.simt.matrix import LdmatrixOp, MmaSyncOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.sync import BarrierOp
from tilewright.dialects.tile.channels import ReleaseOp
from tilewright.lowering import pipelines
from tilewright.lowering.instantiate import instantiate
from tilewright.passes.pipeline import run_pipeline
from tilewright.runtime.inputs import make_inputs
from tilewright.runtime.reference import compare, run_reference

ARCH = "sm_80"
PRODUCTS = {**HALF, **{f"tf32_{name}": case for name, case in {**TF32_PRODUCTS, **TF32_ACROSS}.items()}}
WARPS = ("choose-mma", "pipeline-copies")
"""The passes that act on kernels for warps alone."""
ODD = at("M N K", (1, 1, 1), (63, 65, 33), (65, 7, 100), (70, 33, 0))
ODD_BATCH = at("B M N K", (2, 33, 65, 35))
TILES: dict[str, tuple[int, ...]] = {
    "plain": (64, 64, 32),
    "right_transposed": (128, 64, 32),
    "both_transposed": (32, 32, 16),
    "two_groups": (16, 64, 32),
}
"""Other tiles than the products' own: several shapes of warps."""


def matrix_of(name: str) -> Matrix:
    case = PRODUCTS[name]
    return Matrix(case.build(), TILES.get(name, case.tiles), ARCH)


def sizes_of(case: Product) -> tuple[dict[str, int], ...]:
    return (*case.sizes, *(ODD_BATCH if "B" in case.sizes[0] else ODD))


@pytest.mark.parametrize("name", PRODUCTS)
def test_each_pass_preserves(name: str) -> None:
    matrix, changed = matrix_of(name), set[str]()
    for number, sizes in enumerate(sizes_of(PRODUCTS[name])):
        changed |= matrix.check(sizes, seed=number)
    assert changed >= set(WARPS), [str(r) for r in matrix.remarks]


class Simulated:
    """A call of a product with its kernels at the simt level."""

    def __init__(
        self, name: str, sizes: Mapping[str, int], left_out: tuple[str, ...] = (), stages: int | None = None
    ) -> None:
        matrix = matrix_of(name)
        arrays = make_inputs(matrix.function, sizes, 0)
        self.expected = run_reference(matrix.module, matrix.function.sym_name.data, arrays, dict(sizes))
        self.call = PlannedCall(matrix.planned, arrays)
        self.kernels: dict[str, KernelOp] = {}
        for site_name, site in self.call.sites.items():
            module = instantiate(matrix.planned, site.launch, ARCH)
            options = {} if stages is None else {"pipeline-copies": {"stages": stages}}
            passes = pipelines.make_passes([n for n in pipelines.TILE if n not in left_out], options)
            run_pipeline(module, CONTEXT, passes, verify_each=True, on_after=check_facts)
            kernel = kernel_of(module)
            assert isinstance(kernel, KernelOp)
            self.kernels[site_name] = kernel

    def count(self, kind: type[Operation]) -> int:
        return sum(isinstance(op, kind) for kernel in self.kernels.values() for op in kernel.walk())

    def run(self) -> None:
        """Results as expected and no faults, as late and as early as copies may land."""
        for landing in ("latest", "earliest"):
            for got, want in zip(self.call.simulate(self.kernels, landing), self.expected, strict=True):
                assert compare(got, want) is None


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_simulator_finds_no_fault(name: str) -> None:
    for sizes in (PRODUCTS[name].sizes[3], sizes_of(PRODUCTS[name])[-1]):
        Simulated(name, sizes).run()


@pytest.mark.parametrize("sizes", [{"M": 64, "N": 72, "K": 104}, {"M": 5, "N": 7, "K": 101}])
@pytest.mark.parametrize("left_out", [*WARPS, "vectorise", "coalesce", "prove-bounds", "remove-barriers", "all"])
def test_a_pass_may_be_left_out(left_out: str, sizes: dict[str, int]) -> None:
    skipped = (*WARPS, "vectorise", "coalesce", "prove-bounds", "remove-barriers") if left_out == "all" else (left_out,)
    made = Simulated("plain", sizes, skipped)
    made.run()
    assert bool(made.count(MmaSyncOp)) == ("choose-mma" not in skipped)
    assert bool(made.count(CpAsyncOp)) == (sizes["K"] % 8 == 0 and not set(WARPS).intersection(skipped))


SIZES = {"M": 64, "N": 72, "K": 232}


def without(kernel: KernelOp, kind: type[Operation], number: int = 0) -> None:
    """Erase the `number`th op of a kind."""
    op = [o for o in kernel.walk() if isinstance(o, kind)][number]
    op.detach()
    op.erase()


def test_the_kernel_has_one_barrier_a_turn() -> None:
    made = Simulated("plain", SIZES)
    assert made.count(BarrierOp) == 1
    assert made.count(LdmatrixOp) == 2
    assert made.count(CpAsyncCommitOp) == 2


@pytest.mark.parametrize("name", ["plain", "bias_gelu"])
def test_a_product_that_is_mapped_stays_as_it_is(name: str) -> None:
    matrix = matrix_of(name)
    call = PlannedCall(matrix.planned, make_inputs(matrix.function, SIZES, 0))
    (site,) = call.sites.values()
    module = instantiate(matrix.planned, site.launch, ARCH)
    passes = pipelines.TILE[: pipelines.TILE.index("map-threads") + 1]
    run_pipeline(module, CONTEXT, pipelines.make_passes(passes))
    before = str(module)
    run_pipeline(module, CONTEXT, pipelines.make_passes(["map-threads"]))
    assert str(module) == before


def test_of_two_slots_the_one_that_is_read_has_landed() -> None:
    """There is no group after it that may still be on its way."""
    made = Simulated("plain", SIZES, stages=2)
    waits = [op for kernel in made.kernels.values() for op in kernel.walk() if isinstance(op, CpAsyncWaitOp)]
    assert [op.pending.value.data for op in waits] == [0]
    made.run()


FAULTS: dict[str, tuple[type[Operation], int, str]] = {
    "the wait while the ring is full": (CpAsyncWaitOp, 0, "in-flight"),
    "the wait at the end": (CpAsyncWaitOp, 1, "in-flight"),
    "the end of a group before the loop": (CpAsyncCommitOp, 0, "in-flight"),
    "the end of a group in the loop": (CpAsyncCommitOp, 1, "in-flight"),
    "the barrier": (BarrierOp, 0, "race|in-flight"),
}
"""What is taken away, and what the simulator says."""


@pytest.mark.parametrize("fault", FAULTS)
def test_the_simulator_finds_a_missing(fault: str) -> None:
    kind, number, message = FAULTS[fault]
    made = Simulated("plain", SIZES)
    for kernel in made.kernels.values():
        without(kernel, kind, number)
    with pytest.raises(Faults) as caught:
        made.call.simulate(made.kernels, "latest")
    assert re.search(message, str(caught.value))


def test_a_wait_for_one_group_too_few_is_found() -> None:
    made = Simulated("plain", SIZES)
    for kernel in made.kernels.values():
        wait = next(o for o in kernel.walk() if isinstance(o, CpAsyncWaitOp))
        assert isinstance(wait.parent_op(), scf.IfOp)
        later = CpAsyncWaitOp(wait.pending.value.data + 1)
        assert wait.parent is not None
        wait.parent.insert_op_before(later, wait)
        wait.detach()
        wait.erase()
    with pytest.raises(Faults, match="in-flight"):
        made.call.simulate(made.kernels, "latest")


def test_the_interpreter_finds_a_slot_that_is_not_released() -> None:
    matrix = matrix_of("plain")
    call = PlannedCall(matrix.planned, make_inputs(matrix.function, SIZES, 0))
    ((name, site),) = call.sites.items()
    module = instantiate(matrix.planned, site.launch, ARCH)
    run_pipeline(module, CONTEXT, pipelines.make_passes(pipelines.TILE[: pipelines.TILE.index("tile-to-simt")]))
    release = next(o for o in module.walk() if isinstance(o, ReleaseOp))
    release.detach()
    release.erase()
    with pytest.raises(TilewrightError, match=r"tile\.acquire"):
        call.interpret({name: kernel_of(module)})


@pytest.mark.parametrize("tiles", [(64, 64, 32), (128, 128, 32), (128, 64, 64), (64, 64, 16)])
@pytest.mark.parametrize("name", ["plain", "left_transposed", "right_transposed", "both_transposed"])
def test_no_access_to_shared_memory_meets_a_bank_twice(name: str, tiles: tuple[int, ...]) -> None:
    """A warp reads four matrices of 128 bytes, or writes 512 bytes: four wavefronts either way."""
    lowering = Lowering(PRODUCTS[name].build(), tile_sizes=tiles, arch=ARCH)
    (launch,) = lowering.assert_right({"M": 128, "N": 128, "K": 64}).launches
    reads, writes = launch.accesses("simt.ldmatrix", "shared"), launch.accesses("simt.cp_async", "global")
    assert len(reads) == 2
    assert len(writes) >= 2
    assert [each.wavefronts_per_request for each in (*reads, *writes)] == [4.0] * (2 + len(writes))
