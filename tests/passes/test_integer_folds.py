"""Integer folding against NumPy's two's complement, and the identities against the folds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from tests.passes.support import parse, run
from tilewright.passes.integer_folds import (
    ASSOCIATIVE,
    BINARY,
    COMMUTATIVE,
    COMPARISONS,
    EQUAL_OPERANDS,
    RIGHT_ABSORBING,
    RIGHT_UNIT,
    TRUE_ON_EQUAL,
    unsigned,
    wrap,
)

WIDTHS = {32: (np.int32, np.uint32), 64: (np.int64, np.uint64)}


def integers(width: int) -> st.SearchStrategy[int]:
    """Signed integers of a width, those at the edges often."""
    edge = st.sampled_from([0, 1, -1, 2, 7, -8, (1 << (width - 1)) - 1, -(1 << (width - 1))])
    return edge | st.integers(-(1 << (width - 1)), (1 << (width - 1)) - 1)


PAIRS = st.sampled_from([32, 64]).flatmap(lambda w: st.tuples(st.just(w), integers(w), integers(w)))

NUMPY_SIGNED = {
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.MinSIOp: np.minimum,
    arith.MaxSIOp: np.maximum,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.FloorDivSIOp: np.floor_divide,
    arith.RemSIOp: np.fmod,
}
NUMPY_UNSIGNED = {
    arith.DivUIOp: np.floor_divide,
    arith.RemUIOp: np.fmod,
    arith.MinUIOp: np.minimum,
    arith.MaxUIOp: np.maximum,
}
DIVISIONS = {arith.DivUIOp, arith.RemUIOp, arith.FloorDivSIOp, arith.RemSIOp, arith.DivSIOp, arith.CeilDivSIOp}


@pytest.mark.parametrize("op_class", [*NUMPY_SIGNED, *NUMPY_UNSIGNED], ids=lambda c: c.name)
@given(case=PAIRS)
def test_folds_agree_with_numpy(op_class: type[Operation], case: tuple[int, int, int]) -> None:
    width, left, right = case
    signed, unsigned_type = WIDTHS[width]
    folded = BINARY[op_class](left, right, width)
    if op_class in DIVISIONS and right == 0:
        assert folded is None
        return
    if op_class is arith.FloorDivSIOp and right == -1 and left == -(1 << (width - 1)):
        assert folded is None
        return
    assert folded is not None
    with np.errstate(all="ignore"):
        if op_class in NUMPY_SIGNED:
            expected = NUMPY_SIGNED[op_class](np.array(left, signed), np.array(right, signed))
        else:
            operands = (np.array(unsigned(v, width), unsigned_type) for v in (left, right))
            expected = NUMPY_UNSIGNED[op_class](*operands).astype(signed)
    assert wrap(folded, width) == int(expected)


@given(PAIRS)
def test_signed_division_is_quotient_and_remainder(case: tuple[int, int, int]) -> None:
    width, left, right = case
    quotient = BINARY[arith.DivSIOp](left, right, width)
    if right == 0 or (right == -1 and left == -(1 << (width - 1))):
        assert quotient is None
        return
    remainder = BINARY[arith.RemSIOp](left, right, width)
    assert quotient is not None
    assert remainder is not None
    # Rounds towards zero: the remainder has the sign of the dividend, and is less than the divisor.
    assert quotient * right + remainder == left
    assert abs(remainder) < abs(right)
    assert remainder == 0 or (remainder < 0) == (left < 0)


@given(PAIRS)
def test_ceiling_division_is_least_that_reaches(case: tuple[int, int, int]) -> None:
    width, left, right = case
    ceiling = BINARY[arith.CeilDivUIOp](left, right, width)
    if right == 0:
        assert ceiling is None
        return
    assert ceiling is not None
    a, b = unsigned(left, width), unsigned(right, width)
    assert ceiling * b >= a
    assert (ceiling - 1) * b < a


@given(PAIRS)
def test_signed_ceiling_division_is_least_that_reaches(case: tuple[int, int, int]) -> None:
    width, left, right = case
    ceiling = BINARY[arith.CeilDivSIOp](left, right, width)
    if right == 0 or (right == -1 and left == -(1 << (width - 1))):
        assert ceiling is None
        return
    assert ceiling is not None
    assert ceiling - 1 < Fraction(left, right) <= ceiling


@given(PAIRS)
def test_shifts_agree_with_numpy_or_have_no_value(case: tuple[int, int, int]) -> None:
    width, left, right = case
    signed, unsigned_type = WIDTHS[width]
    for op_class in (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp):
        folded = BINARY[op_class](left, right, width)
        if not 0 <= right < width:
            assert folded is None
            continue
        assert folded is not None
        amount = np.array(right, signed)
        if op_class is arith.ShLIOp:
            expected = np.left_shift(np.array(left, signed), amount)
        elif op_class is arith.ShRSIOp:
            expected = np.right_shift(np.array(left, signed), amount)
        else:
            bits = np.array(unsigned(left, width), unsigned_type)
            expected = np.right_shift(bits, amount.astype(unsigned_type)).astype(signed)
        assert wrap(folded, width) == int(expected)


@given(st.sampled_from([1, 32, 64]).flatmap(lambda w: st.tuples(st.just(w), integers(max(w, 4)))))
def test_units_absorbing_operands_and_equal_operands_are_true_of_the_folds(case: tuple[int, int]) -> None:
    width, any_value = case
    value = wrap(any_value, width)
    for op_class, unit in RIGHT_UNIT.items():
        right = wrap(unit, width)
        folded = BINARY[op_class](value, right, width)
        # In i1 the one is also -1: a signed division of -1 by it overflows, and stays undefined.
        if folded is not None and not (width == 1 and op_class in DIVISIONS):
            assert wrap(folded, width) == value, op_class.name
    for op_class, pairs in RIGHT_ABSORBING.items():
        for right, result in pairs.items():
            folded = BINARY[op_class](value, wrap(right, width), width)
            if folded is not None:
                assert wrap(folded, width) == wrap(result, width), op_class.name
    for op_class, result in EQUAL_OPERANDS.items():
        folded = BINARY[op_class](value, value, width)
        assert folded is not None
        assert wrap(folded, width) == (value if result is None else result), op_class.name


@given(PAIRS.flatmap(lambda case: st.tuples(st.just(case), integers(case[0]))))
def test_commutative_and_associative_ops_are(case: tuple[tuple[int, int, int], int]) -> None:
    (width, a, b), c = case
    for op_class in COMMUTATIVE:
        fold = BINARY[op_class]
        assert fold(a, b, width) == fold(b, a, width)

    def apply(op_class: type[Operation], left: int, right: int) -> int:
        result = BINARY[op_class](left, right, width)
        assert result is not None
        return wrap(result, width)

    for op_class in ASSOCIATIVE:
        assert apply(op_class, apply(op_class, a, b), c) == apply(op_class, a, apply(op_class, b, c)), op_class.name


@given(PAIRS)
def test_comparisons(case: tuple[int, int, int]) -> None:
    width, a, b = case
    ua, ub = unsigned(a, width), unsigned(b, width)
    expected = [a == b, a != b, a < b, a <= b, a > b, a >= b, ua < ub, ua <= ub, ua > ub, ua >= ub]
    assert [holds(a, b, width) for holds in COMPARISONS] == expected
    assert [holds(a, a, width) for holds in COMPARISONS] == [i in TRUE_ON_EQUAL for i in range(10)]


@given(
    st.lists(st.sampled_from(["addi", "muli", "subi", "andi", "ori", "xori", "minsi", "maxui", "shli"]), max_size=6),
    st.lists(integers(32), min_size=7, max_size=7),
)
def test_a_chain_of_constants_becomes_one(ops: list[str], values: list[int]) -> None:
    by_name = {c.name: c for c in BINARY}
    expected: int | None = values[0]
    lines = [f"  %v0 = arith.constant {values[0]} : i32"]
    for i, op in enumerate(ops):
        right = values[i + 1] if op != "shli" else unsigned(values[i + 1], 5)
        lines.append(f"  %c{i} = arith.constant {right} : i32")
        lines.append(f"  %v{i + 1} = arith.{op} %v{i}, %c{i} : i32")
        assert expected is not None
        folded = BINARY[by_name[f"arith.{op}"]](expected, right, 32)
        assert folded is not None
        expected = wrap(folded, 32)
    body = "\n".join(lines)
    module = run(parse(f"func.func @f() -> i32 {{\n{body}\n  func.return %v{len(ops)} : i32\n}}"), "canonicalize")
    (constant,) = [op for op in module.walk() if isinstance(op, arith.ConstantOp)]
    assert len(list(module.walk())) == 4
    assert isinstance(constant.value, IntegerAttr)
    assert constant.value.value.data == expected
