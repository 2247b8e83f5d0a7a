"""Elementwise functions of the front end: each is one `lin.map`, `clamp` and `cast` an op of their own.

float16 and bfloat16 are computed in float32 and rounded once at the end of each function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt as _sqrt
from numbers import Integral, Real
from typing import Any, SupportsFloat, TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from tilewright.api.sizes import Size
from tilewright.api.tensor import (
    ELEMENT_TYPES,
    FLOATS,
    Operand,
    Tensor,
    canonical_dtype,
    check_same_dtype,
    spell_shape,
    tensor_type,
)
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.casts import accumulator_type, cast_scalar, constant
from tilewright.dialects.lin.clamp import ClampOp
from tilewright.dialects.lin.elementwise import CastOp, MapOp
from tilewright.dialects.source_text import one_line
from tilewright.dialects.sym import Expr

Body: TypeAlias = "Callable[[Scalars, Sequence[SSAValue]], SSAValue]"


class Scalars:
    """Builds the scalar body of one elementwise function: each method inserts an op and returns its result."""

    def __init__(self, builder: Builder, element_type: Attribute) -> None:
        self.builder = builder
        self.element_type = element_type
        """The type in which the function computes."""

    def __call__(self, op: Callable[..., Operation], *operands: SSAValue) -> SSAValue:
        """The result of `op` on operands of the same type."""
        return self.builder.insert(op(*operands)).results[0]

    def number(self, value: float) -> SSAValue:
        """A constant of the type in which the function computes."""
        return constant(self.builder, value, self.element_type)

    def compare(self, float_predicate: str, integer_predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """The comparison by the predicate of the operands' kind; an i1."""
        if a.type in _FLOAT_TYPES:
            return self.builder.insert(arith.CmpfOp(a, b, float_predicate)).result
        return self.builder.insert(arith.CmpiOp(a, b, integer_predicate)).result


_ONE = Expr.const(1)
_GREATEST_F32 = (2 - 2.0**-23) * 2.0**127
_FLOAT_TYPES = tuple(ELEMENT_TYPES[name] for name in FLOATS)


def broadcast_sizes(function: str, tensors: Sequence[Tensor]) -> tuple[Size, ...]:
    """The NumPy broadcast of shapes; TilewrightError names the dims that do not fit."""
    rank = max((t.rank for t in tensors), default=0)
    result: list[Size] = []
    for axis in range(-rank, 0):
        found = Size(_ONE)
        for t in tensors:
            if -axis > t.rank or t.sizes[axis] == 1:
                continue
            if found == 1:
                found = t.sizes[axis]
            elif found != t.sizes[axis]:
                shapes = " and ".join(spell_shape(x.sizes) for x in tensors)
                raise TilewrightError(
                    f"{function}: expected equal sizes at dim {axis} or 1, got {found} and {t.sizes[axis]} "
                    f"in shapes {shapes}"
                )
        result.append(found)
    return tuple(result)


def elementwise(
    function: str,
    operands: Sequence[Operand],
    body: Body,
    *,
    dtypes: Sequence[str] = (*FLOATS, "int32"),
    result_dtype: str | None = None,
) -> Tensor:
    """One `lin.map` over tensors and numbers; `body` gets one scalar for each operand, in the computing type.

    Tensors must have one dtype, out of `dtypes`; numbers take it. The result has it too, unless `result_dtype` says
    otherwise.
    """
    tensors = [x for x in operands if isinstance(x, Tensor)]
    if not tensors:
        raise TilewrightError(f"{function}: expected at least one tensor, got numbers only")
    dtype = check_same_dtype(function, tensors)
    if dtype not in dtypes:
        raise TilewrightError(f"{function}: expected a dtype of {', '.join(dtypes)}, got {dtype}")
    for x in operands:
        check_number(function, x, dtype)
    return map_tensors(function, operands, [dtype] * len(operands), body, result_dtype or dtype)


def map_tensors(
    function: str, operands: Sequence[Operand], dtypes: Sequence[str], body: Body, result_dtype: str
) -> Tensor:
    """Like `elementwise`, with a dtype for each operand (a number takes the one at its place), already checked."""
    tensors = tuple(x for x in operands if isinstance(x, Tensor))
    sizes = broadcast_sizes(function, tensors)
    result_type = tensor_type(sizes, result_dtype)
    target = ELEMENT_TYPES[result_dtype]

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        def scalars(inner: Builder, args: tuple[BlockArgument, ...]) -> SSAValue:
            remaining = iter(args)
            given: list[SSAValue] = []
            for operand, dtype in zip(operands, dtypes, strict=True):
                computing = accumulator_type(ELEMENT_TYPES[dtype])
                if isinstance(operand, Tensor):
                    given.append(cast_scalar(inner, next(remaining), computing))
                else:
                    given.append(constant(inner, _number(operand), computing))
            computing = accumulator_type(ELEMENT_TYPES[dtypes[-1]])
            return cast_scalar(inner, body(Scalars(inner, computing), given), target)

        return builder.insert(MapOp.build_from(values, result_type, scalars)).result

    return Tensor(sizes, result_dtype, tensors, emit, function, takes_scalars=True)


