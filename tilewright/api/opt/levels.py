"""Is a module of one level before and after a pass? After lin-to-tile no `lin` op survives.

What `verify-level` checks when asked, `--verify-each` checks around every pass: a lowering must arrive at its level,
any other pass must stay at one that the module was at. Ops of other dialects than the project's are of no level: a
module that holds some, such as a test on `arith`, is checked for what is the project's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.passes.registry import PASSES
from tilewright.passes.verify_level import LEVELS, misplaced, op_name

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

ARRIVES_AT: dict[str, tuple[str, ...]] = {
    "lin-to-tile": ("tile",),
    # The kernels stand beside the plan that launches them.
    "host-plan": ("tile", "host"),
    "instantiate-variants": ("tile",),
    "tile-to-simt": ("simt",),
}
"""The levels that a lowering must arrive at, all of them."""

_OWN = frozenset({"sym", "lin", "tile", "simt", "host", "func"})


def levels_of(module: ModuleOp) -> frozenset[str]:
    """Return the levels that a module is at: none if it is mixed, several if it holds little, such as no kernels."""
    return frozenset(level for level in LEVELS if next(misplaced(module, level), None) is None)


def check_level(pass_name: str, module: ModuleOp, before: frozenset[str]) -> frozenset[str]:
    """Return the levels of `module` after a pass that found it at those in `before`.

    Raises TilewrightError at the first op that the pass should not have left. A pass that users wrote may lower as it
    likes, so it must only leave a module that is at some level, if it found one.
    """
    after = levels_of(module)
    if pass_name in ARRIVES_AT:
        for level in ARRIVES_AT[pass_name]:
            _refuse_own(pass_name, module, level)
        return after
    wanted = before if pass_name in PASSES else frozenset(LEVELS)
    if before and not after & wanted:
        for level in LEVELS:
            if level in before:
                _refuse_own(pass_name, module, level)
                break
    return after


def _refuse_own(pass_name: str, module: ModuleOp, level: str) -> None:
    """Raise TilewrightError at the first op of the project's own dialects that may not stand at the level."""
    for op, problem in misplaced(module, level):
        if op_name(op).partition(".")[0] in _OWN:
            raise TilewrightError(problem, location_of(op))
