"""`tilewright bench` from the command line to the page: sessions, files, summaries, plots, and every refusal a line."""

from __future__ import annotations

import io
import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.api.test_bench_measure import FakeTimer
from tilewright.api.bench.lab import Prepared
from tilewright.api.bench.measure import Settings, Timing
from tilewright.api.bench.records import OURS, Record, Results, load, load_folder, merged
from tilewright.api.bench.report import make_report
from tilewright.api.bench.session import Plan, file_name, run
from tilewright.api.bench.shapes import Item, Shape, make_items
from tilewright.api.bench.summary import as_text, geometric_mean, groups, totals
from tilewright.api.bench.svg import Panel, nice_step, plot
from tilewright.api.cli import main
from tilewright.diagnostics import TilewrightError


class FakeLab:
    """We take 2 ms a call, cuBLAS 1 ms; `odd` shapes are wrong, those of 7 fail for us."""

    def __init__(self, gpu: str = "fake") -> None:
        self.timer = FakeTimer()
        self.skipped = {"triton": "not installed"}
        self.gpu = gpu
        self.prepared: list[str] = []

    def machine(self) -> dict[str, str]:
        return {"gpu": self.gpu}

    def kernels(self) -> dict[str, dict[str, Any]]:
        compiled = [{"name": "main_0", "variant": f"v{n}"} for n in range(min(2, len(self.prepared)))]
        return {"matmul": {"compiled": compiled, "variants": 8}}

    def prepare(self, item: Item) -> Prepared:
        self.prepared.append(item.key)
        found = Prepared(calls={"cublas": lambda: 0.001}, errors={"cublas": 1e-4})
        if item.shape.m == 7:
            found.notes[OURS] = "no variant fits"
            return found
        found.calls[OURS] = lambda: 0.002
        found.errors[OURS] = 0.5 if item.set == "odd" else 1e-4
        return found


def plan(tmp_path: Path, words: list[str], **options: Any) -> Plan:
    items = tuple(make_items(words, ["bf16"]))
    return Plan(items, (1, 1), tmp_path / file_name(words, ["bf16"], (1, 1)), "tilewright bench gemm", **options)


def go(which: Plan, lab: FakeLab, clock: Callable[[], float] = lambda: 0.0) -> tuple[Results, list[str]]:
    said: list[str] = []
    settings = Settings(rounds=3, warm=0.0)
    return run(which, lambda: lab, settings, said.append, clock), said


def test_a_session_measures_compares_and_keeps(tmp_path: Path) -> None:
    which = plan(tmp_path, ["8x8x8", "7x8x9"])
    results, said = go(which, FakeLab())
    assert said[0] == "triton: skipped: not installed"
    assert "x0.500" in said[1]
    assert "(tilewright: no variant fits)" in said[2]
    again = load(which.path)
    assert again.complete
    assert again.records.keys() == results.records.keys()
    record = again.records["given/bf16/8x8x8"]
    assert record.ratio("burst", "cublas") == pytest.approx(0.5)
    assert record.tflops("sustained", "cublas") == pytest.approx(2 * 8**3 / 0.001 / 1e12)
    assert record.new_kernels == ["matmul: main_0/v0"]
    assert again.records["given/bf16/7x8x9"].new_kernels == ["matmul: main_0/v1"]
    assert again.records["given/bf16/7x8x9"].ratio("burst", "cublas") is None
    assert (again.machine["gpu"], again.machine["command"]) == ("fake", "tilewright bench gemm")
    assert again.settings["rounds"] == 3


def test_what_is_on_disk_gives_the_same_report_as_what_was_measured(tmp_path: Path) -> None:
    which = plan(tmp_path, ["odd", "8x8x8", "7x8x9"])
    results, _ = go(which, FakeLab())
    assert make_report([load(which.path)], "p") == make_report([results], "p")


def test_resume_measures_the_rest(tmp_path: Path) -> None:
    times = iter(range(0, 1000, 10))
    first, said = go(plan(tmp_path, ["table"], time_limit=25.0), FakeLab(), lambda: float(next(times)))
    assert 0 < len(first.records) < 15
    assert not first.complete
    assert "--resume goes on" in said[-1]
    lab = FakeLab()
    second, _ = go(plan(tmp_path, ["table"], resume=True), lab)
    assert second.complete
    assert set(lab.prepared) == {i.key for i in make_items(["table"], ["bf16"])} - set(first.records)
    lab = FakeLab()
    go(plan(tmp_path, ["table"]), lab)
    assert len(lab.prepared) == 15, "without --resume from the start"


