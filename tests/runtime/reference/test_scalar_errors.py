"""Errors through scalar ops: a typed execution on perturbed operands stays within the bound, op by op and in chains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import bf16, f16, f32, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.runtime.reference.bounded import Bounded, distance
from tilewright.runtime.reference.scalar_errors import ERRORS, evaluate_bounded
from tilewright.runtime.scalar_ops import SCALAR_OPS, evaluate, quiet

Array = np.ndarray[Any, Any]

UNARY = [
    arith.NegfOp, math.AbsFOp, math.SqrtOp, math.FloorOp, math.CeilOp, math.RoundEvenOp, math.ExpOp, math.Exp2Op,
    math.LogOp, math.Log2Op, math.RsqrtOp, math.TanhOp, math.ErfOp, math.SinOp, math.CosOp,
]  # fmt: skip
BINARY = [
    arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp,
    arith.MinnumfOp, math.PowFOp,
]  # fmt: skip


def operand(element_type: Attribute) -> SSAValue:
    return Block(arg_types=[element_type]).args[0]


def perturbed(rng: np.random.Generator, count: int) -> tuple[Bounded, Array]:
    """Values of many magnitudes with bounds from 0 up to a tenth of them, and float32 values within those."""
    value = (rng.standard_normal(count) * 10.0 ** rng.integers(-3, 3, count)).astype(np.float32).astype(np.float64)
    value[rng.random(count) < 0.1] = rng.choice([0.0, 1.0, np.inf, -np.inf, 90.0, -90.0, float(np.float32(3e38))])
    spread = np.where(np.isfinite(value), np.abs(value), 0.0) * 10.0 ** rng.uniform(-7, -1, count)
    # Twice the spread that is used leaves room for the rounding of the perturbed value to float32.
    error = np.where(rng.random(count) < 0.5, 0.0, 2.0 * spread + 1e-40)
    shifted = value + np.where(error > 0, rng.uniform(-1, 1, count) * spread, 0.0)
    with quiet():
        return Bounded(value, error), shifted.astype(np.float32)


def assert_bounded(got: Array, reference: Bounded) -> None:
    with quiet():
        off = distance(got.astype(np.float64), np.asarray(reference.value, np.float64))
    allowed = np.broadcast_to(reference.error, off.shape)
    worst = int(np.argmax(np.where(off <= allowed, 0.0, 1.0)))
    assert np.all(off <= allowed), (got[worst], reference.value[worst], allowed[worst])


def both(op: Operation, args: list[tuple[Bounded, Array]]) -> tuple[Bounded, Array]:
    with quiet():
        return evaluate_bounded(op, [a for a, _ in args]), evaluate(op, [x for _, x in args], "typed")


def test_every_scalar_op_has_an_error() -> None:
    assert ERRORS.keys() == SCALAR_OPS.keys()


@pytest.mark.parametrize("op_type", [*UNARY, *BINARY, math.FmaOp])
@given(seed=st.integers(0, 2**32 - 1))
def test_one_op_on_perturbed_operands(op_type: Callable[..., Operation], seed: int) -> None:
    rng = np.random.default_rng(seed)
    arity = 1 if op_type in UNARY else 2 if op_type in BINARY else 3
    args = [perturbed(rng, 200) for _ in range(arity)]
    reference, got = both(op_type(*(operand(f32) for _ in args)), args)
    assert_bounded(got, reference)


def test_bounds_stay_in_proportion() -> None:
    """A bound of inf would pass every other test: smooth ops away from their edges must keep it small."""
    value = np.linspace(0.5, 3, 50)
    x = Bounded(value, np.full(50, 1e-5))
    for op_type in [*UNARY, *BINARY]:
        if op_type in (math.FloorOp, math.CeilOp, math.RoundEvenOp):
            continue
        op = op_type(*(operand(f32) for _ in range(1 if op_type in UNARY else 2)))
        with quiet():
            reference = evaluate_bounded(op, [x] * len(op.operands))
        assert np.all(reference.error <= 1e-5 * 30 * np.maximum(1.0, np.abs(reference.value))), op.name


@given(seed=st.integers(0, 2**32 - 1), length=st.integers(1, 6))
def test_chains_of_ops(seed: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    values = [perturbed(rng, 60) for _ in range(3)]
    for _ in range(length):
        kind = int(rng.integers(4))
        picked = [values[int(rng.integers(len(values)))] for _ in range(3)]
        if kind == 0:
            op_type = UNARY[int(rng.integers(len(UNARY)))]
            values.append(both(op_type(operand(f32)), picked[:1]))
        elif kind == 1:
            op_type = BINARY[int(rng.integers(len(BINARY)))]
            values.append(both(op_type(operand(f32), operand(f32)), picked[:2]))
        elif kind == 2:
            condition = both(arith.CmpfOp(operand(f32), operand(f32), "olt"), picked[:2])
            chosen = arith.SelectOp(operand(f32), operand(f32), operand(f32))
            values.append(both(chosen, [condition, picked[1], picked[2]]))
        else:
            narrow = both(arith.TruncFOp(operand(f32), bf16 if rng.random() < 0.5 else f16), picked[:1])
            values.append(both(arith.ExtFOp(operand(bf16), f32), [narrow]))
        reference, got = values[-1]
        assert_bounded(got, reference)


@given(seed=st.integers(0, 2**32 - 1))
def test_casts_to_integers_and_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = perturbed(rng, 200)
    whole = both(arith.FPToSIOp(operand(f32), i32), [x])
    assert_bounded(whole[1], whole[0])
    back = both(arith.SIToFPOp(operand(i32), f32), [whole])
    assert_bounded(back[1], back[0])
