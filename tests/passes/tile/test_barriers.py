"""remove-barriers keeps exactly the barriers that the race detector of the simulator asks for."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.passes.support import CONTEXT, parse
from tests.passes.tile.programs import CASES
from tests.passes.tile.support import Lowering
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.tile.structure import SyncOp
from tilewright.lowering import pipelines
from tilewright.lowering.instantiate import instantiate
from tilewright.passes.pipeline import run_pipeline
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import simulate

LAYOUT = "#tile.distributed<threads [64] strides [1] vector [1]>"
GLOBAL = "!tile.buf<[256], f32, global, #tile.strided<[1]>>"
HEAD = f"""
tile.kernel @k(%x: {GLOBAL}, %y: {GLOBAL}) grid (%i) = [1] threads 64 index_width 32 {{
  %zero = sym.apply 0
  %s = tile.alloc : !tile.buf<[64], f32, shared, #tile.strided<[1]>>
  %t = tile.alloc : !tile.buf<[64], f32, shared, #tile.strided<[1]>>
  %f = tile.alloc : !tile.buf<[64], f32, fragment, {LAYOUT}>
  %g = tile.alloc : !tile.buf<[64], f32, fragment, #tile.distributed<threads [32] strides [1] vector [2]>>
  %sum = tile.alloc : !tile.buf<[], f32, fragment, #tile.distributed<threads [] strides [] vector []>>
  tile.fill %sum with 0.0 : f32
"""
WRITE_S = f"  tile.copy %x[%zero] to %s bounds [proved] via thread width 1 dist {LAYOUT}\n"
READ_S = "  tile.copy %s to %g via thread width 1\n"
WRITE_T = "  tile.copy %g to %t via thread width 1\n"
READ_T = "  tile.copy %t to %f via thread width 1\n"
STORE = "  tile.copy %f to %y[%zero] bounds [proved] via thread width 1\n"
SYNC = "  tile.sync\n"
SUM = "  tile.reduce sum (d0) %f[d0] into %sum[] scratch %s\n"


def loop(body: str) -> str:
    return "  tile.for %k = 0 to 3 step 1 {\n" + body + "  }\n"


PLANTED = {
    # Program with a barrier at every place, and how many of them order something.
    "write_then_read": (SYNC + WRITE_S + SYNC + READ_S + SYNC, 1),
    "two_buffers": (WRITE_S + SYNC + READ_S + SYNC + WRITE_T + SYNC + READ_T + SYNC + STORE, 2),
    "nothing_shared": (SYNC + f"  tile.copy %x[%zero] to %f bounds [proved] via thread width 1\n{SYNC}" + STORE, 0),
    "twice_in_a_row": (WRITE_S + SYNC + SYNC + SYNC + READ_S, 1),
    "read_write_across_a_turn": (loop(WRITE_S + SYNC + READ_S + SYNC), 2),
    "the_turn_before_the_write": (loop(SYNC + WRITE_S + SYNC + READ_S), 2),
    "write_before_a_loop_that_reads": (WRITE_S + SYNC + loop(SYNC + READ_S + SYNC) + SYNC, 1),
    "write_before_a_loop_that_writes_at_its_end": (WRITE_S + SYNC + loop(READ_S + SYNC + WRITE_S + SYNC), 3),
    "two_buffers_share_a_barrier": (loop(WRITE_S + WRITE_T + SYNC + SYNC + READ_S + READ_T + SYNC), 2),
    # A reduction has barriers of its own: before it writes to its scratch, and before it reads it.
    "reductions_in_turns": (loop(SYNC + SUM + SYNC + SUM + SYNC), 0),
    "a_scratch_written_after_the_reduction": (SUM + SYNC + WRITE_S, 1),
    "a_scratch_written_before_the_next_turn": (loop(SYNC + SUM + SYNC + WRITE_S + SYNC), 1),
}


def syncs(module: ModuleOp) -> list[SyncOp]:
    """The barriers of a module."""
    return [op for op in module.walk() if isinstance(op, SyncOp)]


def races(module: ModuleOp, arrays: list[np.ndarray], symbols: dict[str, int]) -> list[str]:
    """The races that the simulator sees in a module of one kernel with barriers as they are."""
    copy = module.clone()
    rest = pipelines.TILE[pipelines.TILE.index("remove-barriers") + 1 :]
    run_pipeline(copy, CONTEXT, pipelines.make_passes(rest), verify_each=True)
    (kernel,) = (op for op in copy.ops if isinstance(op, KernelOp))
    scalars = [p.data.evaluate(symbols) for p in kernel.params.data]
    report = simulate(
        kernel, [Buffer(a) for a in arrays], scalars, grid=kernel.grid.data.evaluate(symbols), level="check"
    )
    return [str(d) for d in report.diagnostics if d.kind == "race"]


def assert_minimal(module: ModuleOp, arrays: list[np.ndarray], symbols: dict[str, int]) -> None:
    """No race as it is; a race without any one of the barriers."""
    assert races(module, arrays, symbols) == []
    for n in range(len(syncs(module))):
        lacking = module.clone()
        barrier = syncs(lacking)[n]
        barrier.detach()
        assert races(lacking, arrays, symbols), f"barrier {n} orders nothing:\n{module}"


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name: str) -> None:
    body, needed = PLANTED[name]
    module = parse(HEAD + body + "}\n")
    run_pipeline(module, CONTEXT, pipelines.make_passes(["remove-barriers"]), verify_each=True)
    assert len(syncs(module)) == needed
    assert_minimal(module, [np.zeros(256, np.float32), np.zeros(256, np.float32)], {})


@pytest.mark.parametrize(
    ("name", "sizes", "inserted", "needed"),
    [
        ("matmul_bias_relu", {"M": 32, "N": 32, "K": 128}, 4, 2),
        ("einsum_two_summed", {"M": 32, "N": 32, "B": 2, "K": 128}, 4, 2),
        ("transpose", {"M": 64, "N": 64}, 2, 1),
        ("plus_transpose", {"M": 64}, 2, 1),
    ],
)
def test_of_programs(name: str, sizes: dict[str, int], inserted: int, needed: int) -> None:
    lowering = Lowering(CASES[name].build())
    arrays = lowering.inputs(sizes)
    (launch,) = lowering.call(arrays).launches
    module = instantiate(lowering.planned, launch.site.launch)
    before = pipelines.TILE[: pipelines.TILE.index("remove-barriers")]
    run_pipeline(module, CONTEXT, pipelines.make_passes(before), verify_each=True)
    assert len(syncs(module)) == inserted
    run_pipeline(module, CONTEXT, pipelines.make_passes(["remove-barriers"]), verify_each=True)
    assert len(syncs(module)) == needed
    call = lowering.call(arrays)
    assert_minimal(module, [a.ravel() for a in (*arrays, *call.results)], call.symbols)