def test_resume_on_another_machine_is_refused(tmp_path: Path) -> None:
    go(plan(tmp_path, ["8^3"]), FakeLab())
    with pytest.raises(TilewrightError, match="has gpu 'fake', this machine has 'other'"):
        go(plan(tmp_path, ["8^3"], resume=True), FakeLab("other"))


def test_what_was_measured_before_a_failure_is_kept(tmp_path: Path) -> None:
    class Failing(FakeLab):
        def prepare(self, item: Item) -> Prepared:
            if len(self.prepared) == 2:
                raise RuntimeError("CUDA error: an illegal\nmemory access")
            return super().prepare(item)

    which = plan(tmp_path, ["table"])
    with pytest.raises(TilewrightError, match=r"table/bf16/2048x2048x2048: CUDA error: an illegal memory access"):
        go(which, Failing())
    assert len(load(which.path).records) == 2


def record(shape: Shape, ours: float, theirs: float, which: str = "random", error: float = 1e-4) -> Record:
    mode = "cold" if which == "random" else "sustained"
    timings = {mode: {OURS: Timing((ours,) * 3, 1, "graph"), "cublas": Timing((theirs,) * 3, 1, "graph")}}
    return Record(Item(which, "bf16", shape), 2e-3, timings, {OURS: error, "cublas": 1e-4})


def test_means_and_worst() -> None:
    records = [record(Shape(n, n, n), ours, 1.0) for n, ours in ((1, 1.0), (2, 2.0), (4, 4.0))]
    (group,) = groups(records)
    assert totals(group) == [
        "vs cublas: geometric mean 0.500 of 3 shapes, 1 at least as fast, 2 below 0.9, worst 0.250 at 4x4x4"
    ]
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


@pytest.mark.parametrize("error", [0.01, float("nan"), float("inf")])
def test_wrong_results_are_told_everywhere(error: float) -> None:
    found = record(Shape(8, 8, 8), 1.0, 1.0, error=error)
    assert found.wrong == [OURS]
    assert "WRONG tilewright" in as_text([found])
    assert as_text([found]).endswith("1 shape measured, 1 with a wrong result\n")
    assert as_text([found, found]).endswith("2 shapes measured, 2 with a wrong result\n")
    page, _ = make_report([Results({}, (1, 1), 1, records={"x": found})], "p")
    assert "Wrong results of tilewright: 1 of 1 shape, the worst " in page
    assert f"{error / 2e-3 if error == error else math.inf:.3g} times its bound at random/bf16/8x8x8" in page


def test_a_nan_error_survives_the_file(tmp_path: Path) -> None:
    found = record(Shape(8, 8, 8), 1.0, 1.0, error=float("nan"))
    Results({}, (1, 1), 1, records={found.item.key: found}).save(tmp_path / "a.json")
    assert load(tmp_path / "a.json").records[found.item.key].wrong == [OURS]


def test_a_page_of_many_shapes_shows_the_worst() -> None:
    records = {str(n): record(Shape(n, 8, 8), float(n), 1.0) for n in range(1, 201)}
    page, _ = make_report([Results({"gpu": "G"}, (1, 1), 200, records=records)], "p")
    assert "| gpu | G |" in page
    assert "| cublas | 0.005 |" in page, "the slowest is 200 times as slow"
    assert "| 200x8x8 |" in page
    assert "| 189x8x8 |" not in page


def test_curves_are_plotted() -> None:
    records = {str(n): record(Shape(n, n, n), 1.0, 0.5, "curve") for n in (1000, 1003, 1099, 4064, 4127)}
    page, pictures = make_report([Results({}, (1, 1), 5, records=records)], "performance")
    assert "![TFLOP/s against size, bf16](performance-bf16.svg)" in page
    root = ET.fromstring(pictures["performance-bf16.svg"])
    lines = root.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert [len((line.get("points") or "").split()) for line in lines] == [3, 3, 2, 2]


