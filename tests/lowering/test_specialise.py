"""specialise: symbols become numbers everywhere, what thereby holds goes, what does not is an error."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.verify import verify_module
from tilewright.lowering.specialise import specialise

PROGRAM = """
sym.symbol @M {min = 1, multiple_of = 4}
sym.symbol @N {max = 100}
sym.require N >= 2*M
func.func @main(%x : tensor<?x?xf32, #sym.dims<M, N + 1>>) -> tensor<?xf32, #sym.dims<N + 1>> {
  %n = sym.apply N + 3*M
  %y = lin.reduce sum %x axes [0] : tensor<?x?xf32, #sym.dims<M, N + 1>> -> tensor<?xf32, #sym.dims<N + 1>>
  func.return %y : tensor<?xf32, #sym.dims<N + 1>>
}
"""


def specialised(**sizes: int) -> ModuleOp:
    module = parse_module(PROGRAM, "p.mlir", make_context())
    specialise(module, sizes)
    verify_module(module)
    return module


def expected(text: str) -> str:
    return str(parse_module(text, "expected.mlir", make_context()))


def test_all_symbols():
    text = """
func.func @main(%x : tensor<4x9xf32, #sym.dims<4, 9>>) -> tensor<9xf32, #sym.dims<9>> {
  %n = sym.apply 20
  %y = lin.reduce sum %x axes [0] : tensor<4x9xf32, #sym.dims<4, 9>> -> tensor<9xf32, #sym.dims<9>>
  func.return %y : tensor<9xf32, #sym.dims<9>>
}"""
    assert str(specialised(M=4, N=8)) == expected(text)


def test_one_symbol_leaves_the_requirement_on_the_other():
    module = str(specialised(M=4))
    assert "sym.require N >= 8" in module
    assert "sym.symbol @M" not in module
    assert "tensor<4x?xf32, #sym.dims<4, N + 1>>" in module


def test_what_other_dialects_and_users_wrote_is_specialised_too():
    """Sizes in an attribute of their own, in a dictionary, and a tensor whose shape names no symbol."""
    text = """
sym.symbol @M
func.func @main(%x : tensor<4xf32>) attributes {note = {sizes = #sym.dims<M, 3*M>, plain = 1 : i32}} {
  func.return
}"""
    module = parse_module(text, "p.mlir", make_context())
    specialise(module, {"M": 5})
    wanted = text.replace("sym.symbol @M\n", "").replace("M, 3*M", "5, 15")
    assert str(module) == expected(wanted)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"M": 4, "N": 7}, "p.mlir:4:1: error: the program requires N >= 2*M, got M = 4, N = 7"),
        ({"M": 6}, "p.mlir:2:1: error: M = 6 is against the declaration of M"),
        ({"N": 101}, "p.mlir:3:1: error: N = 101 is against the declaration of N"),
    ],
)
def test_sizes_that_the_program_refuses(sizes: dict[str, int], message: str):
    with pytest.raises(TilewrightError) as error:
        specialised(**sizes)
    assert str(error.value) == message
