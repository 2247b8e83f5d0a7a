"""Random programs on the GPU against the reference, and the runner of such a corpus on what is there without one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.gpu_corpus import Outcome, Task, main, programs, run_corpus, run_program, sizes_of, summary
from tilewright.api.testing.program import Program

COUNT = 500


@pytest.mark.gpu
@pytest.mark.nvrtc
@pytest.mark.slow
def test_random_programs_are_within_their_bounds_on_the_gpu() -> None:
    tasks = [Task(number, program, "cuda", calls=4) for number, program in enumerate(programs(COUNT, seed=0))]
    outcomes = run_corpus(tasks, os.cpu_count() or 1, limit=240)
    assert len(outcomes) == COUNT
    assert [(each.number, each.state, each.message) for each in outcomes if each.state != "right"] == []
    assert sum(each.calls for each in outcomes) > 2 * COUNT
    assert sum(each.launches for each in outcomes) > 2 * COUNT


SUM = """
sym.symbol @M {max = 64}
func.func @main(%x : tensor<?xf32, #sym.dims<M>>) -> tensor<f32> {
  %y = lin.reduce sum %x axes [0] : tensor<?xf32, #sym.dims<M>> -> tensor<f32>
  func.return %y : tensor<f32>
}
"""
DOUBLE = """
sym.symbol @M {max = 64}
func.func @main(%x : tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  %y = lin.map ins(%x : tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  ^bb0(%a: f32):
    %b = arith.addf %a, %a : f32
    lin.yield %b : f32
  }
  func.return %y : tensor<?xf32, #sym.dims<M>>
}
"""


def test_a_program_runs_and_is_compared() -> None:
    outcome = run_program(Task(3, Program(DOUBLE, {"M": 37}), "sim"))
    assert outcome == Outcome(3, "right", "", calls=1, launches=1, elements=37)


def test_a_wrong_result_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.runtime.kernel import Kernel

    right = Kernel.__call__

    def off_by_a_bit(self: Kernel, *args: object) -> object:
        result = right(self, *args)
        result[5] += 1  # pyright: ignore[reportIndexIssue, reportOptionalSubscript, reportUnknownVariableType]
        return result

    monkeypatch.setattr(Kernel, "__call__", off_by_a_bit)
    outcome = run_program(Task(0, Program(DOUBLE, {"M": 37}), "sim"))
    assert outcome.state == "wrong"
    assert outcome.message.startswith("result 0: ")
    assert outcome.sizes == {"M": 37}


def test_a_program_runs_at_other_sizes_too() -> None:
    task = Task(5, Program(DOUBLE, {"M": 37}), "sim", calls=4)
    sizes = sizes_of(task)
    assert sizes[0] == {"M": 37}
    assert len({each["M"] for each in sizes}) == len(sizes) == 4
    outcome = run_program(task)
    assert (outcome.state, outcome.calls, outcome.elements) == ("right", 4, sum(each["M"] for each in sizes))
    assert sizes_of(Task(0, Program("func.func @main() {", {}), "sim", calls=4)) == [{}]


def test_a_program_that_cannot_run_is_an_error() -> None:
    assert run_program(Task(0, Program("func.func @main() {", {}), "sim")).state == "error"
    # 65 is not within the symbol's range: the reference says so before anything runs.
    beyond = run_program(Task(0, Program(SUM, {"M": 65}), "sim"))
    assert beyond.state == "error"


def test_outcomes_are_in_order_whoever_is_first_and_a_limit_ends_the_run() -> None:
    tasks = [Task(n, Program(text, {"M": 5 + n}), "sim") for n, text in enumerate((SUM, DOUBLE, DOUBLE))]
    seen: list[int] = []
    outcomes = run_corpus(tasks, 2, 240, lambda outcome, done: seen.append(done))
    assert [(each.number, each.state) for each in outcomes] == [(0, "right"), (1, "right"), (2, "right")]
    assert seen == [1, 2, 3]
    found = summary(tasks, [outcomes[0], replace(outcomes[1], state="wrong", sizes={"M": 6}), outcomes[2]], 7, 1.25)
    assert (found["programs"], found["right"], found["wrong"], found["error"]) == (3, 2, 1, 0)
    (failure,) = found["failures"]
    assert (failure["number"], failure["sizes"]) == (1, {"M": 6})
    assert Program(**failure["program"]) == Program(DOUBLE, {"M": 6}), "all it takes to run it again"
    late = run_corpus(tasks, 1, 0)
    assert [(each.state, each.message) for each in late] == [("error", "not done after 0 s")] * 3


def test_the_tool_writes_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "summary.json"
    assert main(["--backend", "sim", "--count", "4", "--jobs", "2", "--json", str(path)]) == 0
    assert "sim: 4 of 4 programs within bounds, 0 outside, 0 errors" in capsys.readouterr().out
    assert path.exists()
