"""Pass `canonicalize`: the simpler of two forms that mean the same, at every level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.passes.core import TilewrightPass
from tilewright.passes.rewriting import Pattern, apply_patterns


@dataclass(frozen=True)
class CanonicalizePass(TilewrightPass):
    """Folds what is known, drops what changes nothing, and erases ops whose results nobody uses.

    `arith` integers, `sym.apply`, `scf.if` and `scf.for` of constants, `lin` ops that are the identity. Floats change
    only where the result is the same in every bit. Relies on the ops' memory effects: an op of unknown effects stays.
    """

    name = "canonicalize"
    level = "any"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        canonicalize(op)


def canonicalize(root: Operation) -> bool:
    """Canonicalize everything inside `root`, and say whether anything changed."""
    dialects = {inner.name.partition(".")[0] for inner in root.walk()}
    return apply_patterns(root, patterns_for(dialects), erase_dead=True)


def patterns_for(dialects: Iterable[str]) -> tuple[Pattern[Operation], ...]:
    """The patterns for programs of these dialects; patterns of others are not even imported."""
    dialects = set(dialects)
    found: list[Pattern[Operation]] = []
    if "arith" in dialects or "scf" in dialects:
        from tilewright.passes.canonical_arith import PATTERNS as of_arith

        found += of_arith
    if "scf" in dialects:
        from tilewright.passes.canonical_scf import PATTERNS as of_scf

        found += of_scf
    if "sym" in dialects:
        from tilewright.passes.canonical_arith import PATTERNS as of_arith
        from tilewright.passes.canonical_sym import PATTERNS as of_sym

        found += [p for p in of_arith if p not in found]
        found += of_sym
    if "lin" in dialects:
        from tilewright.passes.canonical_lin import PATTERNS as of_lin

        found += of_lin
    return tuple(found)
