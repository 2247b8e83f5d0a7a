"""The clock of a GPU that torch shares with us: CUDA events on one stream, calls as replays of CUDA graphs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from tilewright.api.bench.measure import Call, Repeated
from tilewright.diagnostics import TilewrightError

COVER_BYTES: Final = 512 << 20
"""What is filled ahead of a measurement: ten times the L2 cache of an H200, and it takes longer (over 100 us) than the
host does to queue what is measured, so that the device finds it all there."""
WARM_CALLS: Final = 2
GUESSED_CALLS: Final = 3
COLD_TRIES: Final = 3


class TorchTimer:
    """`measure.Timer` on torch's current device. Everything runs on `stream`."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.stream = torch.cuda.Stream()
        self._cover = torch.empty(COVER_BYTES, dtype=torch.int8, device="cuda")

    def estimate(self, call: Call) -> float:
        """Mean of some calls in a row after warming up."""
        with self._torch.cuda.stream(self.stream):
            for _ in range(WARM_CALLS):
                call()
            self._cover.zero_()
            seconds, _ = self._between(lambda: [call() for _ in range(GUESSED_CALLS)])
        return max(1e-7, seconds / GUESSED_CALLS)

    def repeat(self, call: Call, calls: int) -> Repeated:
        """One CUDA graph; where a call cannot be captured, a loop of launches, and `how` says so."""
        graph = self._captured(call, calls)
        if graph is not None:
            return Repeated(graph.replay, calls, "graph")
        return Repeated(partial(_loop, call, calls), calls, "launches")

    def back_to_back(self, turns: Sequence[Repeated]) -> list[float]:
        """All turns are queued before the first is waited for."""
        events: list[tuple[Any, Any]] = []
        with self._torch.cuda.stream(self.stream):
            self._cover.zero_()
            for turn in turns:
                start, end = self._event(), self._event()
                start.record()
                turn.run()
                end.record()
                events.append((start, end))
        self.stream.synchronize()
        return [start.elapsed_time(end) / 1e3 for start, end in events]

    def after_idle(self, turn: Repeated, idle: float) -> float:
        """The gap, the cover, then the turn."""
        self.stream.synchronize()
        time.sleep(idle)
        with self._torch.cuda.stream(self.stream):
            self._cover.zero_()
            return self._between(turn.run)[0]

    def cold(self, call: Call) -> tuple[float, bool]:
        """One launch behind the cover, which leaves nothing of the operands in the L2 cache; tried again when the
        device was through with the cover before the launch was queued."""
        with self._torch.cuda.stream(self.stream):
            found = 0.0, False
            for _ in range(COLD_TRIES):
                self._cover.zero_()
                found = self._between(call)
                if found[1]:
                    break
        return found

    def _between(self, work: Callable[[], object]) -> tuple[float, bool]:
        """(time that the device takes for what `work` queues, whether it was queued before the device got there)."""
        start, end = self._event(), self._event()
        start.record()
        work()
        end.record()
        in_time = not start.query()
        end.synchronize()
        return start.elapsed_time(end) / 1e3, in_time

    def _event(self) -> Any:
        return self._torch.cuda.Event(enable_timing=True)

    def _captured(self, call: Call, calls: int) -> Any:
        """A graph of so many calls, replayed once; None where the capture fails."""
        torch = self._torch
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        problem: Exception | None = None
        with torch.cuda.stream(self.stream):
            try:
                # Not torch.cuda.graph: that may collect garbage and empty the cache, which takes longer than the graph.
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    _loop(call, calls)
                finally:
                    graph.capture_end()
            except (RuntimeError, TilewrightError) as found:
                problem = found
        if problem is not None:
            torch.cuda.synchronize()  # raises where the device itself has failed
            return None
        with torch.cuda.stream(self.stream):
            graph.replay()
        self.stream.synchronize()
        return graph


def _loop(call: Call, calls: int) -> None:
    for _ in range(calls):
        call()
