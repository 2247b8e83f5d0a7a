"""Pass `verify-level`: only the ops of a level may stand in a program of that level."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Operation

from tilewright.diagnostics import TilewrightError
from tilewright.passes.core import TilewrightPass, error_at


@dataclass(frozen=True, slots=True)
class Level:
    """What may appear where in a program of one level."""

    top: frozenset[str]
    """Dialects of the ops that stand in the module itself."""
    checked: frozenset[str]
    """Dialects of those top ops whose bodies belong to this level, and are checked."""
    body: frozenset[str]
    """Dialects that may appear anywhere in such a body; a name with a dot is one op."""
    inner: frozenset[str] = frozenset()
    """Dialects that may appear only inside the regions of an op in such a body."""


def _names(*names: str) -> frozenset[str]:
    return frozenset(names)


LEVELS: dict[str, Level] = {
    # A scalar constant may stand beside the structured ops, as their operand; canonicalize moves it into the body.
    "tensor": Level(
        top=_names("sym", "func"),
        checked=_names("func"),
        body=_names("sym", "lin", "func", "arith.constant"),
        inner=_names("arith", "math"),
    ),
    "tile": Level(
        top=_names("sym", "tile", "host"),
        checked=_names("tile"),
        body=_names("sym", "tile", "arith", "math"),
    ),
    "simt": Level(
        top=_names("sym", "simt", "host"),
        checked=_names("simt"),
        body=_names("simt", "scf", "arith", "math"),
    ),
    # The kernels of the level below stand beside the plan that launches them; each is checked at its own level.
    "host": Level(
        top=_names("sym", "host", "tile", "simt"),
        checked=_names("host"),
        body=_names("host", "sym"),
    ),
}
"""The table of levels: level -> what may appear."""

STAGES = ("free", "scheduled")


class _AnyLevel(TilewrightPass, ABC):
    """What the class `VerifyLevelPass` says of itself, whose `level` is an option: an instance checks one level."""

    level = "any"


@dataclass(frozen=True)
class VerifyLevelPass(_AnyLevel):
    """Checks that the program holds only what its level allows; changes nothing.

    `stage=scheduled`, of the tile level, also checks that no decision is open: an op that has decisions to make has a
    method `schedule_gaps() -> list[str]`, which names those that are not written on it yet. Raises at the first op that
    may not stand where it stands, and says how many more there are.
    """

    name = "verify-level"

    level: str = field()  # pyright: ignore[reportIncompatibleVariableOverride]  # `field()`: no default is inherited
    """tensor, tile, simt or host."""
    stage: str = "free"
    """free, or scheduled (tile level)."""

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise TilewrightError(f"verify-level: expected level to be one of {', '.join(LEVELS)}, got '{self.level}'")
        if self.stage not in STAGES:
            raise TilewrightError(f"verify-level: expected stage to be one of {', '.join(STAGES)}, got '{self.stage}'")
        if self.stage == "scheduled" and self.level != "tile":
            raise TilewrightError(f"verify-level: stage scheduled is a stage of level tile, got level {self.level}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        wrong = list(misplaced(op, self.level))
        if wrong:
            first, problem = wrong[0]
            raise error_at(first, problem + _and_more(len(wrong) - 1))
        if self.stage == "scheduled":
            gaps = list(schedule_gaps(op))
            if gaps:
                first, gap = gaps[0]
                raise error_at(
                    first, f"stage scheduled: {op_name(first)} leaves open: {gap}" + _and_more(len(gaps) - 1)
                )


def op_name(op: Operation) -> str:
    """The op's name as written, for an unregistered op too."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def schedule_gaps(module: ModuleOp) -> Iterator[tuple[Operation, str]]:
    """Every open decision of a schedule with its op, in the order of the text."""
    for op in module.walk():
        gaps = getattr(op, "schedule_gaps", None)
        if gaps is not None:
            for gap in gaps():
                yield op, gap


def _and_more(count: int) -> str:
    return f" (and {count} more)" if count else ""


def _allows(allowed: frozenset[str], name: str) -> bool:
    return name in allowed or name.partition(".")[0] in allowed


def misplaced(module: ModuleOp, level_name: str) -> Iterator[tuple[Operation, str]]:
    """Each op that may not stand where it stands, with the message; the inside of such an op is not looked at."""
    level = LEVELS[level_name]

    def wrong(op: Operation, where: str, allowed: frozenset[str]) -> tuple[Operation, str]:
        return op, f"level {level_name}: expected {', '.join(sorted(allowed))} {where}, got {op_name(op)}"

    def check_body(parent: Operation, owner: Operation) -> Iterator[tuple[Operation, str]]:
        allowed = level.body if parent is owner else level.body | level.inner
        for child in _children(parent):
            if _allows(allowed, op_name(child)):
                yield from check_body(child, owner)
            else:
                yield wrong(child, f"in {op_name(parent)}", allowed)

    for op in _children(module):
        name = op_name(op)
        if not _allows(level.top, name):
            yield wrong(op, "in the module", level.top)
        elif _allows(level.checked, name):
            yield from check_body(op, op)


def _children(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            yield from block.ops
