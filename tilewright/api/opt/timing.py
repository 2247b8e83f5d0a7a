"""Where the time of a run goes: a flat list of named steps in the order they first ran, each with its sum."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter


class Stopwatch:
    """Sums wall-clock seconds by step name."""

    def __init__(self) -> None:
        self._start = perf_counter()
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measuring(self, step: str) -> Generator[None]:
        """Add the time spent inside the `with` to `step`, also when it raises."""
        begin = perf_counter()
        try:
            yield
        finally:
            self._seconds[step] = self._seconds.get(step, 0.0) + perf_counter() - begin

    def report(self) -> str:
        """Return a table of milliseconds and shares; `rest` is what no step covers, such as imports."""
        total = perf_counter() - self._start
        rows = {**self._seconds, "rest": max(0.0, total - sum(self._seconds.values())), "total": total}
        lines = ["// -----// Timing //----- //"]
        for step, seconds in rows.items():
            share = 100 * seconds / total if total else 0.0
            lines.append(f"{1000 * seconds:10.2f} ms  {share:5.1f} %  {step}")
        return "\n".join(lines) + "\n"
