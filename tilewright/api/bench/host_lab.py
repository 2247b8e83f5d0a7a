"""The simulator or the CPU backend in place of a GPU: to see that a session works, not for figures of speed."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import tilewright as tw
from tilewright.api.bench.lab import Prepared, Programs
from tilewright.api.bench.measure import Call, Repeated
from tilewright.api.bench.records import OURS
from tilewright.api.bench.shapes import TF32, Item
from tilewright.diagnostics import TilewrightError
from tilewright.runtime.dtypes import element_type

Array = np.ndarray[Any, Any]
PEERS: Final = ("numpy",)


class HostTimer:
    """`measure.Timer` by the process's clock. There is no cache to flush."""

    def estimate(self, call: Call) -> float:
        """The second of two calls."""
        call()
        return self.cold(call)[0]

    def repeat(self, call: Call, calls: int) -> Repeated:
        """A loop."""

        def run() -> None:
            for _ in range(calls):
                call()

        return Repeated(run, calls, "loop")

    def back_to_back(self, turns: Sequence[Repeated]) -> list[float]:
        """One turn after the other."""
        return [self.cold(turn.run)[0] for turn in turns]

    def after_idle(self, turn: Repeated, idle: float) -> float:
        """The gap, then the turn."""
        time.sleep(idle)
        return self.cold(turn.run)[0]

    def cold(self, call: Call) -> tuple[float, bool]:
        """One call."""
        started = time.perf_counter()
        call()
        return max(1e-9, time.perf_counter() - started), True


class HostLab:
    """`lab.Lab` for the backends sim, cpu and reference, with NumPy's own product as the one peer."""

    def __init__(self, backend: str, peers: Sequence[str]) -> None:
        self.timer = HostTimer()
        self.skipped = {peer: f"needs a GPU, this is {backend}" for peer in peers if peer not in PEERS}
        self._numpy = "numpy" in peers
        self._backend = backend
        self._programs = Programs(backend)

    def machine(self) -> dict[str, str]:
        """Processor and versions."""
        return {
            "machine": f"{platform.system()} {platform.machine()}",
            "backend": self._backend,
            "python": platform.python_version(),
            "tilewright": tw.__version__,
            "numpy": np.__version__,
        }

    def kernels(self) -> dict[str, dict[str, Any]]:
        """What our programs have compiled."""
        return self._programs.stats()

    def prepare(self, item: Item) -> Prepared:
        """Each system called once and compared with NumPy in float64."""
        if item.set == "fused":
            raise TilewrightError(f"bench gemm: --shapes fused needs a GPU, got --backend {self._backend}")
        shape, dtype = item.shape, element_type("f32" if item.dtype == TF32 else item.dtype).numpy_dtype()
        rng = np.random.default_rng((shape.m, shape.n, shape.k))
        a = rng.standard_normal((shape.m, shape.k)).astype(dtype)
        b = rng.standard_normal((shape.k, shape.n)).astype(dtype)
        kernel, out = self._programs.plain(item.dtype), np.full((shape.m, shape.n), np.nan, dtype)
        prepared = Prepared()
        before = self._programs.compile_seconds()
        results: dict[str, Array] = {}
        try:
            kernel(a, b, out=out)
            results[OURS], prepared.calls[OURS] = out, lambda: kernel(a, b, out=out)
        except TilewrightError as problem:
            prepared.notes[OURS] = problem.message
        prepared.compile_seconds = self._programs.compile_seconds() - before
        if self._numpy:
            wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
            results["numpy"] = (wide_a @ wide_b).astype(dtype)
            prepared.calls["numpy"] = lambda: (wide_a @ wide_b).astype(dtype)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        size = float(np.linalg.norm(expected))
        for name, result in results.items():
            error = float(np.linalg.norm(result.astype(np.float64) - expected))
            prepared.errors[name] = error / size if size > 0 else error
        return prepared
