"""Shapes of operands and results: sizes as expressions, equality asked of the module's facts, NumPy broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    Float16Type,
    Float32Type,
    IndexType,
    ModuleOp,
    TensorType,
    i1,
    i32,
)
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym import DimsAttr, Expr, Relation, dims_of, symbolic_tensor


def is_tensor(type_: Attribute) -> TypeGuard[TensorType[Any]]:
    """Whether values of this type are tensors, not scalars by value."""
    return isinstance(type_, TensorType)


def as_tensor(type_: Attribute) -> TensorType[Any]:
    """`type_` as a ranked tensor type, or an error that shows it."""
    if not is_tensor(type_):
        raise TilewrightError(f"expected a ranked tensor type, got {type_}")
    return type_


def scalar_type(type_: Attribute) -> Attribute:
    """What a body gets for an operand of this type: the element of a tensor, or the scalar itself."""
    return type_.element_type if is_tensor(type_) else type_


def shape_of(type_: Attribute) -> tuple[Expr, ...]:
    """The sizes of a tensor type; TilewrightError for a `?` that has no expression yet."""
    return dims_of(type_)


def partial_shape(type_: Attribute) -> tuple[Expr | None, ...]:
    """The sizes of a tensor type, None for a `?` that has no expression yet (before infer-shapes)."""
    tensor_type = as_tensor(type_)
    if isinstance(tensor_type.encoding, DimsAttr):
        return tensor_type.encoding.data
    return tuple(None if size == DYNAMIC_INDEX else Expr.const(size) for size in tensor_type.get_shape())


def tensor(sizes: Sequence[Expr], element_type: Attribute) -> TensorType[Any]:
    """The tensor type of these sizes, with `#sym.dims`."""
    return symbolic_tensor(element_type, sizes)


def is_unit(size: Expr | None) -> bool:
    """Whether a size is the static 1, the only one that broadcasts."""
    return size is not None and size.constant == 1


def check_element_type(type_: Attribute) -> None:
    """VerifyException unless the tensor's elements (or the scalar) have a type that `lin` computes with."""
    scalar = scalar_type(type_)
    if isinstance(scalar, Float32Type | Float16Type | BFloat16Type | IndexType):
        return
    if scalar in (i1, i32):
        return
    raise VerifyException(f"expected elements of type f32, f16, bf16, i32, i1 or index, got {scalar}")


def equal_dims(op: Operation, left: Expr | None, right: Expr | None) -> bool:
    """Whether two sizes are one: canonically, or by what the module around `op` states. An unknown size fits any."""
    if left is None or right is None or left is right:
        return True
    if left.constant is not None and right.constant is not None:
        return False
    module = op
    while (parent := module.parent_op()) is not None:
        module = parent
    if not isinstance(module, ModuleOp):
        return False
    return _proved_equal(module, left, right)


def _proved_equal(module: ModuleOp, left: Expr, right: Expr) -> bool:
    # The proof engine loads on first need: most programs are equal canonically.
    from tilewright.dialects.sym import Answer, module_facts

    return module_facts(module).prove(Relation(left, "==", right)) is Answer.PROVED


def broadcast(op: Operation, shapes: Sequence[Sequence[Expr]]) -> tuple[Expr, ...]:
    """The NumPy broadcast of shapes: aligned at the right, a static 1 stretches, other sizes must be equal.

    Where sizes are equal by facts alone, a constant wins, else the first operand's form. TilewrightError names the
    dims that do not fit.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Expr] = []
    for axis in range(-rank, 0):
        size = Expr.const(1)
        for shape in shapes:
            if -axis > len(shape):
                continue
            other = shape[axis]
            if is_unit(size):
                size = other
            elif not is_unit(other) and not equal_dims(op, size, other):
                raise TilewrightError(
                    f"{op.name}: expected equal sizes at dim {rank + axis} of the broadcast, got {size} and {other}"
                )
            elif other.constant is not None and not is_unit(other):
                size = other
        result.append(size)
    return tuple(result)
