"""What `tilewright bench` measures and how, on a clock that the test turns itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tilewright.api.bench.lab import bound_of
from tilewright.api.bench.measure import Call, Repeated, Settings, Timing, measure
from tilewright.api.bench.shapes import (
    MODES,
    Item,
    Shape,
    make_items,
    parse_part,
    parse_shape,
    part_of,
    random_shapes,
)
from tilewright.api.bench.torch_timer import TorchTimer
from tilewright.diagnostics import TilewrightError


class FakeTimer:
    """Calls take the seconds that they return; the second half of all turns takes `drift` times as long."""

    def __init__(self, drift: float = 1.0) -> None:
        self.turns: list[tuple[str, float, int]] = []
        self.drift = drift

    def estimate(self, call: Call) -> float:
        return float(str(call()))

    def repeat(self, call: Call, calls: int) -> Repeated:
        return Repeated(call, calls, "graph")

    def _take(self, mode: str, turn: Repeated) -> float:
        seconds = float(str(turn.run()))
        self.turns.append((mode, seconds, turn.calls))
        return seconds * turn.calls

    def back_to_back(self, turns: Sequence[Repeated]) -> list[float]:
        times = [self._take("sustained", turn) for turn in turns]
        return [t * (self.drift if i >= len(times) // 2 else 1.0) for i, t in enumerate(times)]

    def after_idle(self, turn: Repeated, idle: float) -> float:
        assert idle == 0.02
        return self._take("burst", turn)

    def cold(self, call: Call) -> tuple[float, bool]:
        return self._take("cold", Repeated(call, 1, "launches")), float(str(call())) != LATE


QUICK, SLOW, LATE = 0.0005, 0.004, 0.003
CALLS: dict[str, Call] = {"quick": lambda: QUICK, "slow": lambda: SLOW}


def test_a_timing_is_seconds_a_call_of_turns_as_long_as_asked() -> None:
    found = measure(FakeTimer(), CALLS, ["sustained", "burst", "cold"], Settings(rounds=5, cold_rounds=3), "x")
    assert list(found) == ["sustained", "burst", "cold"]
    assert [len(found[mode]["quick"].samples) for mode in found] == [5, 5, 3]
    for timings in found.values():
        assert timings["quick"].median == pytest.approx(QUICK)
        assert timings["slow"].median == pytest.approx(SLOW)
    assert (found["sustained"]["quick"].calls, found["sustained"]["slow"].calls) == (20, 3), "10 ms"
    assert (found["burst"]["quick"].calls, found["burst"]["slow"].calls) == (2, 1), "1 ms"
    assert {t.how for t in found["sustained"].values()} == {"graph"}


def test_each_round_has_every_system_once_and_orders_differ() -> None:
    timer = FakeTimer()
    measure(timer, {**CALLS, "third": lambda: 0.002}, ["cold"], Settings(cold_rounds=12), "x")
    order = [seconds for _, seconds, _ in timer.turns]
    rounds = [tuple(order[i : i + 3]) for i in range(0, len(order), 3)]
    assert len(rounds) == 12
    assert {frozenset(r) for r in rounds} == {frozenset({QUICK, SLOW, 0.002})}
    assert len(set(rounds)) > 1


def test_orders_come_from_the_seeds() -> None:
    def order(seed: int, item: str) -> list[float]:
        timer = FakeTimer()
        measure(timer, CALLS, ["cold"], Settings(cold_rounds=20, seed=seed), item)
        return [seconds for _, seconds, _ in timer.turns]

    assert order(0, "a") == order(0, "a")
    assert order(0, "a") != order(1, "a")
    assert order(0, "a") != order(0, "b")


def test_sustained_turns_that_warm_up_do_not_count() -> None:
    timer = FakeTimer()
    found = measure(timer, CALLS, ["sustained"], Settings(rounds=3, warm=0.2), "x")
    queued = Counter(seconds for _, seconds, _ in timer.turns)
    # A round is 20 x 0.5 ms and 3 x 4 ms, 22 ms: 10 of them for 200 ms.
    assert queued == {QUICK: 13, SLOW: 13}
    assert len(found["sustained"]["slow"].samples) == 3


def test_a_drift_meets_all_systems_alike() -> None:
    timer = FakeTimer(drift=1.5)
    found = measure(timer, CALLS, ["sustained"], Settings(rounds=9, warm=0.0), "x")["sustained"]
    assert found["slow"].median / found["quick"].median == pytest.approx(SLOW / QUICK)
    assert min(found["slow"].samples) < max(found["slow"].samples)


def test_samples_that_the_host_was_late_with_are_told() -> None:
    found = measure(FakeTimer(), {"late": lambda: LATE, "quick": lambda: QUICK}, ["cold"], Settings(), "x")["cold"]
    assert (found["late"].how, found["quick"].how) == ("graph, 7 late", "graph")


def test_median_and_spread() -> None:
    timing = Timing((4.0, 1.0, 2.0, 3.0, 100.0), 1, "graph")
    assert timing.median == 3.0
    assert timing.spread == pytest.approx((4.0 - 2.0) / 3.0), "the middle half"
    assert Timing((1.0,), 1, "graph").spread == 0.0


def test_the_sets() -> None:
    items = make_items(["table", "odd", "fused", "curve", "random"], ["bf16"])
    counts = Counter(item.set for item in items)
    # 34 sizes from 1000 to 1099 and 22 from 4064 to 4127
    assert {name: counts[name] for name in ("table", "odd", "curve")} == {"table": 15, "odd": 3, "curve": 56}
    assert 190 <= counts["random"] <= 200, "the same shape may be drawn twice"
    assert {item.shape.m for item in items if item.set == "curve"} >= {1000, 1003, 4064, 4127}
    assert set(counts) <= set(MODES)


def test_random_shapes_are_log_uniform_odd_or_multiples_of_8() -> None:
    shapes = random_shapes()
    assert len(shapes) == 200
    assert shapes == random_shapes()
    assert shapes != random_shapes(seed=1)
    dims = [d for s in shapes for d in (s.m, s.n, s.k)]
    assert all(1 <= d <= 8192 and (d % 2 == 1 or d % 8 == 0) for d in dims)
    odd = sum(d % 2 for d in dims) / len(dims)
    below = sum(d < math.sqrt(8192) for d in dims) / len(dims)
    # 600 fair coins: three standard deviations are 0.061.
    assert abs(odd - 0.5) < 0.07
    assert abs(below - 0.5) < 0.07


def test_shapes_on_the_command_line() -> None:
    assert parse_shape("3x4x5") == Shape(3, 4, 5)
    assert parse_shape("64^3") == Shape(64, 64, 64)
    assert Shape(3, 4, 5).flops == 120
    assert [i.key for i in make_items(["8^3", "8x8x8"], ["f32", "bf16"])] == ["given/f32/8x8x8", "given/bf16/8x8x8"]


@pytest.mark.parametrize("text", ["tables", "1x2", "0x1x1", "1x2x3x4", "-1x2x3", "3^2", "x", "1e3x2x3"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(TilewrightError, match=r"--shapes: expected one of table, .*, or MxNxK, got"):
        parse_shape(text)


def test_parts_have_every_item_once() -> None:
    items = make_items(["table", "odd"], ["bf16", "f16"])
    parts = [part_of(items, n, 4) for n in (1, 2, 3, 4)]
    assert sorted(i.key for p in parts for i in p) == sorted(i.key for i in items)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert parse_part("3/4") == (3, 4)
    for text in ("0/4", "5/4", "1", "a/b", "1/0"):
        with pytest.raises(TilewrightError, match="--part: expected N/M"):
            parse_part(text)


def test_bounds_of_f32_grow_with_the_root_of_k() -> None:
    def bound(dtype: str, k: int, which: str = "table") -> float:
        return bound_of(Item(which, dtype, Shape(8, 8, k)))

    assert [bound(d, 4096) for d in ("bf16", "f16")] == [2e-3, 3e-4]
    assert bound("f32", 16) == bound("f32", 1024) == 1e-6
    assert bound("f32", 4096) == pytest.approx(2e-6)
    assert bound("bf16", 64, "fused") == 4e-3


class FakeTorch:
    """As much of torch as the timer uses: a device with one queue, whose clock moves when it works."""

    int8 = "int8"

    def __init__(self, host_seconds: float = 10e-6, cover_seconds: float = 200e-6) -> None:
        self.cuda = self
        self.host = 0.0
        self.device = 0.0
        self.host_seconds, self.cover_seconds = host_seconds, cover_seconds
        self.capturing: list[float] | None = None
        self.captures_allowed = True
        self.captures_ended = 0

    def queue(self, seconds: float) -> None:
        """One launch of work that takes so long."""
        self.host += self.host_seconds
        if self.capturing is not None:
            if not self.captures_allowed:
                raise RuntimeError("operation not permitted when stream is capturing")
            self.capturing.append(seconds)
            return
        self.device = max(self.device, self.host) + seconds

    def synchronize(self) -> None:
        self.host = max(self.host, self.device)

    def empty(self, size: int, **_: Any) -> Any:
        torch = self

        class Cover:
            def zero_(self) -> None:
                torch.queue(torch.cover_seconds)

        assert size >= 512 << 20
        return Cover()

    def Stream(self) -> Any:
        return self

    def stream(self, _: Any) -> Any:
        import contextlib

        return contextlib.nullcontext()

    def Event(self, enable_timing: bool) -> Any:
        torch = self
        assert enable_timing

        class Event:
            at = 0.0

            def record(self) -> None:
                torch.queue(0.0)
                self.at = torch.device

            def query(self) -> bool:
                return torch.host >= self.at

            def synchronize(self) -> None:
                torch.synchronize()

            def elapsed_time(self, end: Any) -> float:
                return (end.at - self.at) * 1e3

        return Event()

    def CUDAGraph(self) -> Any:
        torch = self

        class Graph:
            work: tuple[float, ...] = ()

            def capture_begin(self, capture_error_mode: str) -> None:
                torch.capturing = []

            def capture_end(self) -> None:
                torch.captures_ended += 1
                self.work, torch.capturing = tuple(torch.capturing or ()), None

            def replay(self) -> None:
                torch.queue(sum(self.work))

        return Graph()


def test_a_graph_is_timed_without_the_host() -> None:
    torch = FakeTorch()
    timer = TorchTimer(torch)
    turn = timer.repeat(lambda: torch.queue(2e-6), 100)
    assert (turn.how, turn.calls) == ("graph", 100)
    times = timer.back_to_back([turn] * 4)
    assert times[1:] == pytest.approx([200e-6] * 3, rel=0.2)
    assert timer.after_idle(turn, 0.0) == pytest.approx(200e-6, rel=0.2)


def test_what_cannot_be_captured_is_launched_and_says_so() -> None:
    torch = FakeTorch()
    torch.captures_allowed = False
    turn = TorchTimer(torch).repeat(lambda: torch.queue(2e-6), 10)
    assert turn.how == "launches"
    assert torch.captures_ended == 1, "the stream is left in order"
    before = torch.device
    turn.run()
    assert torch.device - before >= 20e-6


def test_cold_calls_are_queued_behind_the_flush() -> None:
    torch = FakeTorch()
    timer = TorchTimer(torch)
    seconds, in_time = timer.cold(lambda: torch.queue(3e-6))
    assert (seconds, in_time) == (pytest.approx(3e-6), True)
    slow_host = FakeTorch(host_seconds=1e-3)
    assert TorchTimer(slow_host).cold(lambda: slow_host.queue(3e-6))[1] is False
