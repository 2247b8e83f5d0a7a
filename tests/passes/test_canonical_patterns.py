"""Canonicalization: index expressions keep their value, floats their bits, and what has effects stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import SSAValue

from tests.passes.support import ops_named, parse, run
from tilewright.dialects.sym import ApplyOp


def value_of(module: ModuleOp, symbols: dict[str, int], arguments: list[int]) -> list[int]:
    """What the only function returns: its `sym.apply` and constant ops evaluated in order."""
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    values: dict[SSAValue, int] = dict(zip(function.body.block.args, arguments, strict=True))
    for op in function.body.block.ops:
        if isinstance(op, ApplyOp):
            names = {name: values[value] for name, value in op.where.items()}
            values[op.result] = op.expr.data.evaluate({**symbols, **names})
        elif isinstance(op, arith.ConstantOp):
            assert isinstance(op.value, IntegerAttr)
            values[op.result] = op.value.value.data
        elif op.name == "func.return":
            return [values[operand] for operand in op.operands]
    raise AssertionError("no return")


@st.composite
def index_programs(draw: st.DrawFn) -> str:
    """Chains of `sym.apply` that use the same few names for different values."""
    values = ["%i", "%j", "%c"]
    lines = ["  %c = arith.constant 3 : index"]
    for n in range(draw(st.integers(1, 6))):
        names = draw(st.lists(st.sampled_from(["i", "j", "x", "y"]), min_size=1, max_size=3, unique=True))
        bound = {name: draw(st.sampled_from(values)) for name in names}
        terms = [draw(st.sampled_from([*names, "M", "N", "2"])) for _ in range(draw(st.integers(1, 3)))]
        shapes = ["{} + 3*{}", "{} * {}", "{} floordiv 2 - {}", "min({}, {})", "{} mod 4 + {}"]
        text = terms[0]
        for term in terms[1:]:
            text = "(" + draw(st.sampled_from(shapes)).format(f"({text})", term) + ")"
        where = ", ".join(f"{name} = {value}" for name, value in bound.items())
        lines.append(f"  %v{n} = sym.apply {text} where {where}")
        values.append(f"%v{n}")
    returned = ", ".join(values[3:])
    types = ", ".join("index" for _ in values[3:])
    body = "\n".join(lines)
    return (
        "sym.symbol @M\nsym.symbol @N\n"
        f"func.func @f(%i: index, %j: index) -> ({types}) {{\n{body}\n  func.return {returned} : {types}\n}}\n"
    )


@given(index_programs(), st.lists(st.integers(-3, 9), min_size=4, max_size=4))
def test_index_expressions_keep_their_value(text: str, numbers: list[int]) -> None:
    m, n, i, j = numbers
    before = parse(text)
    after = run(before.clone(), "canonicalize", "verify-dims")
    assert value_of(after, {"M": m, "N": n}, [i, j]) == value_of(before, {"M": m, "N": n}, [i, j])
    for op in ops_named(after, "sym.apply"):
        for operand in op.operands:
            assert not isinstance(operand.owner, ApplyOp), "an expression of an expression is one"


def test_names_that_mean_two_things_are_told_apart() -> None:
    module = run(
        parse(
            "func.func @f(%a: index, %b: index) -> index {\n"
            "  %p = sym.apply 2*i where i = %a\n  %q = sym.apply 3*i where i = %b\n"
            "  %r = sym.apply i + j where i = %p, j = %q\n  func.return %r : index\n}\n"
        ),
        "canonicalize",
    )
    assert value_of(module, {}, [10, 1]) == [23]
    assert len(ops_named(module, "sym.apply")) == 1


def test_adding_zero_to_a_float_stays_since_minus_zero_is_not_zero() -> None:
    module = run(
        parse(
            "func.func @f(%a: f32) -> f32 {\n  %z = arith.constant 0.0 : f32\n"
            "  %r = arith.addf %a, %z : f32\n  func.return %r : f32\n}\n"
        ),
        "canonicalize",
    )
    assert len(ops_named(module, "arith.addf")) == 1


def test_a_float_times_one_is_itself() -> None:
    module = run(
        parse(
            "func.func @f(%a: f32) -> f32 {\n  %z = arith.constant 1.0 : f32\n"
            "  %r = arith.mulf %z, %a : f32\n  %s = arith.divf %r, %z : f32\n  func.return %s : f32\n}\n"
        ),
        "canonicalize",
    )
    assert [op.name for op in module.walk()] == ["builtin.module", "func.func", "func.return"]


LOOP = """func.func @f(%x: i32, %lo: i32, %hi: i32) -> i32 {{
  %a = arith.constant {lower} : i32
  %b = arith.constant {upper} : i32
  %s = arith.constant {step} : i32
  %r = scf.for %i = %a to %b step %s iter_args(%acc = %x) -> (i32) : i32 {{
    %n = arith.muli %acc, %i : i32
    scf.yield %n : i32
  }}
  func.return %r : i32
}}
"""


def test_a_loop_of_no_iteration_is_its_initial_value() -> None:
    module = run(parse(LOOP.format(lower=4, upper=4, step=1)), "canonicalize")
    assert [op.name for op in module.walk()] == ["builtin.module", "func.func", "func.return"]


def test_a_loop_of_one_iteration_is_its_body() -> None:
    module = run(parse(LOOP.format(lower=4, upper=7, step=3)), "canonicalize")
    names = [op.name for op in module.walk()]
    assert names == ["builtin.module", "func.func", "arith.constant", "arith.muli", "func.return"]


def test_a_loop_of_two_iterations_stays() -> None:
    module = run(parse(LOOP.format(lower=4, upper=8, step=3)), "canonicalize")
    assert len(ops_named(module, "scf.for")) == 1


def test_an_op_without_declared_effects_stays() -> None:
    module = parse("sym.symbol @M\nsym.require M >= 4\nfunc.func private @f()\n")
    before = str(module)
    assert str(run(module, "canonicalize", "cse")) == before


UNREAD = """
sym.symbol @M
func.func @f(%x: tensor<?xf32, #sym.dims<M>>, %s: f32) -> tensor<?xf32, #sym.dims<M>> {
  %r = lin.map ins(%s, %x : f32, tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {
  ^bb0(%a: f32, %b: f32):
    %n = arith.negf %b : f32
    lin.yield %n : f32
  }
  func.return %r : tensor<?xf32, #sym.dims<M>>
}
"""


def test_a_scalar_that_a_map_does_not_read_goes() -> None:
    module = run(parse(UNREAD), "canonicalize")
    (made,) = ops_named(module, "lin.map")
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    assert list(made.operands) == [function.body.block.args[0]]
    (negation,) = ops_named(module, "arith.negf")
    assert list(negation.operands) == list(made.regions[0].block.args)
