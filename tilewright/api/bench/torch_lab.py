"""A GPU with torch: our kernels, cuBLAS through torch, Triton and TileLang, on the same operands, with outputs made
alike."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final

import tilewright as tw
from tilewright.api.bench.lab import Prepared, Programs, reference_rows
from tilewright.api.bench.measure import Call
from tilewright.api.bench.records import OURS
from tilewright.api.bench.shapes import DTYPES, TF32, Item, Shape
from tilewright.api.bench.torch_timer import TorchTimer
from tilewright.diagnostics import TilewrightError
from tilewright.runtime.cuda_driver import cuda_unavailable_reason

PEERS: Final = ("cublas", "triton", "tilelang")
COMPILED: Final = {"triton": "Triton", "tilelang": "TileLang"}
"""Peers that compile kernels of ours, in modules of their own, with the name of what these import."""
PLAIN: Final = "tilewright-plain"
EAGER: Final = "torch-eager"
_QUERY: Final = "name,driver_version,power.limit,clocks.max.sm,clocks.max.mem"


Way = Callable[[Any], Any]
"""One way to call a system: takes an output that it may write to, and returns the result."""

CHOOSING_SECONDS: Final = 2e-3
"""Length of the turns that choose among several configurations of a peer."""


class TorchLab:
    """`lab.Lab` on GPU 0. Raises TilewrightError where there is no GPU or no torch that sees it."""

    def __init__(self, peers: Sequence[str]) -> None:
        if (reason := cuda_unavailable_reason()) is not None:
            raise TilewrightError(f"bench gemm: {reason} (or --backend sim with a few small shapes)")
        try:
            self._torch: Any = import_module("torch")
        except ImportError as problem:
            raise TilewrightError(f"bench gemm: needs PyTorch with CUDA ({problem}): pip install torch") from None
        if not self._torch.cuda.is_available():
            raise TilewrightError("bench gemm: PyTorch sees no GPU: install a build of torch with CUDA")
        self.skipped: dict[str, str] = {}
        self._cublas = "cublas" in peers
        self._compiled: dict[str, Any] = {}
        for peer, title in COMPILED.items():
            if peer in peers:
                try:
                    self._compiled[peer] = import_module(f"tilewright.api.bench.{peer}_peer")
                except ImportError as problem:
                    self.skipped[peer] = f"{title} does not load ({problem})"
        for peer in peers:
            if peer not in PEERS:
                self.skipped[peer] = f"no peer on a GPU: expected one of {', '.join(PEERS)}"
        self._torch.backends.cuda.matmul.allow_tf32 = False
        self.timer = TorchTimer(self._torch)
        self._programs = Programs("cuda")

    def machine(self) -> dict[str, str]:
        """GPU, driver and versions."""
        torch = self._torch
        found = {
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPU cores",
            "gpu": str(torch.cuda.get_device_name()),
            "python": platform.python_version(),
            "tilewright": tw.__version__,
            "torch": str(torch.__version__),
            "cuda": str(torch.version.cuda),
        }
        found |= {peer: str(module.version()) for peer, module in self._compiled.items()}
        try:
            said = subprocess.run(
                ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader"],
                capture_output=True, text=True, timeout=20, check=True,
            ).stdout.splitlines()[0]  # fmt: skip
            found |= dict(
                zip(("gpu", "driver", "power_limit", "max_sm_clock", "max_memory_clock"), said.split(", "), strict=True)
            )
        except (OSError, subprocess.SubprocessError, ValueError, IndexError):
            found["driver"] = "unknown (no nvidia-smi)"
        return found

    def kernels(self) -> dict[str, dict[str, Any]]:
        """What our programs have compiled."""
        return self._programs.stats()

    def prepare(self, item: Item) -> Prepared:
        """Each system called and compared; those that fail are left out, with a note."""
        torch, shape = self._torch, item.shape
        dtype = getattr(torch, DTYPES[item.dtype])
        torch.backends.cuda.matmul.allow_tf32 = item.dtype == TF32
        generator = torch.Generator(device="cuda").manual_seed(shape.m * 31 + shape.n * 17 + shape.k)
        # Into gelu go values near 1: for large ones it is the identity or zero.
        scale = shape.k**-0.25 if item.set == "fused" else 1.0

        def normal(*sizes: int) -> Any:
            return (torch.randn(*sizes, device="cuda", generator=generator) * scale).to(dtype)

        a, b = normal(shape.m, shape.k), normal(shape.k, shape.n)
        bias = normal(shape.n) if item.set == "fused" else None
        prepared = Prepared()
        results: dict[str, Any] = {}
        for name, ways in self._systems(item, a, b, bias).items():
            out = torch.empty((shape.m, shape.n), dtype=dtype, device="cuda")
            before = self._programs.compile_seconds()
            call = self._quickest(prepared, name, ways, out)
            if name == OURS:
                prepared.compile_seconds = self._programs.compile_seconds() - before
            if call is not None:
                out.fill_(float("nan"))  # what a call leaves out stays to be seen
                torch.cuda.synchronize()
                with torch.cuda.stream(self.timer.stream):
                    results[name] = call()
                torch.cuda.synchronize()
                prepared.calls[name] = call
        self._compare(prepared, a, b, bias, results)
        return prepared

    def _systems(self, item: Item, a: Any, b: Any, bias: Any) -> dict[str, dict[str, Way]]:
        """System -> the ways to call it by name; the quickest one counts."""
        torch = self._torch
        plain = self._programs.plain(item.dtype)
        if bias is not None:
            fused, gelu = self._programs.fused(item.dtype), torch.nn.functional.gelu
            return {
                OURS: {"": lambda out: fused(a, b, bias, out=out)},
                PLAIN: {"": lambda out: plain(a, b, out=out)},
                EAGER: {"": lambda out: gelu(torch.addmm(bias, a, b))},
            }
        found: dict[str, dict[str, Way]] = {OURS: {"": lambda out: plain(a, b, out=out)}}
        if self._cublas:
            found["cublas"] = {"": lambda out: torch.mm(a, b, out=out)}
        for peer, module in self._compiled.items():
            if launchers := module.configurations(a.element_size() * 8, item.dtype == TF32):
                found[peer] = {name: partial(launch, a, b) for name, launch in launchers.items()}
        return found

    def _quickest(self, prepared: Prepared, system: str, ways: dict[str, Way], out: Any) -> Call | None:
        """The way that takes least time; None, and a note, where none works."""
        best: tuple[float, str, Call] | None = None
        failure = ""
        for name, way in ways.items():
            call = partial(way, out)
            try:
                seconds = self.timer.estimate(call)
                if len(ways) > 1:
                    seconds = self._on_the_device(call, seconds)
            except Exception as problem:  # Triton and torch raise what they like: too little shared memory, and so on
                text = problem.message if isinstance(problem, TilewrightError) else str(problem)
                failure = f"{type(problem).__name__}: {' '.join(text.split())}"[:300]
                self._check_device(f"{system}{name and ' '}{name}: {failure}")
                continue
            if best is None or seconds < best[0]:
                best = seconds, name, call
        if best is None:
            prepared.notes[system] = failure
            return None
        if best[1]:
            prepared.notes[system] = best[1]
        return best[2]

    def _on_the_device(self, call: Call, guess: float) -> float:
        """What one call takes among many of a graph: single launches of short kernels measure the host, and would
        choose among them by chance."""
        calls = max(4, min(200, round(CHOOSING_SECONDS / guess)))
        turn = self.timer.repeat(call, calls)
        return min(self.timer.back_to_back([turn] * 3)) / calls

    def _check_device(self, after: str) -> None:
        """Raise TilewrightError when the device has failed: nothing can be measured in this process any more."""
        try:
            self._torch.cuda.synchronize()
        except RuntimeError as problem:
            raise TilewrightError(
                f"bench gemm: the GPU failed ({' '.join(str(problem).split())[:200]}) after {after}"
            ) from None

    def _compare(self, prepared: Prepared, a: Any, b: Any, bias: Any, results: dict[str, Any]) -> None:
        """Relative errors against torch, by rows: in float32 for 16 bits, in float64 for float32, whose own products in
        float32 are no nearer to the truth than what is compared."""
        torch, shape = self._torch, Shape(a.shape[0], b.shape[1], a.shape[1])
        wide = torch.float64 if a.dtype is torch.float32 else torch.float32
        wide_b = b.to(wide)
        wrong = dict.fromkeys(results, 0.0)
        size, plain_size = 0.0, 0.0
        rows = reference_rows(shape)
        for start in range(0, shape.m, rows):
            plain = a[start : start + rows].to(wide) @ wide_b
            expected = plain if bias is None else torch.nn.functional.gelu(plain + bias.to(wide))
            size += float(expected.double().square().sum())
            plain_size += float(plain.double().square().sum())
            for name, result in results.items():
                difference = result[start : start + rows].to(wide) - (plain if name == PLAIN else expected)
                wrong[name] += float(difference.double().square().sum())
        for name, error in wrong.items():
            of = plain_size if name == PLAIN else size
            prepared.errors[name] = (error / of) ** 0.5 if of > 0 else error**0.5
