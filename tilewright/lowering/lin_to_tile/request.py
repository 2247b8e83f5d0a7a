"""What a group's kernels are made from, and what is made: a schedule, the relations under which it is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym import Expr, Facts, Relation
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType
from tilewright.lowering.host_variants import Serves
from tilewright.lowering.lin_to_tile.candidates import Candidates
from tilewright.lowering.lin_to_tile.group_space import GroupSpace
from tilewright.lowering.lin_to_tile.kernel_writer import KernelWriter
from tilewright.lowering.lin_to_tile.split import Split
from tilewright.lowering.lin_to_tile.tile_sizes import Bound
from tilewright.lowering.targets.limits import Limits


@dataclass(frozen=True)
class Schedule:
    """A kernel and when it is chosen; no relations for the one that always serves."""

    name: str
    when: tuple[Relation, ...]
    kernel: KernelOp
    prefers: tuple[Relation, ...] = ()
    """Relations that only choose: they hold too when it runs, but its code does not rely on them."""
    mapped: tuple[SSAValue, ...] = ()
    """Inputs that tensor maps move, whose accesses no variant can widen."""
    split: Split | None = None
    """Two kernels in place of one, `kernel` being the first."""
    lets: tuple[tuple[str, Expr], ...] = ()
    """Symbols that the plan computes before it chooses, with their values."""
    serves: Serves | None = None
    """What it has variants for; None for all."""
    plain: bool = False
    """Whether no variant widens its accesses: for what others leave, which is seldom aligned."""


@dataclass(frozen=True)
class Request:
    """What a group's kernels are made from: its space, values with kernel argument types, what is known of sizes."""

    name: str
    space: GroupSpace
    inputs: Sequence[tuple[SSAValue, Attribute]]
    outputs: Sequence[tuple[SSAValue, BufType]]
    facts: Facts
    given: tuple[int, ...]
    origin: Operation
    """What the group was made from: where remarks point."""
    arch: str | None = None
    bases: Mapping[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """The symbol of an input's or output's base address, where it has one."""
    declare: Callable[[str, int, int], str] | None = None
    """Declares a symbol that the plan computes: wanted name, least value, divisor. Without it nothing is split."""
    max_workspace: int | None = None
    """Bytes of scratch that a schedule may take; None for any number."""
    held: Expr = field(default_factory=lambda: Expr.const(0))
    """Those that operands take which kernels of their own make for it."""
    processors: int = Limits.processors
    """Those of the device, which compute a tile each at a time."""
    candidates: Candidates = field(default_factory=Candidates)
    """What is to be said of the tiles that a product chooses among."""

    def extent(self, dim: int) -> Bound:
        """What is known of a group dim's size."""
        return self.facts.range(self.space.extents[dim])[1]

    def writer(self, suffix: str, tiles: dict[int, int]) -> KernelWriter:
        """A writer for one kernel of the group."""
        name = f"{self.name}_{suffix}" if suffix else self.name
        return KernelWriter(name, self.space, self.inputs, self.outputs, tiles)

    def override(self, tiles: dict[int, int]) -> dict[int, int]:
        """`tiles` with the sizes that the user gave, in the order parallel dims then reduced dims."""
        order = [*self.space.parallel, *sorted(self.space.reduced)]
        if self.given and len(self.given) > len(order):
            raise TilewrightError(f"expected at most {len(order)} tile sizes, got {len(self.given)}")
        for size in self.given:
            if size < 1 or size & (size - 1):
                raise TilewrightError(f"expected tile sizes that are powers of two, got {size}")
        return {**tiles, **dict(zip(order, self.given, strict=False))}
