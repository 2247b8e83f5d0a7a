"""Shapes that cannot be meant: one line that says where, what was found, and what had to hold."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as tw
from tests.regressions import programs
from tests.regressions.support import map_program
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.runtime.compile import compile_module
from tilewright.runtime.kernel import Kernel

NESTED = map_program("M").replace("{\n", f"attributes {{note = [{programs.tensor('M + Q')}]}} {{\n", 1)
"""An undeclared symbol in a type that stands in an attribute."""


def compiled(text: str, *symbols: str) -> Kernel:
    """For the simulator; the first line of the program comes after one line for each symbol."""
    declarations = "".join(f"sym.symbol @{each}\n" for each in symbols)
    return compile_module(parse_module(declarations + text, "p.mlir", make_context()), "sim")


def with_statement(shape: str, statement: str) -> str:
    """A map over tensors of this shape, with a statement in the first line of its body."""
    return map_program(shape).replace("{\n", f"{{\n  {statement}\n", 1)


@pytest.mark.parametrize(
    ("text", "symbols", "line", "parts"),
    [
        (map_program("M, Q"), ("M",), 2, ["symbol 'Q' is not declared"]),
        (map_program("M, 2*M + 3*Q"), ("M",), 2, ["symbol 'Q' is not declared"]),
        (map_program("M"), ("M", "M"), None, ["M"]),
        (map_program("M"), ("M", "M {min = 3}"), None, ["M"]),
        (with_statement("M", "sym.require M >= Q"), ("M",), 3, ["Q"]),
        (map_program("M"), ("M {min = 8, max = 4}",), 1, ["min 8", "max 4"]),
        (map_program("M"), ("M {min = -4}",), 1, ["min expected at least 0, got -4"]),
        (map_program("M"), ("M {max = -1}",), 1, ["max -1"]),
        (map_program("M"), ("M {multiple_of = 0}",), 1, ["multiple_of expected at least 1, got 0"]),
        (map_program("M"), ("M {multiple_of = -8}",), 1, ["multiple_of expected at least 1, got -8"]),
        (map_program("M"), ("M {min = 9, max = 15, multiple_of = 8}",), 1, ["multiple of 8 between min 9 and max 15"]),
        (map_program("M floordiv 0"), ("M",), 2, ["division by zero", "M"]),
        (map_program("M mod 0"), ("M",), 2, ["division by zero", "M"]),
        (map_program("M ceildiv (2 - 2)"), ("M",), 2, ["division by zero"]),
        (map_program("M, M floordiv (N - N)"), ("M", "N"), 3, ["division by zero"]),
        (map_program("M floordiv N, N"), ("M", "N"), 3, ["no argument size determines M", "M floordiv N"]),
        (map_program("M, -3"), ("M",), None, ["sizes of at least 0", "-3"]),
        (map_program("M, 0 - M - 1"), ("M",), 2, ["no call of @main is possible", "-M - 1 >= 0", "M >= 0"]),
        (map_program("M, 3 - M"), ("M {min = 4}",), None, ["no call of @main is possible", "-M + 3 >= 0", "M >= 4"]),
        (map_program(f"M, {1 << 63}"), ("M",), 2, ["9223372036854775808"]),
        (map_program(f"{1 << 63}*M, M"), ("M",), 2, ["coefficients below 2^63", "9223372036854775808*M"]),
        (map_program(f"M, {1 << 40}*M*M*M + {1 << 80}"), ("M",), 2, ["coefficients below 2^63", f"{1 << 80}"]),
        (map_program("M"), (f"M {{max = {1 << 70}}}",), 1, ["1180591620717411303424"]),
        (with_statement("M", "sym.require Z >= 4"), ("M", "Z"), 4, ["Z >= 4", "no argument binds Z"]),
        (with_statement("M", "sym.require M >= Z"), ("M", "Z"), 4, ["M >= Z", "no argument binds Z"]),
        (with_statement("M", "sym.require 5 <= 4"), ("M",), 3, ["5 <= 4 never holds"]),
        (with_statement("M", "sym.require M mod 0 == 0"), ("M",), 3, ["division by zero"]),
        (map_program("M").replace("tensor<?xf32", "tensor<5xf32"), ("M",), 2, ["expected '?' for the size M, got 5"]),
        (map_program("M").replace("tensor<?xf32", "tensor<?x?xf32"), ("M",), 2, ["rank 2", "got 1"]),
        (map_program("M*M"), ("M",), 2, ["no argument size determines M", "M*M"]),
        (NESTED, ("M",), None, ["symbol 'Q' is not declared"]),
    ],
)  # fmt: skip
def test_a_program_is_refused_in_one_line_at_its_place(
    text: str, symbols: tuple[str, ...], line: int | None, parts: list[str]
):
    with pytest.raises(TilewrightError) as caught:
        compiled(text, *symbols)
    message = str(caught.value)
    assert re.match(rf"p\.mlir:{line or r'[0-9]+'}:[0-9]+: error: ", message), message
    assert "\n" not in message
    for part in parts:
        assert part in message


def ones(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("target", ["sim", "reference"])
@pytest.mark.parametrize(
    ("shape", "symbols", "good", "bad", "message"),
    [
        ("M, M", ("M",), (3, 3), (3, 4), "M = 3 from argument 0 dim 0, 4 from argument 0 dim 1"),
        (
            "M, 2*M + 1", ("M",), (3, 7), (3, 8),
            "argument 0 dim 1: expected 2*M + 1 = 7 (M = 3 from argument 0 dim 0), got 8",
        ),
        ("2*M", ("M",), (4,), (5,), "argument 0 dim 0: expected 2*M for a whole M, got 5"),
        (
            "M floordiv N, N, M", ("M", "N"), (2, 3, 7), (0, 0, 7),
            "argument 0 dim 0: M floordiv N: division by zero: the divisor N is 0 "
            "(M = 7 from argument 0 dim 2, N = 0 from argument 0 dim 1)",
        ),
        (
            "M floordiv (N - 3), N, M", ("M", "N"), (7, 4, 7), (0, 3, 7),
            "argument 0 dim 0: M floordiv (N - 3): division by zero: the divisor N - 3 is 0 "
            "(M = 7 from argument 0 dim 2, N = 3 from argument 0 dim 1)",
        ),
        (
            "M - 5, M", ("M",), (0, 5), (0, 4),
            "argument 0 dim 0: expected M - 5 = -1 (M = 4 from argument 0 dim 1), got 0",
        ),
        (
            "B, B*S", ("B", "S"), (2, 6), (0, 0),
            "argument 0 dim 1: B*S does not determine S (B = 0 from argument 0 dim 0), got 0",
        ),
    ],
)  # fmt: skip
def test_a_call_is_refused_in_one_line_with_values_and_where_they_came_from(
    target: str, shape: str, symbols: tuple[str, ...], good: tuple[int, ...], bad: tuple[int, ...], message: str
):
    declarations = "".join(f"sym.symbol @{each}\n" for each in symbols)
    kernel = compile_module(parse_module(declarations + map_program(shape), "p.mlir", make_context()), target)
    np.testing.assert_array_equal(kernel(ones(*good)), ones(*good))
    with pytest.raises(TilewrightError) as caught:
        kernel(ones(*bad))
    assert str(caught.value) == f"error: {message}"
    np.testing.assert_array_equal(kernel(ones(*good)), ones(*good))


@pytest.mark.parametrize("target", ["sim", "reference"])
def test_a_divisor_in_a_requirement_that_is_0_in_a_call(target: str):
    text = "sym.symbol @M\nsym.symbol @N\n" + with_statement("M, N", "sym.require M mod N == 0")
    kernel = compile_module(parse_module(text, "p.mlir", make_context()), target)
    assert kernel(ones(6, 3)).shape == (6, 3)
    with pytest.raises(TilewrightError, match="division by zero: the divisor N is 0") as caught:
        kernel(ones(6, 0))
    assert "\n" not in str(caught.value)


def test_symbols_in_python():
    with pytest.raises(TilewrightError, match="symbols: expected distinct names, got 'M N M'"):
        tw.symbols("M N M")
    (M,), (again,) = tw.symbols("M", min=2), tw.symbols("M", min=5)
    with pytest.raises(TilewrightError, match=r"\bM\b") as caught:
        tw.build_module(tw.placeholder((M, 1)) + tw.placeholder((1, again)))
    assert "\n" not in str(caught.value)
    with pytest.raises(TilewrightError, match="division by zero"):
        _ = M // 0
    with pytest.raises(TilewrightError, match=r"expected a size of at least 0 at dim 1, got -2"):
        tw.placeholder((M, -2))


@pytest.mark.parametrize("target", ["sim"])
def test_a_result_of_more_elements_than_can_be_is_refused_with_its_sizes(target: str):
    """2^31 x 2^31 from two tensors of one element each, stretched by strides of 0."""
    M, N = tw.symbols("M N")
    kernel = tw.compile(tw.placeholder((M, 1)) + tw.placeholder((1, N)), target=target)
    side = 1 << 31
    column, row = np.broadcast_to(ones(1, 1), (side, 1)), np.broadcast_to(ones(1, 1), (1, side))
    with pytest.raises(TilewrightError) as caught:
        kernel(column, row)
    assert f"M = {side} from argument 0 dim 0, N = {side} from argument 1 dim 1" in str(caught.value)
    assert "\n" not in str(caught.value)