def check_number(function: str, value: Any, dtype: str) -> None:
    """TilewrightError unless `value` is a tensor, or a number that the dtype holds."""
    if isinstance(value, Tensor):
        return
    truth = isinstance(value, bool)
    if dtype == "bool" or truth:
        fits = truth and dtype == "bool"
    elif dtype in FLOATS:
        fits = isinstance(value, Real)
    else:
        fits = isinstance(value, Integral) and -(2**31) <= int(value) < 2**31
    if not fits:
        raise TilewrightError(
            f"{function}: expected a tensor or a number that {dtype} holds, got {one_line(repr(value))}"
        )


def _number(value: SupportsFloat) -> float:
    """A checked number, integers exactly."""
    return int(value) if isinstance(value, Integral) else float(value)


def _finite_f32(function: str, value: Any) -> float:
    """A number in the range of float32, NaN and infinities apart; TilewrightError for anything else."""
    if not isinstance(value, bool) and isinstance(value, Real) and -_GREATEST_F32 <= _number(value) <= _GREATEST_F32:
        return float(_number(value))
    raise TilewrightError(f"{function}: expected a finite number that float32 holds, got {value!r}")


def _kind(float_op: type[Operation], integer_op: type[Operation]) -> Body:
    """A body of one op, by the kind of its operands."""
    return lambda s, args: s(float_op if args[0].type in _FLOAT_TYPES else integer_op, *args)


def _one(op: type[Operation]) -> Body:
    return lambda s, args: s(op, *args)


def add(a: Operand, b: Operand) -> Tensor:
    """a + b; int32 wraps."""
    return elementwise("add", [a, b], _kind(arith.AddfOp, arith.AddiOp))


def sub(a: Operand, b: Operand) -> Tensor:
    """a - b; int32 wraps."""
    return elementwise("sub", [a, b], _kind(arith.SubfOp, arith.SubiOp))


def mul(a: Operand, b: Operand) -> Tensor:
    """a * b; int32 wraps."""
    return elementwise("mul", [a, b], _kind(arith.MulfOp, arith.MuliOp))


def div(a: Operand, b: Operand) -> Tensor:
    """a / b for floats."""
    return elementwise("div", [a, b], _one(arith.DivfOp), dtypes=FLOATS)


def maximum(a: Operand, b: Operand) -> Tensor:
    """The greater of a and b; NaN where either is."""
    return elementwise("maximum", [a, b], _kind(arith.MaximumfOp, arith.MaxSIOp))


def minimum(a: Operand, b: Operand) -> Tensor:
    """The lesser of a and b; NaN where either is."""
    return elementwise("minimum", [a, b], _kind(arith.MinimumfOp, arith.MinSIOp))


def exp(x: Tensor) -> Tensor:
    """e to the power of x."""
    return elementwise("exp", [x], _one(math.ExpOp), dtypes=FLOATS)


def log(x: Tensor) -> Tensor:
    """The natural logarithm."""
    return elementwise("log", [x], _one(math.LogOp), dtypes=FLOATS)


def sqrt(x: Tensor) -> Tensor:
    """The square root."""
    return elementwise("sqrt", [x], _one(math.SqrtOp), dtypes=FLOATS)


def rsqrt(x: Tensor) -> Tensor:
    """1 / sqrt(x)."""
    return elementwise("rsqrt", [x], _one(math.RsqrtOp), dtypes=FLOATS)


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return elementwise("tanh", [x], _one(math.TanhOp), dtypes=FLOATS)


def erf(x: Tensor) -> Tensor:
    """The error function."""
    return elementwise("erf", [x], _one(math.ErfOp), dtypes=FLOATS)


def abs(x: Tensor) -> Tensor:
    """|x|; the least int32 stays as it is."""
    return elementwise("abs", [x], _kind(math.AbsFOp, math.AbsIOp))


def neg(x: Tensor) -> Tensor:
    """-x; the least int32 stays as it is."""

    def body(s: Scalars, args: Sequence[SSAValue]) -> SSAValue:
        if args[0].type in _FLOAT_TYPES:
            return s(arith.NegfOp, args[0])
        return s(arith.SubiOp, s.number(0), args[0])

    return elementwise("neg", [x], body)


def relu(x: Tensor) -> Tensor:
    """max(x, 0); NaN stays NaN."""
    return elementwise("relu", [x, 0], _kind(arith.MaximumfOp, arith.MaxSIOp))