def test_higher_is_higher_in_a_plot() -> None:
    text = plot("a < b", "x", "y", [Panel("p & q", {"s": [(1, 0.0), (2, 5.0), (4, 10.0)]}, log_x=True)])
    root = ET.fromstring(text)
    (line,) = root.findall(".//{http://www.w3.org/2000/svg}polyline")
    points = [tuple(map(float, p.split(","))) for p in (line.get("points") or "").split()]
    assert points[0][1] - points[1][1] == pytest.approx(points[1][1] - points[2][1], abs=0.2)
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0], abs=0.2), "log2"


@pytest.mark.parametrize(("most", "step"), [(784.0, 100.0), (10.0, 1.0), (0.03, 0.005), (0.0, 1.0)])
def test_ticks(most: float, step: float) -> None:
    assert nice_step(most) == pytest.approx(step)


@pytest.mark.parametrize("left", [0, 1, 200])
def test_a_file_that_was_cut_short_is_named(left: int, tmp_path: Path) -> None:
    """Were it passed over, the page would have fewer shapes than were measured, and nobody would know."""
    found = record(Shape(8, 8, 8), 1.0, 1.0)
    for name in ("a", "b"):
        Results({}, (1, 1), 1, records={found.item.key: found}).save(tmp_path / f"{name}.json")
    path = tmp_path / "b.json"
    path.write_text(path.read_text(encoding="utf-8")[:left], encoding="utf-8")
    ran = tilewright("bench", "report", tmp_path, "-o", tmp_path / "p.md")
    assert (ran.code, ran.out) == (1, "")
    assert re.fullmatch(rf"error: '{re.escape(str(path))}': damaged results: .*line \d+ column \d+.*\n", ran.err)
    assert not (tmp_path / "p.md").exists()


def test_later_files_count_and_others_are_passed_over(tmp_path: Path) -> None:
    for name, ours in (("a", 1.0), ("b", 2.0)):
        found = record(Shape(8, 8, 8), ours, 1.0)
        Results({}, (1, 1), 1, records={found.item.key: found}).save(tmp_path / f"{name}.json")
    (tmp_path / "c.json").write_text('{"format": "other"}')
    (tmp_path / "d.json").write_text("[1, 2]")
    (only,) = merged(load_folder(tmp_path))
    assert only.ratio("cold", "cublas") == pytest.approx(0.5)
    with pytest.raises(TilewrightError, match="expected results of tilewright bench gemm"):
        load(tmp_path / "c.json")
    data = json.loads((tmp_path / "a.json").read_text())
    del data["records"][0]["m"]
    (tmp_path / "a.json").write_text(json.dumps(data))
    with pytest.raises(TilewrightError, match="damaged results: KeyError"):
        load_folder(tmp_path)


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def tilewright(*words: object) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    code = main([str(w) for w in words], io.StringIO(), out, err)
    assert "Traceback" not in err.getvalue()
    return Ran(code, out.getvalue(), err.getvalue())


def test_three_shapes_in_the_simulator(tmp_path: Path) -> None:
    shapes = "16x16x16,5x7x3,33x8x16"
    words = ("bench", "gemm", "--backend", "sim", "--peers", "cublas,numpy", "--shapes", shapes, "--output", tmp_path)
    ran = tilewright(*words)
    assert ran.code == 0
    assert "cublas: skipped: needs a GPU, this is sim" in ran.err
    assert "3 shapes measured, 0 with a wrong result" in ran.out
    assert "variants compiled" in ran.out
    (path,) = tmp_path.glob("*.json")
    assert {r.errors.keys() >= {OURS, "numpy"} for r in load(path).records.values()} == {True}
    page = tmp_path / "performance.md"
    ran = tilewright("bench", "report", tmp_path, "-o", page)
    assert ran.code == 0
    assert "## given, bfloat16, sustained" in page.read_text(encoding="utf-8")


def test_files_are_named_for_what_is_in_them() -> None:
    assert file_name(["table", "odd"], ["bf16", "f16"], (1, 2)) == "gemm-table_odd-bf16_f16-1of2.json"
    assert file_name(["8x8x8"], ["bf16"], (1, 1), "sim") == "gemm-8x8x8-bf16-sim-1of1.json"
    many = [f"{n}x8x8" for n in range(8, 100)]
    names = {file_name(words, ["bf16"], (1, 1)) for words in (many, many[1:], ["8^3"], ["8x8x8"])}
    assert len(names) == 4
    assert all(len(name) < 120 and re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names)


def test_the_page_in_docs_says_how_it_is_measured_now() -> None:
    page = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")
    method, _, _ = make_report([], "performance")[0].partition("## Results")
    assert len(method) > 1000
    assert page.startswith(method.rstrip())


