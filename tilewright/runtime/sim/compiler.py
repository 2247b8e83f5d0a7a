"""From a kernel to Python functions: each op becomes one closure over slots, found in a table by the op's class.

A closure takes the `State` and reads and writes `state.env` by slot numbers fixed here, so that running an op costs a
call and its NumPy work. Only ops that may wait (`simt.barrier`, and loops and branches around one) become generators.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from xdsl.ir import Block, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.simt.structure import KernelOp, UnrollOp
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import State, Step, Waiting, WaitingStep

Level: TypeAlias = Literal["fast", "count", "check"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """One op, or a sequence of them; a generator function when it may wait."""

    run: Any
    waits: bool

    def step(self) -> Step:
        """The function of an op that never waits."""
        return cast("Step", self.run)

    def waiting_step(self) -> WaitingStep:
        """The generator function of an op that may wait."""
        return cast("WaitingStep", self.run)

    def drive(self, state: State) -> Generator[Waiting, None, None]:
        """Run to the end, waiting where needed."""
        if self.waits:
            yield from self.run(state)
        else:
            self.run(state)


@dataclass(frozen=True, slots=True)
class Loop:
    """A `simt.unroll` around the op that is being compiled."""

    op: UnrollOp
    slot: int
    count: int
    vector: bool
    """Whether all iterations run at once, as one more array axis."""


CompileFn: TypeAlias = "Callable[[Compiler, Any], Compiled]"


@dataclass
class Compiler:
    """The state of compiling one kernel."""

    kernel: KernelOp
    level: Level
    aliased: bool
    """Whether two pointer arguments may name the same memory."""
    vectorise: bool
    table: dict[type[Operation], CompileFn]
    slots: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    slot_count: int = 0
    loops: list[Loop] = field(default_factory=list[Loop])
    allocated_in: dict[SSAValue, tuple[Loop, ...]] = field(default_factory=dict[SSAValue, "tuple[Loop, ...]"])
    """By register array: the loops around its allocation."""
    shadows: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """By register array: the slot of the array that says which registers are written; -1 below level `check`."""
    bytes_per_thread: int = 0
    """Registers and live values of one thread, as a bound for the batch size."""
    widest: int = 1
    """Greatest product of vectorised loop counts."""
    address_values: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that some address or mask is computed from."""
    access_sites: list[Site] = field(default_factory=list[Site])
    """The loads and stores, in text order."""
    ordinals: dict[Operation, int] = field(default_factory=dict[Operation, int])
    mbar_columns: dict[int, int] = field(default_factory=dict[int, int])
    """By byte offset in shared memory: the number of the mbarrier there."""
    cell: int = 4
    """Bytes of a cell of the race model."""
    accumulators: set[SSAValue] = field(default_factory=set[SSAValue])
    """Register arrays that matrix instructions add to."""

    @property
    def checks(self) -> bool:
        """Whether faults are looked for."""
        return self.level == "check"

    @property
    def counts(self) -> bool:
        """Whether accesses are counted."""
        return self.level != "fast"

    @property
    def vector_loops(self) -> list[Loop]:
        """The loops around the current op that are array axes, outermost first."""
        return [loop for loop in self.loops if loop.vector]

    @property
    def vector_counts(self) -> tuple[int, ...]:
        """Extents of the loop axes as they stand in an array's shape: innermost first."""
        return tuple(loop.count for loop in reversed(self.vector_loops))

    def new_slot(self) -> int:
        """A slot of its own."""
        self.slot_count += 1
        return self.slot_count - 1

    def slot(self, value: SSAValue) -> int:
        """The slot of a value."""
        found = self.slots.get(value)
        if found is None:
            found = self.slots[value] = self.new_slot()
        return found

    def site(self, op: Operation, space: str = "") -> Site:
        """The op as reports name it."""
        if not self.ordinals:
            self.ordinals = {inner: i for i, inner in enumerate(self.kernel.walk())}
        return Site(self.ordinals.get(op, -1), op.name, location_of(op), space)

    def op(self, op: Operation) -> Compiled:
        """Compile one op; TilewrightError for an op that simt kernels do not have."""
        fn = self.table.get(type(op))
        if fn is None:
            raise TilewrightError(f"the simulator does not know {op.name}", location_of(op))
        return fn(self, op)

    def block(self, block: Block) -> Compiled:
        """Compile the ops of a block in order; terminators are read by the op around it."""
        return sequence([self.op(op) for op in block.ops if op.name != "scf.yield"])


def sequence(parts: Sequence[Compiled]) -> Compiled:
    """Several ops, one after the other."""
    if not any(part.waits for part in parts):
        steps = [part.step() for part in parts]
        if len(steps) == 1:
            return Compiled(steps[0], False)

        def run(state: State) -> None:
            for step in steps:
                step(state)

        return Compiled(run, False)

    def run_waiting(state: State) -> Generator[Waiting, None, None]:
        for part in parts:
            if part.waits:
                yield from part.run(state)
            else:
                part.run(state)

    return Compiled(run_waiting, True)


def nothing() -> Compiled:
    """An op that does nothing when it runs."""

    def run(state: State) -> None:
        del state

    return Compiled(run, False)


def around(run: WaitingStep, waits: bool) -> Compiled:
    """An op with regions, written as a generator; a plain function when nothing inside may wait."""
    if waits:
        return Compiled(run, True)

    def plain(state: State) -> None:
        for _ in run(state):
            raise AssertionError("an op that never waits has waited")

    return Compiled(plain, False)
