"""`arith` ops as C++. Integers wrap unless the op says `nsw`; floats round once, with no contraction.

Signed integers are `int` and `long long`; where C++ leaves the overflow of those undefined, the unsigned type computes.
`arith.fptosi` is a C++ cast: the GPU saturates and turns NaN into 0, the op promises nothing outside the range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerAttr
from xdsl.ir import Attribute, Operation

from tilewright.lowering.simt_to_cuda.types import integer_width, is_short_float
from tilewright.lowering.simt_to_cuda.writer import Write, Writer

_INTEGER_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_SIGNED_FROM, _UNSIGNED_FROM = 2, 6
_NARROW: dict[type[Attribute], str] = {Float16Type: "tw_f16", BFloat16Type: "tw_bf16"}


def widened(type_: Attribute, text: str) -> str:
    """A float operand as the type that it computes in: f32 for f16 and bf16."""
    return f"tw_float({text})" if is_short_float(type_) else text


def narrowed(type_: Attribute, text: str) -> str:
    """A result of the computing type as `type_`."""
    return f"{_NARROW[type(type_)]}({text})" if is_short_float(type_) else text


def signed(w: Writer, type_: Attribute, text: str) -> str:
    """An integer read as signed: the i1 true is -1."""
    return (
        f"(-{w.spelling.cast.format(type=w.spelling.integers[32], value=text)})" if integer_width(type_) == 1 else text
    )


def unsigned(w: Writer, type_: Attribute, text: str) -> str:
    """An integer read as unsigned."""
    return w.spelling.cast.format(type=w.unsigned_type(type_), value=text)


def _as_it_is(_w: Writer, _type: Attribute, text: str) -> str:
    return text


Read: TypeAlias = Callable[["Writer", Attribute, str], str]
"""How an operation reads an integer operand: as signed, as unsigned, as it is."""


def _float_binary(sign: str) -> Write:
    def write(w: Writer, op: Any) -> None:
        t = op.result.type
        w.result(op, narrowed(t, f"{widened(t, w.name(op.lhs))} {sign} {widened(t, w.name(op.rhs))}"))

    return write


def _float_call(function: str) -> Write:
    def write(w: Writer, op: Any) -> None:
        t = op.result.type
        w.result(op, narrowed(t, f"{function}({widened(t, w.name(op.lhs))}, {widened(t, w.name(op.rhs))})"))

    return write


def _wrapping(sign: str, of_bool: str) -> Write:
    """Addition and the like: plain where overflow is excluded, through the unsigned type where it wraps."""

    def write(w: Writer, op: Any) -> None:
        t, a, b = op.result.type, w.name(op.lhs), w.name(op.rhs)
        if integer_width(t) == 1:
            w.result(op, f"{a} {of_bool} {b}")
        elif arith.IntegerOverflowFlag.NSW in op.overflow_flags.data or (integer_width(t) or 64) < 32:
            w.result(op, w.cast_to(t, f"{a} {sign} {b}") if (integer_width(t) or 64) < 32 else f"{a} {sign} {b}")
        else:
            w.result(op, w.cast_to(t, f"{unsigned(w, t, a)} {sign} {unsigned(w, t, b)}"))

    return write


def _division(sign: str, function: str, read: Read) -> Write:
    """Quotient or remainder that rounds to zero: plain where the divisor is a constant that divides everything, else by
    a wrapper, a template to which both operands have one type."""

    def write(w: Writer, op: Any) -> None:
        t = op.result.type
        divisor = op.rhs.owner.value if isinstance(op.rhs.owner, arith.ConstantOp) else None
        if isinstance(divisor, IntegerAttr) and divisor.value.data > 0 and integer_width(t) != 1:
            w.result(op, w.cast_to(t, f"{read(w, t, w.name(op.lhs))} {sign} {read(w, t, w.name(op.rhs))}"))
            return
        kind = (
            w.spelling.integers[32]
            if (integer_width(t) or 64) < 32
            else w.unsigned_type(t)
            if read is unsigned
            else w.c_type(t)
        )
        w.result(op, w.cast_to(t, f"{function}<{kind}>({read(w, t, w.name(op.lhs))}, {read(w, t, w.name(op.rhs))})"))

    return write


def _signed_binary(sign: str) -> Write:
    def write(w: Writer, op: Any) -> None:
        t = op.result.type
        w.result(op, w.cast_to(t, f"{signed(w, t, w.name(op.lhs))} {sign} {signed(w, t, w.name(op.rhs))}"))

    return write


def _unsigned_binary(sign: str) -> Write:
    def write(w: Writer, op: Any) -> None:
        t = op.result.type
        w.result(op, w.cast_to(t, f"{unsigned(w, t, w.name(op.lhs))} {sign} {unsigned(w, t, w.name(op.rhs))}"))

    return write


def _bitwise(sign: str) -> Write:
    def write(w: Writer, op: Any) -> None:
        w.result(op, w.cast_to(op.result.type, f"{w.name(op.lhs)} {sign} {w.name(op.rhs)}"))

    return write


def _shift_left(w: Writer, op: arith.ShLIOp) -> None:
    t = op.result.type
    w.result(op, w.cast_to(t, f"{unsigned(w, t, w.name(op.lhs))} << {w.name(op.rhs)}"))


def _pick(sign: str, read: Read) -> Write:
    """The operand for which `lhs sign rhs` holds."""

    def write(w: Writer, op: Any) -> None:
        t, a, b = op.result.type, w.name(op.lhs), w.name(op.rhs)
        w.result(op, f"{read(w, t, a)} {sign} {read(w, t, b)} ? {a} : {b}")

    return write


def _rounded_division(function: str) -> Write:
    def write(w: Writer, op: Any) -> None:
        t = op.result.type
        wide = w.spelling.integers[64 if integer_width(t) == 64 else 32]
        w.result(
            op, w.cast_to(t, f"{function}<{wide}>({signed(w, t, w.name(op.lhs))}, {signed(w, t, w.name(op.rhs))})")
        )

    return write


def _ceil_division_unsigned(w: Writer, op: arith.CeilDivUIOp) -> None:
    t = op.result.type
    a, b = unsigned(w, t, w.name(op.lhs)), unsigned(w, t, w.name(op.rhs))
    kind = w.spelling.integers[32] if (integer_width(t) or 64) < 32 else w.unsigned_type(t)
    w.result(op, w.cast_to(t, f"tw_quotient<{kind}>({a}, {b}) + (tw_remainder<{kind}>({a}, {b}) != 0)"))


def _compare_integers(w: Writer, op: arith.CmpiOp) -> None:
    t, code = op.lhs.type, int(op.predicate.value.data)
    read = _as_it_is if code < _SIGNED_FROM else signed if code < _UNSIGNED_FROM else unsigned
    w.result(op, f"{read(w, t, w.name(op.lhs))} {_INTEGER_PREDICATES[code]} {read(w, t, w.name(op.rhs))}")


# In the order of the codes of `arith.cmpf`. C++ comparisons but != are false for a NaN.
_FLOAT_PREDICATES = (
    "false",
    "{a} == {b}",
    "{a} > {b}",
    "{a} >= {b}",
    "{a} < {b}",
    "{a} <= {b}",
    "{a} < {b} || {a} > {b}",
    "{a} == {a} && {b} == {b}",
    "!({a} < {b} || {a} > {b})",
    "!({a} <= {b})",
    "!({a} < {b})",
    "!({a} >= {b})",
    "!({a} > {b})",
    "{a} != {b}",
    "{a} != {a} || {b} != {b}",
    "true",
)


def _compare_floats(w: Writer, op: arith.CmpfOp) -> None:
    t = op.lhs.type
    text = _FLOAT_PREDICATES[int(op.predicate.value.data)]
    w.result(op, text.format(a=widened(t, w.name(op.lhs)), b=widened(t, w.name(op.rhs))))


def _select(w: Writer, op: arith.SelectOp) -> None:
    w.result(op, f"{w.name(op.cond)} ? {w.name(op.lhs)} : {w.name(op.rhs)}")


def _negate(w: Writer, op: arith.NegfOp) -> None:
    t = op.result.type
    w.result(op, narrowed(t, f"-{widened(t, w.name(op.operand))}"))


def _only_rounds(op: object) -> bool:
    """Whether an op rounds f32 to bf16 only for what reads the result as f32 again."""
    if not isinstance(op, arith.TruncFOp):
        return False
    users = [use.operation for use in op.result.uses]
    wide = all(isinstance(user, arith.ExtFOp) and isinstance(user.result.type, Float32Type) for user in users)
    return wide and isinstance(op.input.type, Float32Type) and isinstance(op.result.type, BFloat16Type)


def _convert_float(w: Writer, op: arith.ExtFOp | arith.TruncFOp) -> None:
    if _only_rounds(op.input.owner):
        w.names[op.result] = w.name(op.input)
        return
    if _only_rounds(op):
        w.line(f"const {w.c_type(op.input.type)} {w.bind(op.result)} = tw_round_bf16({w.name(op.input)});")
        return
    target, value = op.result.type, widened(op.input.type, w.name(op.input))
    w.result(op, narrowed(target, value) if is_short_float(target) else w.cast_to(target, value))


def _integer_to_float(w: Writer, op: arith.SIToFPOp | arith.UIToFPOp) -> None:
    source, target, value = op.input.type, op.result.type, w.name(op.input)
    if isinstance(op, arith.UIToFPOp):
        value = unsigned(w, source, value)
        wide = w.spelling.unsigned[64 if integer_width(source) == 64 else 32]
    else:
        value = signed(w, source, value)
        wide = w.spelling.integers[64 if integer_width(source) == 64 else 32]
    if is_short_float(target):
        # The overloads for 16-bit floats take 32 and 64 bits.
        w.result(op, narrowed(target, w.spelling.cast.format(type=wide, value=value)))
    else:
        w.result(op, w.cast_to(target, value))


def _float_to_integer(w: Writer, op: arith.FPToSIOp | arith.FPToUIOp) -> None:
    target = op.result.type
    value = widened(op.input.type, w.name(op.input))
    names = w.spelling.unsigned if isinstance(op, arith.FPToUIOp) else w.spelling.integers
    value = w.spelling.cast.format(type=names[64 if integer_width(target) == 64 else 32], value=value)
    w.result(op, f"({value} & 1) != 0" if integer_width(target) == 1 else w.cast_to(target, value))


def _extend_signed(w: Writer, op: arith.ExtSIOp) -> None:
    w.result(op, w.cast_to(op.result.type, signed(w, op.input.type, w.name(op.input))))


def _extend_unsigned(w: Writer, op: arith.ExtUIOp) -> None:
    w.result(op, w.cast_to(op.result.type, unsigned(w, op.input.type, w.name(op.input))))


def _truncate(w: Writer, op: arith.TruncIOp) -> None:
    t, value = op.result.type, w.name(op.input)
    w.result(op, f"({value} & 1) != 0" if integer_width(t) == 1 else w.cast_to(t, value))


def _bitcast(w: Writer, op: arith.BitcastOp) -> None:
    w.result(op, f"tw_bitcast<{w.c_type(op.result.type)}>({w.name(op.input)})")


def _constant(w: Writer, op: arith.ConstantOp) -> None:
    """A constant is written where it is used."""
    w.names[op.result] = w.literal(op.value)


ARITHMETIC: dict[type[Operation], Write] = {
    arith.ConstantOp: _constant,
    arith.AddiOp: _wrapping("+", "^"),
    arith.SubiOp: _wrapping("-", "^"),
    arith.MuliOp: _wrapping("*", "&"),
    arith.DivSIOp: _division("/", "tw_quotient", signed),
    arith.DivUIOp: _division("/", "tw_quotient", unsigned),
    arith.RemSIOp: _division("%", "tw_remainder", signed),
    arith.RemUIOp: _division("%", "tw_remainder", unsigned),
    arith.FloorDivSIOp: _rounded_division("tw_floordiv"),
    arith.CeilDivSIOp: _rounded_division("tw_ceildiv"),
    arith.CeilDivUIOp: _ceil_division_unsigned,
    arith.AndIOp: _bitwise("&"),
    arith.OrIOp: _bitwise("|"),
    arith.XOrIOp: _bitwise("^"),
    arith.ShLIOp: _shift_left,
    arith.ShRSIOp: _signed_binary(">>"),
    arith.ShRUIOp: _unsigned_binary(">>"),
    arith.MaxSIOp: _pick(">", signed),
    arith.MinSIOp: _pick("<", signed),
    arith.MaxUIOp: _pick(">", unsigned),
    arith.MinUIOp: _pick("<", unsigned),
    arith.CmpiOp: _compare_integers,
    arith.CmpfOp: _compare_floats,
    arith.SelectOp: _select,
    arith.AddfOp: _float_binary("+"),
    arith.SubfOp: _float_binary("-"),
    arith.MulfOp: _float_binary("*"),
    arith.DivfOp: _float_binary("/"),
    arith.NegfOp: _negate,
    arith.MaximumfOp: _float_call("tw_maximum"),
    arith.MinimumfOp: _float_call("tw_minimum"),
    arith.MaxnumfOp: _float_call("tw_maxnum"),
    arith.MinnumfOp: _float_call("tw_minnum"),
    arith.ExtFOp: _convert_float,
    arith.TruncFOp: _convert_float,
    arith.SIToFPOp: _integer_to_float,
    arith.UIToFPOp: _integer_to_float,
    arith.FPToSIOp: _float_to_integer,
    arith.FPToUIOp: _float_to_integer,
    arith.ExtSIOp: _extend_signed,
    arith.ExtUIOp: _extend_unsigned,
    arith.TruncIOp: _truncate,
    arith.BitcastOp: _bitcast,
}
"""Each op of `arith` that kernels may hold."""