def test_a_report_without_results_says_so(tmp_path: Path) -> None:
    ran = tilewright("bench", "report", tmp_path, "-o", tmp_path / "p.md")
    assert ran.code == 0
    assert "no results of bench gemm" in ran.err
    assert "None are recorded yet." in (tmp_path / "p.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--shapes", "8x8"), "--shapes: expected one of table"),
        (("--dtypes", "f64"), "--dtypes: expected one of bf16, f16, f32, tf32, got 'f64'"),
        (("--part", "3/2"), "--part: expected N/M"),
        (("--time-limit", "0"), "--time-limit: expected more than 0 seconds, got 0"),
        (("--shapes", ","), "expected at least one set or shape"),
        (("--shapes", "fused", "--backend", "sim"), "--shapes fused needs a GPU"),
        (("--peers", "cublas,bogus"), "--peers: expected cublas, triton, tilelang, numpy or none, got 'bogus'"),
        (("--backend", "sim"), "8192x8192x8192 takes too long with --backend sim: expected at most 16,777,216"),
        (("--backend", "cpu", "--shapes", "8x8x8,4096x4096x4096"), "4096x4096x4096 takes too long with --backend cpu"),
    ],
)
def test_refusals_are_one_line(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    ran = tilewright("bench", "gemm", *words, "--output", tmp_path)
    assert ran.code == 1
    assert message in ran.err.splitlines()[-1]


def test_without_a_gpu_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tilewright.api.bench import torch_lab

    monkeypatch.setattr(torch_lab, "cuda_unavailable_reason", lambda: "CUDA: no driver")
    ran = tilewright("bench", "gemm", "--output", tmp_path)
    assert ran.code == 1
    assert ran.err == "error: bench gemm: CUDA: no driver (or --backend sim with a few small shapes)\n"


def test_without_torch_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tilewright.api.bench import torch_lab

    def missing(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(torch_lab, "cuda_unavailable_reason", lambda: None)
    monkeypatch.setattr(torch_lab, "import_module", missing)
    ran = tilewright("bench", "gemm", "--output", tmp_path)
    assert ran.code == 1
    assert ran.err == "error: bench gemm: needs PyTorch with CUDA (No module named 'torch'): pip install torch\n"


def test_no_folder_of_results_is_one_line(tmp_path: Path) -> None:
    ran = tilewright("bench", "report", tmp_path / "none", "-o", tmp_path / "p.md")
    assert ran.code == 1
    assert "expected a folder of results" in ran.err


def test_a_report_never_replaces_what_it_was_made_from(tmp_path: Path) -> None:
    found = record(Shape(8, 8, 8), 1.0, 1.0)
    path = tmp_path / "a.json"
    Results({}, (1, 1), 1, records={found.item.key: found}).save(path)
    before = path.read_bytes()
    (tmp_path / "again.md").symlink_to(path)
    for page in (path, tmp_path / "again.md"):
        ran = tilewright("bench", "report", tmp_path, "-o", page)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err == f"error: bench report: '{page}' is a file of results, expected another for the page\n"
        assert path.read_bytes() == before


def test_a_page_that_is_there_stays_when_there_are_no_figures(tmp_path: Path) -> None:
    page = tmp_path / "p.md"
    page.write_text("figures", encoding="utf-8")
    ran = tilewright("bench", "report", tmp_path, "-o", page)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"error: no results of bench gemm in '{tmp_path}': '{page}' stays as it is\n"
    assert page.read_text(encoding="utf-8") == "figures"


def test_a_page_has_a_name(tmp_path: Path) -> None:
    ran = tilewright("bench", "report", tmp_path, "-o", "/")
    assert (ran.code, ran.err) == (1, "error: bench report: expected a file for the page, got '/'\n")


@pytest.mark.parametrize("key", ["m", "bound", "compile_seconds"])
def test_numbers_that_no_float_holds_are_damage(key: str, tmp_path: Path) -> None:
    found = record(Shape(8, 8, 8), 1.0, 1.0)
    path = tmp_path / "a.json"
    Results({}, (1, 1), 1, records={found.item.key: found}).save(path)
    data = json.loads(path.read_text(encoding="utf-8"))
    data["records"][0][key] = 10**400
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(TilewrightError, match="damaged results: "):
        load(path)
