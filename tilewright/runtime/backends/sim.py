"""Backend `sim`: the simt kernels of the chosen variants, run by the simulator in NumPy."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.arguments import TensorArgument, intake
from tilewright.runtime.backends.base import (
    Backend,
    aligned_empty,
    expect_host,
    kind_of,
    layout,
    layouts,
    named,
    scalar_value,
    take_arguments,
    take_outputs,
)
from tilewright.runtime.plan import Site
from tilewright.runtime.results import empty_like_kind
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.estimate import estimate_seconds
from tilewright.runtime.sim.launch import Program, compile_kernel, overlap
from tilewright.runtime.variants import CompiledEntry, Lowered

SHOW_AFTER_SECONDS = 5.0
"""Estimated time above which a launch shows its progress."""
REFUSE_AFTER_SECONDS = 120.0
"""Estimated time above which a launch is refused unless it is forced."""
KNOWN_ESTIMATES = 1024
"""Launches whose estimates are kept."""


class SimBackend(Backend):
    """Runs on NumPy arrays and anything else that DLPack shares in host memory; strided views are not copied."""

    name: ClassVar[str] = "sim"

    def __init__(self, entry: CompiledEntry) -> None:
        super().__init__(entry)
        self._by_site: dict[int, Lowered] = {}
        self._estimates: dict[tuple[Any, ...], float] = {}
        """Seconds that a launch takes, by variant, blocks and parameters."""
        self._programs: dict[tuple[str, bool], Program] = {}

    def call(self, args: Sequence[object], out: Sequence[object] | None, stream: object, force: bool) -> list[Any]:
        """Run the entry; `stream` means nothing here."""
        plan = self.entry.plan
        arguments = take_arguments(plan.arguments, args, plan.entry)
        expect_host(arguments, self.name)
        given: list[TensorArgument] | None = None
        if out is not None:
            given = take_outputs(plan.results, out, plan.entry, named(plan.arguments, arguments))
            expect_host(given, self.name)
        decision = plan.decide(
            layouts(plan.arguments, arguments), None if given is None else [layout(each) for each in given]
        )
        results: list[Any] = [] if out is None else list(out)
        if given is None:
            given = []
            for parameter, shape in zip(plan.results, decision.results, strict=True):
                made, taken = _result(kind_of(arguments), shape, parameter.dtype, parameter.name, plan.alignment)
                results.append(made)
                given.append(taken)
        scratch = [
            None if shape is None else intake(aligned_empty(shape, p.dtype), p.dtype, p.name)
            for p, shape in zip(plan.scratch, decision.scratch, strict=True)
        ]
        places = {"argument": arguments, "result": given, "scratch": scratch}
        self.launches = len(decision.launches)
        for each in decision.launches:
            site = plan.sites[each.site]
            lowered = self._by_site.get(each.site)
            if lowered is None:
                lowered = self._by_site[each.site] = self.entry.lower(site)
            if each.scalars is None:
                each.scalars = lowered.scalars(decision.symbols)
            buffers: list[Buffer] = []
            for slot in site.tensors:
                tensor = places[slot.kind][slot.number]
                assert tensor is not None  # scratch of the case that was chosen
                buffers.append(buffer_of(tensor))
            values = [scalar_value(arguments[slot.number]) for slot in site.scalars]
            self._launch(lowered, buffers, [*values, *each.scalars], each.grid, force)
        return results

    def details(self, site: Site) -> dict[str, Any]:
        """Shared memory, which the kernel states itself."""
        return {"smem_bytes": self.entry.lower(site).kernel.smem.value.data} if self.entry.is_lowered(site) else {}

    def _launch(self, lowered: Lowered, buffers: list[Buffer], scalars: list[Any], grid: int, force: bool) -> None:
        aliased = overlap(buffers, lowered.kernel)
        program = self._programs.get((lowered.name, aliased))
        if program is None:
            program = self._programs[lowered.name, aliased] = compile_kernel(lowered.kernel, "fast", aliased=aliased)
        if len(self._estimates) > KNOWN_ESTIMATES:
            self._estimates.clear()
        estimate = self._estimates.get((lowered.name, grid, *scalars))
        if estimate is None:
            estimate = estimate_seconds(lowered.kernel, grid, scalars, batch=program.batch_size(grid))
            self._estimates[(lowered.name, grid, *scalars)] = estimate
        if estimate > REFUSE_AFTER_SECONDS and not force:
            raise TilewrightError(
                f"@{lowered.name}: simulating {grid} blocks would take about {estimate:.0f} s (limit "
                f"{REFUSE_AFTER_SECONDS:.0f} s): use smaller sizes, backend reference, or a GPU; force=True (--force) "
                "runs it all the same"
            )
        if estimate <= SHOW_AFTER_SECONDS:
            program.run(buffers, scalars, grid=grid)
            return
        bar = _ProgressBar(lowered.name)
        program.run(buffers, scalars, grid=grid, batch=max(1, min(program.batch_size(grid), grid // 20)), progress=bar)
        bar.close()


class _ProgressBar:
    """Share done and time left on standard error: one line that is rewritten, or in a log a line for each tenth."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.start = time.perf_counter()
        self.rewrites = sys.stderr.isatty()
        self.tenths = 0

    def __call__(self, done: int, total: int) -> None:
        left = (time.perf_counter() - self.start) / done * (total - done)
        if not self.rewrites:
            if 10 * done // total > self.tenths:
                self.tenths = 10 * done // total
                sys.stderr.write(f"sim {self.name} {10 * self.tenths}% {left:.0f} s left\n")
            return
        filled = 30 * done // total
        bar = "#" * filled + "." * (30 - filled)
        sys.stderr.write(f"\rsim {self.name} [{bar}] {100 * done // total:3d}% {left:5.0f} s left")
        sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self.rewrites:
            sys.stderr.write("\n")


def _result(kind: Any, shape: tuple[int, ...], dtype: str, name: str, alignment: int) -> tuple[Any, TensorArgument]:
    """A result in the caller's kind, and its description; at an address that the plan's alignment divides."""
    made = empty_like_kind(kind, shape, dtype, "host")
    taken = intake(made, dtype, name)
    if taken.pointer % alignment and taken.size and isinstance(made, np.ndarray):
        made = aligned_empty(shape, dtype)
        taken = intake(made, dtype, name)
    return made, taken


def buffer_of(tensor: TensorArgument) -> Buffer:
    """The memory of a host tensor as the simulator takes it: flat, from the lowest address that a stride reaches."""
    array = tensor.array
    assert array is not None
    if array.size == 0:
        return Buffer(np.empty(0, array.dtype))
    low, high = tensor.span
    width = array.dtype.itemsize
    # The ellipsis makes it a view for rank 0 too, where an empty index would copy the element.
    corner = array[(*(slice(-1, None) if s < 0 else slice(0, 1) for s in array.strides), ...)]
    flat = as_strided(corner, ((high - low) // width,), (width,), writeable=array.flags.writeable)
    return Buffer(flat, offset=-low // width, address=tensor.pointer + low)