def clamp(x: Tensor, low: float, high: float) -> Tensor:
    """min(max(x, low), high) for finite numbers low <= high; NaN stays NaN."""
    if x.dtype not in FLOATS:
        raise TilewrightError(f"clamp: expected a dtype of {', '.join(FLOATS)}, got {x.dtype}")
    least, greatest = _finite_f32("clamp", low), _finite_f32("clamp", high)
    if least > greatest:
        raise TilewrightError(f"clamp: expected low <= high, got {low} and {high}")

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        return builder.insert(ClampOp(values[0], least, greatest, x.type)).result

    return Tensor(x.sizes, x.dtype, (x,), emit, "clamp")


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return elementwise("sigmoid", [x], lambda s, args: _sigmoid(s, args[0]), dtypes=FLOATS)


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x)."""
    return elementwise("silu", [x], lambda s, args: s(arith.MulfOp, args[0], _sigmoid(s, args[0])), dtypes=FLOATS)


def gelu(x: Tensor) -> Tensor:
    """h * erf(x / sqrt(2)) + h for h = x / 2: the exact form, not the tanh approximation."""

    def body(s: Scalars, args: Sequence[SSAValue]) -> SSAValue:
        inner = s(math.ErfOp, s(arith.MulfOp, args[0], s.number(_sqrt(0.5))))
        half = s(arith.MulfOp, args[0], s.number(0.5))
        return s(math.FmaOp, half, inner, half)

    return elementwise("gelu", [x], body, dtypes=FLOATS)


def _sigmoid(s: Scalars, x: SSAValue) -> SSAValue:
    power = s(math.ExpOp, s(arith.NegfOp, x))
    return s(arith.DivfOp, s.number(1.0), s(arith.AddfOp, power, s.number(1.0)))


def _comparison(function: str, a: Operand, b: Operand, float_predicate: str, integer_predicate: str) -> Tensor:
    def body(s: Scalars, args: Sequence[SSAValue]) -> SSAValue:
        return s.compare(float_predicate, integer_predicate, args[0], args[1])

    return elementwise(function, [a, b], body, result_dtype="bool")


def less(a: Operand, b: Operand) -> Tensor:
    """a < b as bool; false where either is NaN."""
    return _comparison("less", a, b, "olt", "slt")


def less_equal(a: Operand, b: Operand) -> Tensor:
    """a <= b as bool; false where either is NaN."""
    return _comparison("less_equal", a, b, "ole", "sle")


def greater(a: Operand, b: Operand) -> Tensor:
    """a > b as bool; false where either is NaN."""
    return _comparison("greater", a, b, "ogt", "sgt")


def greater_equal(a: Operand, b: Operand) -> Tensor:
    """a >= b as bool; false where either is NaN."""
    return _comparison("greater_equal", a, b, "oge", "sge")


def equal(a: Operand, b: Operand) -> Tensor:
    """a == b as bool; false where either is NaN."""
    return _comparison("equal", a, b, "oeq", "eq")


def not_equal(a: Operand, b: Operand) -> Tensor:
    """a != b as bool; true where either is NaN."""
    return _comparison("not_equal", a, b, "une", "ne")


def logical_and(a: Operand, b: Operand) -> Tensor:
    """Both, of bool tensors."""
    return elementwise("logical_and", [a, b], _one(arith.AndIOp), dtypes=("bool",))


def logical_or(a: Operand, b: Operand) -> Tensor:
    """Either, of bool tensors."""
    return elementwise("logical_or", [a, b], _one(arith.OrIOp), dtypes=("bool",))


def logical_not(x: Tensor) -> Tensor:
    """Not, of a bool tensor."""
    return elementwise("logical_not", [x, True], _one(arith.XOrIOp), dtypes=("bool",))


def where(condition: Tensor, a: Operand, b: Operand) -> Tensor:
    """a where the bool `condition` holds, else b; one of a and b may be a number."""
    if condition.dtype != "bool":
        raise TilewrightError(f"where: expected a bool condition, got {condition.dtype}")
    tensors = [x for x in (a, b) if isinstance(x, Tensor)]
    if not tensors:
        raise TilewrightError("where: expected a tensor among the choices, got numbers only")
    dtype = check_same_dtype("where", tensors)
    check_number("where", a, dtype)
    check_number("where", b, dtype)

    def body(s: Scalars, args: Sequence[SSAValue]) -> SSAValue:
        return s.builder.insert(arith.SelectOp(args[0], args[1], args[2])).result

    return map_tensors("where", [condition, a, b], ["bool", dtype, dtype], body, dtype)


def cast(x: Tensor, dtype: object) -> Tensor:
    """x in another dtype: round to nearest even; float to int32 truncates; a number is true when it is not zero."""
    target = canonical_dtype(dtype)
    if target == x.dtype:
        return x

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        return builder.insert(CastOp(values[0], ELEMENT_TYPES[target])).result

    return Tensor(x.sizes, target, (x,), emit, "cast")
