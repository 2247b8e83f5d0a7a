"""A stream of calls with random sizes and layouts: every result against the reference, and what the stream compiled.

    python -m benchmarks.stream [--shapes 1000] [--seed 0] [--output benchmarks/results/stream-DATE.json]

The calls go round the five examples, in the simulator. Sizes are small; three in ten are chosen for being 0, 1 or at an
edge of a tile. Arguments are contiguous at an aligned address, contiguous at any, or strided in any way (transposed,
stepped, backwards, broadcast); one call in four has sizes and addresses that vectors divide, and one in three writes to
strided memory of the caller's. Exits with 1 when a result is beyond the bound of the reference, an element beside a
result was written, the tensor half of the compiler ran more than once an entry, or a schedule of a kernel has more than
4 sources.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tilewright as tw
from examples import batch_matmul, elementwise_chain, matmul_bias_relu, row_softmax, transpose
from examples.example import Example, worst
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.backends.base import aligned_empty
from tilewright.runtime.backends.sim import SimBackend
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.reference import compare, run_reference
from tilewright.runtime.variants import CompiledEntry

Array = np.ndarray[Any, Any]
SOURCES_A_SCHEDULE = 4
"""32 or 64-bit indices, vectorised or general."""
MOST: dict[str, dict[str, int]] = {
    "matmul_bias_relu": {"B": 2, "M": 40},
    "row_softmax": {"M": 12, "N": 6000},
    "transpose": {"M": 200, "N": 200},
    "batch_matmul": {"B": 3, "M": 70, "N": 70, "K": 70},
    "elementwise_chain": {"M": 60, "N": 400},
}
"""The largest size of each symbol."""
SPECIAL = (0, 1, 2, 15, 16, 17, 31, 32, 33, 64, 127, 128, 129, 256, 1024, 4095, 4096, 4097)
"""Sizes that three in ten are drawn from, as far as they are not too large."""
FILLER = 77.0
"""What memory holds beside a result."""


def sizes_for(example: Example, rng: np.random.Generator) -> dict[str, int]:
    """Random sizes for the symbols of an example."""
    found: dict[str, int] = {}
    for name, most in MOST[example.name].items():
        special = [size for size in SPECIAL if size <= most]
        found[name] = int(rng.choice(special)) if rng.random() < 0.3 else int(rng.integers(1, most + 1))
    return found


def strided(shape: Sequence[int], rng: np.random.Generator, backwards: bool) -> tuple[Array, Array]:
    """(f32 view of this shape, all of its memory): dims in any order, with gaps, some stepped, backwards if allowed."""
    order = rng.permutation(len(shape))
    steps = [int(s) for s in rng.choice([1, 1, 1, 2, 3], size=len(shape))]
    before = [int(b) for b in rng.integers(0, 5, size=len(shape))]
    spans = [b + n * s + int(rng.integers(0, 5)) for b, n, s in zip(before, shape, steps, strict=True)]
    memory = np.full([spans[d] for d in order], FILLER, np.float32)
    view = memory.transpose(np.argsort(order))
    for dim, (start, size, step) in enumerate(zip(before, shape, steps, strict=True)):
        view = view[(*[slice(None)] * dim, slice(start, start + size * step, step))]
        if backwards and rng.random() < 0.2:
            view = view[(*[slice(None)] * dim, slice(None, None, -1))]
    return view, memory


def placed(values: Array, rng: np.random.Generator, kind: str | None = None) -> tuple[str, Array]:
    """(kind of layout, the values in it): `aligned`, `any address`, `strided` or `broadcast`; the given one or any."""
    kind = kind or str(rng.choice(["aligned", "any address", "strided", "strided", "broadcast"]))
    if kind == "aligned":
        view = aligned_empty(values.shape, "f32")
    elif kind == "any address":
        start = int(rng.integers(1, 4))
        view = aligned_empty((values.size + 4,), "f32")[start : start + values.size].reshape(values.shape)
    elif kind == "broadcast" and values.ndim > 1 and values.shape[0]:
        return kind, np.broadcast_to(values[:1], values.shape)
    else:
        kind = "strided"
        view, _ = strided(values.shape, rng, backwards=True)
    view[...] = values
    return kind, view


@dataclass
class Stream:
    """One example: its kernel and what happened to it so far."""

    example: Example
    entry: CompiledEntry
    kernel: Kernel
    calls: int = 0
    shapes: set[tuple[Any, ...]] = field(default_factory=set[tuple[Any, ...]])
    layouts: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])
    share: float = 0.0
    """The largest share of its bound that an error took."""
    last_lowered: int = 0
    """The call after which nothing was lowered any more."""

    @staticmethod
    def of(module: ModuleType) -> Stream:
        """The example of this module, compiled for the simulator."""
        entry = CompiledEntry(tw.build_module(module.build()), "main", "sm_80")
        return Stream(module.EXAMPLE, entry, Kernel(entry, SimBackend(entry), "the stream runs in the simulator"))

    def call(self, rng: np.random.Generator) -> None:
        """One call with random sizes and layouts, into a new result or memory of the caller's."""
        whole = self.calls % 4 == 1
        sizes = sizes_for(self.example, rng)
        if whole:
            sizes = {name: max(8, size // 8 * 8) for name, size in sizes.items()}
        arrays: list[Array] = []
        for values in self.example.inputs(rng, sizes):
            kind, array = placed(values, rng, "aligned" if whole else None)
            self.layouts[kind] += 1
            arrays.append(array)
        lowered = self._lowered()
        expected = run_reference(self.entry.module, "main", arrays, sizes)[0]
        what = f"{sizes}, strides {[a.strides for a in arrays]}"
        if self.calls % 3 == 0:
            view, memory = strided(expected.value.shape, rng, backwards=False)
            self.kernel(*arrays, out=view)
            got = np.array(view)
            view[...] = FILLER
            if not (memory == FILLER).all():
                self.failures.append(f"{what}: elements beside the result were written")
        else:
            got = np.asarray(self.kernel(*arrays))
        if (mismatch := compare(got, expected)) is not None:
            self.failures.append(f"{what}: {mismatch}")
        off, bound = worst(got, expected.value, expected.bound)
        if bound:
            self.share = max(self.share, off / bound)
        self.shapes.add(tuple((a.shape, a.strides) for a in arrays))
        self.calls += 1
        if self._lowered() > lowered:
            self.last_lowered = self.calls

    def _lowered(self) -> int:
        return sum(self.entry.is_lowered(site) for site in self.entry.sites.values())

    def sources(self) -> dict[str, list[str]]:
        """By schedule, the variants that the stream used; of equal sources one."""
        found: dict[str, dict[str, str]] = {}
        for site in self.entry.sites.values():
            if self.entry.is_lowered(site):
                source = emit_kernel(self.entry.lower(site).kernel, "sm_80")
                found.setdefault(site.kernel, {}).setdefault(source, site.variant)
        return {schedule: list(each.values()) for schedule, each in found.items()}

    def record(self) -> dict[str, Any]:
        """What to write down."""
        return {
            "calls": self.calls,
            "different shapes and strides": len(self.shapes),
            "layouts of arguments": dict(sorted(self.layouts.items())),
            "results beyond the bound": len(self.failures),
            "largest share of the bound": round(self.share, 3),
            "runs of the tensor half": self.kernel.stats()["pipeline_runs"],
            "sources by schedule": self.sources(),
            "last call that lowered a variant": self.last_lowered,
        }

    def broken(self) -> list[str]:
        """The promises that were not kept, one a line."""
        found = [f"{self.example.name}: {failure}" for failure in self.failures]
        if (runs := self.kernel.stats()["pipeline_runs"]) != 1:
            found.append(f"{self.example.name}: expected one run of the tensor half, got {runs}")
        for schedule, variants in self.sources().items():
            if len(variants) > SOURCES_A_SCHEDULE:
                found.append(f"{schedule}: expected at most {SOURCES_A_SCHEDULE} sources, got {len(variants)}")
        return found


def run(shapes: int, seed: int) -> tuple[dict[str, Any], list[str]]:
    """(what happened, promises that were not kept) in `shapes` calls, an equal share for each example."""
    rng = np.random.default_rng(seed)
    examples = (matmul_bias_relu, row_softmax, transpose, batch_matmul, elementwise_chain)
    streams = [Stream.of(module) for module in examples]
    started = time.perf_counter()
    for number in range(shapes):
        streams[number % len(streams)].call(rng)
    return {
        "calls": shapes,
        "seed": seed,
        "seconds, reference included": round(time.perf_counter() - started, 1),
        "examples": {stream.example.name: stream.record() for stream in streams},
    }, [line for stream in streams for line in stream.broken()]


def main() -> int:
    """Prints the results as JSON, and writes them with --output; what is broken goes to standard error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output")
    arguments = parser.parse_args()
    found, broken = run(arguments.shapes, arguments.seed)
    machine = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": platform.processor() or platform.machine(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "tilewright": tw.__version__,
        "command": "python -m benchmarks.stream " + " ".join(sys.argv[1:]),
    }
    text = json.dumps({"machine": machine, **found, "broken promises": broken}, indent=1)
    print(text)
    if arguments.output:
        Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
        Path(arguments.output).write_text(text + "\n", encoding="utf-8")
    print(*broken, sep="\n", end="\n" if broken else "", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
