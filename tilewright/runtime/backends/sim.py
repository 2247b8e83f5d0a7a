"""Backend `sim`: the simt kernels of the chosen variants, run by the simulator in NumPy."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.arguments import TensorArgument
from tilewright.runtime.backends.host import HostBackend, HostLaunch
from tilewright.runtime.plan import Site
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.estimate import estimate_seconds
from tilewright.runtime.sim.launch import Program, compile_kernel, overlap
from tilewright.runtime.variants import CompiledEntry

SHOW_AFTER_SECONDS = 5.0
"""Estimated time above which a launch shows its progress."""
REFUSE_AFTER_SECONDS = 120.0
"""Estimated time above which a launch is refused unless it is forced."""
KNOWN_ESTIMATES = 1024
"""Launches whose estimates are kept."""
PERSISTENT_BLOCKS = 8
"""Blocks of a persistent kernel at most: each takes several tiles, as on a GPU."""


class SimBackend(HostBackend):
    """Runs the launches one after the other, in lockstep over the threads of many blocks."""

    name = "sim"

    def __init__(self, entry: CompiledEntry) -> None:
        super().__init__(entry)
        self._estimates: dict[tuple[Any, ...], float] = {}
        """Seconds that a launch takes, by variant, blocks and parameters."""
        self._programs: dict[tuple[str, bool], Program] = {}
        self.persistent_blocks = PERSISTENT_BLOCKS

    def run(self, launches: Sequence[HostLaunch], force: bool) -> None:
        """Run the launches; TilewrightError where one would take too long and is not forced."""
        for each in launches:
            self._launch(each, force)

    def estimate(self, launch: HostLaunch) -> float:
        """Seconds that a launch will take, to a factor of two or three."""
        key = (launch.lowered.name, launch.grid, *launch.scalars)
        found = self._estimates.get(key)
        if found is None:
            if len(self._estimates) > KNOWN_ESTIMATES:
                self._estimates.clear()
            # A persistent kernel's blocks take one tile after the other: as many batches as turns.
            size = self._program(launch, _buffers(launch)).batch_size(self._blocks(launch))
            found = estimate_seconds(launch.lowered.kernel, launch.grid, list(launch.scalars), batch=size)
            self._estimates[key] = found
        return found

    def details(self, site: Site) -> dict[str, Any]:
        """Shared memory, which the kernel states itself."""
        return {"smem_bytes": self.entry.lower(site).kernel.smem.value.data} if self.entry.is_lowered(site) else {}

    def _program(self, launch: HostLaunch, buffers: Sequence[Buffer]) -> Program:
        lowered = launch.lowered
        aliased = overlap(buffers, lowered.kernel)
        program = self._programs.get((lowered.name, aliased))
        if program is None:
            program = self._programs[lowered.name, aliased] = compile_kernel(lowered.kernel, "fast", aliased=aliased)
        return program

    def _blocks(self, launch: HostLaunch) -> int:
        """How many blocks to launch."""
        persistent = launch.lowered.kernel.persistent is not None
        return min(launch.grid, self.persistent_blocks) if persistent else launch.grid

    def _launch(self, launch: HostLaunch, force: bool) -> None:
        name, grid, scalars, buffers = launch.lowered.name, self._blocks(launch), launch.scalars, _buffers(launch)
        estimate = self.estimate(launch)
        program = self._program(launch, buffers)
        if estimate > REFUSE_AFTER_SECONDS and not force:
            from tilewright.runtime.cpu_unit import of_sm_90a

            others = "backend cpu or reference" if of_sm_90a(launch.lowered.kernel) is None else "backend reference"
            raise TilewrightError(
                f"@{name}: simulating {grid} blocks would take about {estimate:.0f} s (limit "
                f"{REFUSE_AFTER_SECONDS:.0f} s): use smaller sizes, {others}, or a GPU; force=True "
                "(--force) runs it all the same"
            )
        if estimate <= SHOW_AFTER_SECONDS:
            program.run(buffers, scalars, grid=grid, map_sizes=launch.map_sizes)
            return
        bar = _ProgressBar(name)
        batch = max(1, min(program.batch_size(grid), grid // 20))
        program.run(buffers, scalars, grid=grid, batch=batch, progress=bar, map_sizes=launch.map_sizes)
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


def _buffers(launch: HostLaunch) -> list[Buffer]:
    return [buffer_of(tensor) for tensor in launch.tensors]


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
