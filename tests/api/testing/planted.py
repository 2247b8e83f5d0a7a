"""Passes with faults planted in them, one at each level: what `assert_pass_preserves` must find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import SyncOp
from tilewright.passes.core import TilewrightPass
from tilewright.passes.tile_analysis import global_side


@dataclass(frozen=True)
class SwapSubtractionPass(TilewrightPass):
    """Turns a - b into b - a in the bodies of maps."""

    name = "swap-subtraction"
    level = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, arith.SubfOp | arith.SubiOp):
                left, right = inner.operands
                inner.operands = [right, left]


@dataclass(frozen=True)
class ProveEverythingPass(TilewrightPass):
    """Says of every bound that it is proved, so that nothing masks the tails."""

    name = "prove-everything"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, CopyOp) and global_side(inner) is not None:
                inner.properties["bounds"] = ArrayAttr([StringAttr("proved")] * len(inner.bound_words))


@dataclass(frozen=True)
class DropBarriersPass(TilewrightPass):
    """Removes every barrier between threads that share memory."""

    name = "drop-barriers"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, SyncOp):
                inner.detach()
                inner.erase()


def walk_named(op: ModuleOp, name: str) -> list[Any]:
    """All ops of a name."""
    return [inner for inner in op.walk() if inner.name == name]
