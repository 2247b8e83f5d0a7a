"""What is wrong with a kernel shows: a missing barrier as a wrong value, one that not all reach as one line."""

from __future__ import annotations

import mmap
import re
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.lowering.support import kernel_text, lowered
from tests.runtime.cpu.support import built, launch, on_simulator
from tests.runtime.cpu.test_kernels import arguments
from tests.runtime.sim.conftest import Sim
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.sync import BarrierOp
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.cpu_unit import CpuKernel, CpuSource, build
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import simulate

pytestmark = pytest.mark.cxx

STAGED = ("transpose", "matmul", "row_sum", "column_max")
"""Kernels that hand values from thread to thread through shared memory."""
HIDDEN = {("row_sum", 0)}
"""Barriers whose work the shuffles between two turns do here: all threads run to their next wait before any goes on."""


def without_barrier(text: str, number: int) -> str:
    """A source with one of its barriers dropped."""
    lines = text.splitlines()
    del lines[[i for i, line in enumerate(lines) if line.strip() == "tw_barrier();"][number]]
    return "\n".join(lines) + "\n"


def barriers(text: str) -> int:
    return len(re.findall(r"^\s*tw_barrier\(\);$", text, re.MULTILINE))


@pytest.fixture(scope="module")
def planted() -> list[tuple[str, int, KernelOp, CpuKernel]]:
    """Each kernel without each of its barriers, all in one translation unit."""
    found: list[tuple[str, int, KernelOp, str]] = []
    for name in STAGED:
        op = lowered(kernel_text(name))
        text = emit_kernel(op, "sm_80")
        found += [(name, number, op, without_barrier(text, number)) for number in range(barriers(text))]
    kernels = build([CpuSource(op, text) for _, _, op, text in found])
    return [(name, number, op, kernel) for (name, number, op, _), kernel in zip(found, kernels, strict=True)]


def is_race(name: str, number: int, arrays: list[Any], scalars: list[Any], grid: int) -> bool:
    """Whether the simulator finds a race where the IR lacks the barrier; some have another nearby that does as well."""
    op = lowered(kernel_text(name))
    barrier = [each for each in op.walk() if isinstance(each, BarrierOp)][number]
    barrier.detach()
    barrier.erase()
    report = simulate(op, [Buffer(a.copy()) for a in arrays], scalars, grid=grid, level="check")
    return any(each.kind == "race" for each in report.diagnostics)


def test_a_missing_barrier_gives_wrong_values(planted: list[tuple[str, int, KernelOp, CpuKernel]]) -> None:
    """In the order of thread numbers or one of a few random ones, where the simulator finds a race that can show."""
    races = 0
    for name, number, op, kernel in planted:
        symbols, arrays, values = arguments(name)
        scalars = [*values, *(p.data.evaluate(symbols) for p in op.params.data)]
        grid = op.grid.data.evaluate(symbols)
        expected = [a.copy() for a in arrays]
        on_simulator(op, expected, scalars, grid)
        wrong = False
        for seed in range(8):
            got = [a.copy() for a in arrays]
            launch(kernel, got, scalars, grid, seed=seed)
            wrong = wrong or (got[-1] != expected[-1]).any()
        race = is_race(name, number, arrays, scalars, grid)
        races += race
        assert wrong == (race and (name, number) not in HIDDEN), (name, number)
    assert races >= 4


def test_an_order_of_threads_repeats(planted: list[tuple[str, int, KernelOp, CpuKernel]]) -> None:
    name, _, op, kernel = next(each for each in planted if each[0] == "transpose")
    symbols, (x, y), _ = arguments(name)
    scalars, grid = [p.data.evaluate(symbols) for p in op.params.data], op.grid.data.evaluate(symbols)
    made: list[Any] = []
    for seed in (5, 5, 6):
        y[:] = 0
        launch(kernel, [x, y], scalars, grid, seed=seed)
        made.append(y.tobytes())
    assert made[0] == made[1] != made[2]


HEAD = """
  %t = simt.tid
  %zero = arith.constant 0 : i32
  %half = arith.constant 16 : i32
  %first = arith.cmpi slt, %t, %half : i32
"""
BRANCHES = """  scf.if %first {
    YES
    scf.yield
  } else {
    NO
    scf.yield
  }"""


def faulty(yes: str, no: str, threads: int = 64) -> CpuKernel:
    body = HEAD + BRANCHES.replace("YES", yes).replace("NO", no)
    return built([Sim().kernel(body, "", threads)])[0]


def fault_of(kernel: CpuKernel) -> str:
    with pytest.raises(TilewrightError) as caught:
        kernel.launch([], [], 3, workers=1)
    assert "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize(
    ("yes", "no", "expected"),
    [
        (
            "simt.barrier", "simt.barrier",
            r"@k: block 0: barrier divergence: thread 16 waits at line \d+ of the source, thread 0 at line \d+",
        ),
        (
            "%a = simt.shuffle xor %t, 1", "%b = simt.shuffle xor %t, 1",
            r"@k: block 0: divergence in a warp: thread 0 waits at line \d+ .*, thread 31 at line \d+",
        ),
        (
            "%a = simt.shuffle xor %t, 1", "simt.barrier",
            r"@k: block 0: deadlock: thread 0 waits at line \d+ of the source for lanes of its warp that do not come",
        ),
        (
            "simt.barrier", "%a = simt.shuffle xor %t, 1",
            r"@k: block 0: deadlock: thread 16 waits at line \d+ .* do not come, thread 0 at line \d+",
        ),
    ],
)  # fmt: skip
def test_threads_that_part_are_reported(yes: str, no: str, expected: str) -> None:
    kernel = faulty(yes, no)
    message = fault_of(kernel)
    assert re.fullmatch(expected, message), message
    # The stacks that were left behind are as good as new.
    assert fault_of(kernel) == message


def test_lines_are_those_of_the_source() -> None:
    body = HEAD + BRANCHES.replace("YES", "simt.barrier").replace("NO", "simt.barrier")
    op = Sim().kernel(body, "", 64)
    text = emit_kernel(op, "sm_80")
    lines = [int(n) for n in re.findall(r"line (\d+)", fault_of(build([CpuSource(op, text)])[0]))]
    places = [i for i, line in enumerate(text.splitlines(), 1) if line.strip() == "tw_barrier();"]
    assert sorted(lines) == places


def test_threads_that_have_ended_count_at_no_barrier() -> None:
    """A barrier of those threads that are left, as the hardware has it."""
    op = Sim().kernel(HEAD + BRANCHES.replace("YES", "").replace("NO", "simt.barrier"), "", 64)
    built([op])[0].launch([], [], 3)


def guard_pages() -> list[int]:
    """Where this process has single pages that nothing may touch."""
    found: list[int] = []
    for line in Path("/proc/self/maps").read_text(encoding="ascii").splitlines():
        where, rights = line.split()[:2]
        first, last = (int(n, 16) for n in where.split("-"))
        if rights == "---p" and last - first == mmap.PAGESIZE:
            found.append(first)
    return found


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="tells no mappings")
def test_a_page_that_nothing_may_touch_lies_below_the_stack_of_every_thread() -> None:
    """An overflow ends the process at once, in place of changing what lies there: also for the first thread."""
    threads = 1024
    built([Sim().kernel("simt.barrier", "", threads)])[0].launch([], [], 1, workers=1)
    pages = guard_pages()
    steps = [b - a for a, b in pairwise(pages)]
    longest = max(len(list(run)) + 1 for _, run in groupby(steps))
    assert longest >= threads
