"""`simulate`: one launch of a simt kernel, in NumPy.

    report = simulate(kernel, [Buffer(x), Buffer(y)], [n], grid=8, level="check")

Levels: `fast` computes; `count` also counts requests, sectors and wavefronts for each access; `check` also looks for
races and other faults. A kernel that runs often is compiled once with `compile_kernel`, and run with `Program.run`.

`blocks=[0, 5, 7]` runs these blocks alone; on virtual memory (`sim/virtual.py`) that tries launches of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.types import GlobalType
from tilewright.runtime.numerics import Array
from tilewright.runtime.scalar_ops import carrier_dtype, quiet
from tilewright.runtime.sim.addresses import address_values
from tilewright.runtime.sim.async_copies import AsyncCopies, Landing, check_landing, copy_table
from tilewright.runtime.sim.asynchronous import accumulators, asynchronous_table, needs_machine
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.clocks import VectorClocks
from tilewright.runtime.sim.compiler import Compiled, Compiler, Level
from tilewright.runtime.sim.control import control_table
from tilewright.runtime.sim.machine import Machine
from tilewright.runtime.sim.matrices import matrix_table
from tilewright.runtime.sim.mbarriers import Mbarriers, mbar_columns, mbar_names
from tilewright.runtime.sim.memory import memory_table
from tilewright.runtime.sim.named_barriers import NamedBarriers
from tilewright.runtime.sim.observers import shared_cell, written_pointers
from tilewright.runtime.sim.races import EpochModel, GlobalOrder
from tilewright.runtime.sim.registers import register_table
from tilewright.runtime.sim.report import Report, Site, SiteCounts
from tilewright.runtime.sim.roles import end_of_role
from tilewright.runtime.sim.scalars import scalar_table
from tilewright.runtime.sim.schedule import run_roles
from tilewright.runtime.sim.state import WARP, BlockBarrier, Shared, State, Waiting
from tilewright.runtime.sim.tensor_maps import MapSpec, TensorMap, make_maps, map_specs
from tilewright.runtime.sim.unaligned import access_table
from tilewright.runtime.sim.virtual import VirtualMemory

BATCH_BYTES = 256 << 20
"""Memory for the live values of the blocks that are simulated at once."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled kernel."""

    kernel: KernelOp
    level: Level
    aliased: bool
    body: Compiled
    slot_count: int
    pointer_slots: tuple[int, ...]
    scalar_slots: tuple[int, ...]
    cell: int
    """Bytes of a cell of the race model."""
    access_sites: tuple[Site, ...]
    """The loads and stores, in text order; empty at level `fast`."""
    bytes_per_block: int
    """Bound on the memory of one block's live values."""
    maps: tuple[MapSpec, ...] = ()
    asynchronous: bool = False
    """Whether anything runs beside the threads, or in roles."""
    mbarriers: tuple[str, ...] = ()
    """Names of the kernel's mbarriers."""

    def batch_size(self, blocks: int) -> int:
        """How many blocks to simulate at once."""
        return max(1, min(blocks, BATCH_BYTES // self.bytes_per_block))

    def run(
        self,
        buffers: Sequence[Buffer],
        scalars: Sequence[int | float],
        *,
        grid: int,
        blocks: Sequence[int] | None = None,
        batch: int | None = None,
        progress: Progress | None = None,
        landing: Landing = "latest",
        map_sizes: Sequence[int] = (),
        seed: int | None = None,
    ) -> Report:
        """Run the `grid` blocks on the buffers, in place, or only those in `blocks`, in ascending order.

        `landing` says when asynchronous work happens: at the `latest` or the `earliest` legal moment. `map_sizes` has
        the sizes, then the strides, of each tensor map after the other; a `seed` makes the turns of roles, and which
        copy lands next, random. Raises TilewrightError for arguments that do not fit, and below level `check` for a
        deadlock.
        """
        check_landing(landing)
        self._check_arguments(buffers, scalars, grid, blocks)
        maps = make_maps(self.kernel.sym_name.data, self.maps, buffers, map_sizes)
        total = grid if blocks is None else len(set(blocks))
        cluster = self.kernel.cluster_size
        report = Report(self.level, total, {site: SiteCounts() for site in self.access_sites})
        order = GlobalOrder() if self.level == "check" else None
        size = self.batch_size(total) if batch is None else max(1, batch)
        size = -(-size // cluster) * cluster
        done = 0
        with quiet():
            for first, count in batches(grid, blocks, size):
                state = self._state(report, list(buffers), scalars, first, count)
                state.grid = grid
                state.copies = AsyncCopies(landing)
                if order is not None:
                    state.order = order
                    state.races = self._races(count, state)
                if self.asynchronous:
                    state.machine = self._machine(report, state, maps, landing, seed)
                if not run_roles([self._drive(state)], report, first, state.machine, seed):
                    if self.level != "check":
                        at = report.of_kind("deadlock")[0]
                        raise TilewrightError(f"{at.site.op_name}: deadlock: {at.message}", at.site.location)
                    break
                if state.machine is not None:
                    state.machine.finish()
                done += count
                if progress is not None:
                    progress(done, total)
        return report

    def _drive(self, state: State) -> Generator[Waiting, None, None]:
        yield from self.body.drive(state)
        end_of_role(state)

    def _races(self, count: int, state: State) -> EpochModel | VectorClocks:
        cells = state.shared.pitch // self.cell
        if not self.asynchronous:
            return EpochModel(count, state.threads, cells)
        cluster = self.kernel.cluster_size
        return VectorClocks(count, state.threads // WARP, self.mbarriers, cells, self.cell, cluster)

    def _machine(
        self, report: Report, state: State, maps: Sequence[TensorMap], landing: Landing, seed: int | None
    ) -> Machine:
        return Machine(
            report,
            state.first_block,
            state.blocks,
            state.shared,
            maps,
            Mbarriers(state.blocks, self.mbarriers, state.threads // WARP),
            NamedBarriers(state.blocks),
            state.races if isinstance(state.races, VectorClocks) else None,
            landing == "earliest",
            None if seed is None else Random(seed),
        )

    def _state(
        self, report: Report, buffers: list[Buffer], scalars: Sequence[int | float], first: int, count: int
    ) -> State:
        threads = self.kernel.threads.value.data
        shared = Shared.allocate(count, self.kernel.smem.value.data)
        state = State([None] * self.slot_count, count, threads, first, report, buffers, shared, BlockBarrier(1))
        for slot, value, argument in zip(self.scalar_slots, scalars, scalar_arguments(self.kernel), strict=True):
            state.env[slot] = np.full((1, 1), value, carrier_dtype(argument.type, "typed"))
        return state

    def _check_arguments(
        self, buffers: Sequence[Buffer], scalars: Sequence[int | float], grid: int, blocks: Sequence[int] | None
    ) -> None:
        name = self.kernel.sym_name.data
        if grid < 0:
            raise TilewrightError(f"{name}: expected a grid of at least 0 blocks, got {grid}")
        cluster = self.kernel.cluster_size
        if grid % cluster:
            raise TilewrightError(f"{name}: expected a grid of whole clusters of {cluster} blocks, got {grid} blocks")
        if cluster > 1 and blocks is not None:
            wanted = set(blocks)
            torn = [b for b in wanted if any(b // cluster * cluster + r not in wanted for r in range(cluster))]
            if torn:
                raise TilewrightError(f"{name}: expected whole clusters of {cluster} blocks, got block {torn[0]} alone")
        outside = [block for block in blocks or () if not 0 <= block < grid]
        if outside:
            raise TilewrightError(f"{name}: expected blocks of a grid of {grid}, got block {outside[0]}")
        pointers = self.kernel.pointers
        if len(buffers) != len(pointers):
            raise TilewrightError(f"{name}: expected {len(pointers)} buffers, got {len(buffers)}")
        if len(scalars) != len(self.scalar_slots):
            raise TilewrightError(f"{name}: expected {len(self.scalar_slots)} scalars, got {len(scalars)}")
        for number, (buffer, pointer) in enumerate(zip(buffers, pointers, strict=True)):
            assert isinstance(pointer.type, GlobalType)
            buffer.check(pointer.type.element, f"{name}: pointer {number}")
        for number, (value, argument) in enumerate(zip(scalars, scalar_arguments(self.kernel), strict=True)):
            if argument.type not in (i32, i64):
                continue  # a value that the launch passes: NumPy checks it
            bits = 32 if argument.type == i32 else 64
            if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
                raise TilewrightError(f"{name}: expected scalar {number} to fit in {bits} bits, got {value}")
        if not self.aliased and overlap(buffers, self.kernel):
            raise TilewrightError(f"{name}: compiled for buffers that do not overlap, got buffers that do")


def batches(grid: int, blocks: Sequence[int] | None, size: int) -> Iterator[tuple[int, int]]:
    """(first block, count) of runs of at most `size` neighbouring blocks: of all `grid`, or of those in `blocks`."""
    if blocks is None:
        for first in range(0, grid, size):
            yield first, min(size, grid - first)
        return
    first, count = 0, 0
    for block in sorted(set(blocks)):
        if count and (block > first + count or count == size):
            yield first, count
            count = 0
        if not count:
            first = block
        count += 1
    if count:
        yield first, count


def scalar_arguments(kernel: KernelOp) -> list[SSAValue]:
    """The scalar arguments of a kernel: those passed by value, then those bound to `params`."""
    return [*kernel.values, *kernel.scalars]


def overlap(buffers: Sequence[Buffer], kernel: KernelOp | None = None) -> bool:
    """Whether two buffers may share memory; given the kernel, only pairs of which it stores to one count."""
    written = set(range(len(buffers)))
    if kernel is not None:
        written = written_pointers(kernel)
    return any(
        _share(one.data, other.data)
        for i, one in enumerate(buffers)
        for j, other in enumerate(buffers)
        if i < j and (i in written or j in written)
    )


def _share(one: Array | VirtualMemory, other: Array | VirtualMemory) -> bool:
    if isinstance(one, VirtualMemory) or isinstance(other, VirtualMemory):
        return one is other
    return np.may_share_memory(one, other)


def compile_kernel(kernel: KernelOp, level: Level = "fast", *, aliased: bool = True, vectorise: bool = True) -> Program:
    """Compile a kernel for one level; `aliased` is false when no buffer that it stores to will overlap another.

    `vectorise` turns off that independent `simt.unroll` iterations run as one array axis. Raises TilewrightError, at
    the op, for what the simulator cannot run.
    """
    if level not in ("fast", "count", "check"):
        raise TilewrightError(f"expected level fast, count or check, got {level!r}", location_of(kernel))
    table = scalar_table() | register_table() | memory_table() | access_table() | control_table() | matrix_table()
    table |= copy_table() | asynchronous_table()
    compiler = Compiler(kernel, level, aliased, vectorise, table)
    asynchronous = needs_machine(kernel)
    compiler.cell = shared_cell(kernel, asynchronous)
    compiler.mbar_columns = mbar_columns(kernel)
    compiler.accumulators = accumulators(kernel)
    if compiler.checks:
        compiler.address_values = address_values(kernel)
    pointers = tuple(compiler.slot(p) for p in kernel.pointers)
    scalars = tuple(compiler.slot(s) for s in scalar_arguments(kernel))
    body = compiler.block(kernel.body.block)
    # A handful of temporaries of 8 bytes, as wide as the widest nest of vectorised loops.
    per_thread = compiler.bytes_per_thread + 8 * 6 * compiler.widest + 8 * compiler.slot_count // 4
    # The race model keeps two words for each cell, the counters an address for each lane.
    smem_bytes = kernel.smem.value.data * (1 + (16 // compiler.cell if compiler.checks else 0))
    if asynchronous and compiler.checks:
        agents = kernel.threads.value.data // 16 + len(compiler.mbar_columns)
        smem_bytes += kernel.smem.value.data // compiler.cell * 4 * agents
    per_block = per_thread * kernel.threads.value.data + smem_bytes
    return Program(
        kernel,
        level,
        aliased,
        body,
        compiler.slot_count,
        pointers,
        scalars,
        compiler.cell,
        tuple(compiler.access_sites),
        per_block,
        map_specs(kernel),
        asynchronous,
        mbar_names(kernel),
    )


def simulate(
    kernel: KernelOp,
    buffers: Sequence[Buffer],
    scalars: Sequence[int | float],
    *,
    grid: int,
    level: Level = "fast",
    blocks: Sequence[int] | None = None,
    batch: int | None = None,
    progress: Progress | None = None,
    landing: Landing = "latest",
    map_sizes: Sequence[int] = (),
) -> Report:
    """Run `grid` blocks of a kernel, or those of them in `blocks`, on `buffers`, one for each pointer, and `scalars`.

    `scalars` are what goes by value, then the values of the kernel's `params`; `map_sizes` as in `Program.run`.

    The buffers are written in place. `batch` is how many blocks run at once (by default as many as fit in 256 MiB);
    `progress` is called with (blocks done, blocks); `landing` as in `Program.run`. Raises TilewrightError for
    arguments that do not fit, for an op that the simulator does not know, and below level `check` for an access
    outside its buffer.
    """
    program = compile_kernel(kernel, level, aliased=overlap(buffers, kernel))
    return program.run(
        buffers,
        scalars,
        grid=grid,
        blocks=blocks,
        batch=batch,
        progress=progress,
        landing=landing,
        map_sizes=map_sizes,
    )
