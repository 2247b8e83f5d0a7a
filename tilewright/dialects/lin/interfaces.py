"""What passes and executors ask of a `lin` op: the types of its results, and what it decomposes to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.shapes import equal_dims, is_tensor, partial_shape


class InferShapes(Operation, ABC):
    """An op whose result shapes follow from its operand types."""

    @abstractmethod
    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType[Any]]:
        """The type of each result, with `#sym.dims`; element types are those that the op already states.

        TilewrightError when ranks, sizes or element types do not fit the op. Equality of sizes is asked of the facts
        of the module around the op.
        """


class Decomposable(InferShapes, ABC):
    """A named op: it means what its decomposition says."""

    @abstractmethod
    def decomposition(self, builder: Builder) -> list[SSAValue]:
        """Build the meaning of this op from `lin.generic` and other named ops; one value for each result."""


def verify_result_types(op: InferShapes) -> None:
    """Check the stated result types against the inferred ones; sizes may differ in form where they are provably equal.

    A `?` without `#sym.dims` is not known yet and fits any size.
    """
    operand_types = [operand.type for operand in op.operands]
    if any(size is None for t in operand_types if is_tensor(t) for size in partial_shape(t)):
        return
    try:
        inferred = op.infer_result_types(operand_types)
    except TilewrightError as error:
        raise VerifyException(error.message.removeprefix(f"{op.name}: ")) from None
    for result, expected in zip(op.results, inferred, strict=True):
        got = result.type
        sizes = partial_shape(got)
        wanted = partial_shape(expected)
        if (
            not is_tensor(got)
            or got.element_type != expected.element_type
            or len(sizes) != len(wanted)
            or not all(equal_dims(op, want, size) for want, size in zip(wanted, sizes, strict=True))
        ):
            raise VerifyException(f"expected result type {expected}, got {got}")
