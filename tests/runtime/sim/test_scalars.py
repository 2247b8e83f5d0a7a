"""The bare NumPy functions that the simulator calls mean the same as the table of scalar ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.runtime.scalar_ops import evaluate
from tilewright.runtime.sim.scalars import direct

FLOATS = np.array([0.0, -0.0, 1.5, -2.25, 3e38, -3e38, 1e-40, np.inf, -np.inf, np.nan, 0.1, 7.0], np.float32)
INTEGERS = np.array([0, 1, -1, 7, -8, 2**31 - 1, -(2**31), 12345], np.int32)
CASES = [
    *[(f"arith.{name} %x, %y : f32", FLOATS) for name in ("addf", "subf", "mulf", "divf")],
    ("arith.negf %x : f32", FLOATS),
    ("math.fma %x, %y, %z : f32", FLOATS),
    ("arith.select %c, %x, %y : f32", FLOATS),
    *[
        (f"arith.{name} %x, %y : i32", INTEGERS)
        for name in ("addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxsi")
    ],
    *[(f"arith.cmpi {p}, %x, %y : i32", INTEGERS) for p in ("eq", "ne", "slt", "sle", "sgt", "sge")],
    *[(f"arith.{name} %x, %y : i1", np.array([False, True])) for name in ("andi", "ori", "xori")],
]


@pytest.mark.parametrize(
    "op_text", ["arith.cmpi ult, %x, %x : i32", "arith.addi %c, %c : i1", "arith.addf %h, %h : f16"]
)
def test_other_operand_types_go_through_the_table(sim: Any, op_text: str) -> None:
    body = "\n".join(
        f"%{n}r = simt.regs.alloc : !simt.regs<[], {element}>\n%{n} = simt.regs.load %{n}r"
        for n, element in (("x", "i32"), ("c", "i1"), ("h", "f16"))
    )
    op = sim.kernel(f"{body}\n%result = {op_text}").body.block.last_op
    assert op is not None
    assert direct(op) is None


@pytest.mark.parametrize(("op_text", "values"), CASES, ids=[c[0] for c in CASES])
def test_direct_functions_are_the_tables(sim: Any, op_text: str, values: np.ndarray[Any, Any]) -> None:
    element = op_text.rsplit(" ", 1)[1]
    body = "\n".join(
        [
            *(f"%{n}r = simt.regs.alloc : !simt.regs<[], {element}>\n%{n} = simt.regs.load %{n}r" for n in "xyz"),
            "%cr = simt.regs.alloc : !simt.regs<[], i1>\n%c = simt.regs.load %cr",
            f"%result = {op_text}",
        ]
    )
    op = sim.kernel(body).body.block.last_op
    assert op is not None
    fn = direct(op)
    assert fn is not None
    x, y, z = np.meshgrid(values, values, values, indexing="ij")
    by_name = {"x": x, "y": y, "z": z, "c": x == y}
    operands = [by_name[str(operand.name_hint)] for operand in op.operands]
    expected = evaluate(op, operands, "typed")
    with np.errstate(all="ignore"):
        got = fn(*operands)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
