"""`--verify-each` asks after every pass whether the module is at the level where it should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tests.api.opt.support import IDENTITY, one_line_of, run
from tilewright.api.opt.levels import check_level, levels_of
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.passes.core import TilewrightPass
from tilewright.passes.registry import register_pass

TENSOR = """!X = tensor<?x8xf32, #sym.dims<N, 8>>
sym.symbol @N
func.func @f(%x: !X) -> !X {
  %y = lin.softmax %x axis 1 : !X -> !X
  func.return %y : !X
}
"""
TO_TILE = "infer-shapes,decompose,fuse-groups,lin-to-tile"


def module_of(text: str) -> ModuleOp:
    return parse_module(text, "t.mlir", make_context())


@register_pass
@dataclass(frozen=True)
class LeavesTensorOps(TilewrightPass):
    """Puts a function of the tensor level beside whatever is there."""

    name: ClassVar[str] = "test-leave-tensor-ops"
    level: ClassVar[str] = "any"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inner = parse_module(TENSOR.replace("@f", "@left").replace("sym.symbol @N", ""), "late.mlir", make_context())
        function = next(each for each in inner.body.block.ops if isinstance(each, FuncOp))
        function.detach()
        op.body.block.add_op(function)


def test_levels_of_modules() -> None:
    assert levels_of(module_of(TENSOR)) == {"tensor"}
    assert levels_of(module_of("sym.symbol @N")) == {"tensor", "tile", "simt", "host"}
    # Upstream's own ops at the top of a function are of no level of ours.
    assert levels_of(module_of("func.func @f(%a: i32) {\n %b = arith.addi %a, %a : i32\n func.return\n}")) == set()
    code, tiled, _ = run("-p", TO_TILE, text=TENSOR)
    assert code == 0
    assert "tile" in levels_of(module_of(tiled))


@pytest.mark.parametrize("lowering", ["lin-to-tile", "host-plan", "instantiate-variants", "tile-to-simt"])
def test_a_lowering_must_leave_no_op_of_the_level_above(lowering: str) -> None:
    with pytest.raises(TilewrightError, match=r"error: level (tile|simt): expected .* in the module, got func.func"):
        check_level(lowering, module_of(TENSOR), frozenset({"tensor"}))


def test_a_pass_of_the_house_must_stay_at_its_level() -> None:
    tiled = module_of(run("-p", TO_TILE, text=TENSOR)[1])
    assert check_level("lin-to-tile", tiled, frozenset({"tensor"})) >= {"tile"}
    assert check_level("coalesce", tiled, frozenset({"tile"})) >= {"tile"}
    with pytest.raises(TilewrightError, match="error: level tensor: expected func, sym in the module, got "):
        check_level("cse", tiled, frozenset({"tensor"}))


def test_a_users_pass_may_lower_but_not_mix() -> None:
    tiled = module_of(run("-p", TO_TILE, text=TENSOR)[1])
    assert check_level("my-lowering", tiled, frozenset({"tensor"})) >= {"tile"}
    # To ops of another dialect than ours, anything goes.
    other = module_of("func.func @f(%a: i32) {\n %b = arith.addi %a, %a : i32\n func.return\n}")
    assert check_level("my-lowering", other, frozenset({"tensor"})) == set()


def test_the_tool_names_the_pass_and_the_op() -> None:
    pipeline = f"{TO_TILE},test-leave-tensor-ops"
    code, out, err = run("-p", pipeline, text=TENSOR)
    assert (code, out) == (1, "")
    line = one_line_of(err)
    assert line.startswith("late.mlir:3:1: error: level tile: expected host, sym, tile in the module, got func.func")
    assert line.endswith("(after pass 'test-leave-tensor-ops')")
    assert run("-p", pipeline, "--no-verify-each", text=TENSOR)[0] == 0


def test_modules_of_no_level_are_let_be() -> None:
    other = "func.func @g(%a: i32) {\n  %b = arith.addi %a, %a : i32\n  func.return\n}\n"
    text = IDENTITY.replace("@f", "@h") + other + TENSOR
    assert run("-p", "canonicalize,cse,test-leave-tensor-ops", text=text)[0] == 0
