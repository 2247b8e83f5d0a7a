"""Passes with faults planted in them, at each level: what `assert_pass_preserves` must find."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

from tilewright.dialects.assembly import i64_attr
from tilewright.dialects.lin.access import AccessAttr
from tilewright.dialects.lin.generic import GenericOp
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
class ForgetPaddingPass(TilewrightPass):
    """Reads 1 outside of an operand, whatever a pad or a convolution says, as a fusion would that merges two masks."""

    name = "forget-padding"
    level = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, GenericOp) and inner.access_attrs is not None:
                inner.properties["accesses"] = ArrayAttr([_filled(a) for a in inner.access_attrs.data])


def _filled(access: Attribute) -> Attribute:
    if not isinstance(access, AccessAttr) or not isinstance(access.fill, FloatAttr):
        return access
    return AccessAttr.at(access.indices, FloatAttr(1.0, access.fill.type))


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
class WrongIdentityPass(TilewrightPass):
    """Fills the tail of a tile with 1 where the reduction over it needs its identity."""

    name = "wrong-identity"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, CopyOp) and isinstance(inner.other, FloatAttr):
                inner.properties["other"] = FloatAttr(1.0, inner.other.type)


@dataclass(frozen=True)
class WidenEverythingPass(TilewrightPass):
    """Makes every access to global memory two elements wide, whether or not two divides the row."""

    name = "widen-everything"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, CopyOp) and global_side(inner) is not None and inner.tile_type.rank:
                inner.properties["width"] = i64_attr(2)


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


@dataclass(frozen=True)
class OneTooFarPass(TilewrightPass):
    """Compares i <= n where a mask asks for i < n."""

    name = "one-too-far"
    level = "simt"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, arith.CmpiOp) and inner.predicate.value.data == _LESS:
                made = arith.CmpiOp(inner.lhs, inner.rhs, "sle")
                block = inner.parent
                assert block is not None
                block.insert_op_before(made, inner)
                inner.result.replace_all_uses_with(made.result)
                inner.detach()
                inner.erase()


_LESS = 2
"""The predicate `slt` of arith.cmpi."""


@dataclass(frozen=True)
class NothingPass(TilewrightPass):
    """Does nothing."""

    name = "nothing"
    level = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Leave everything as it is."""
