"""Bytes of elements in memory."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType
from xdsl.ir import Attribute

from tilewright.diagnostics import TilewrightError


def bytes_of(element: Attribute) -> int:
    """Bytes of one element: i1 takes one, index eight."""
    if isinstance(element, AnyFloat):
        return element.size
    if isinstance(element, IndexType):
        return 8
    if isinstance(element, IntegerType):
        return max(1, cast("IntegerType[int]", element).width.data // 8)
    raise TilewrightError(f"expected a float or integer element type, got {element}")
