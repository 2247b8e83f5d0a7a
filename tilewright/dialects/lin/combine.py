"""How the values of a reduction are combined: sum, prod, max or min, and what each starts from."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import cast

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, StringAttr, i1
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException


class Combine(StrEnum):
    """The combination over the reduction dims. max and min propagate NaN."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"

    @staticmethod
    def of(attribute: StringAttr) -> Combine:
        """The member that the property `combine` names; VerifyException on any other word."""
        try:
            return Combine(attribute.data)
        except ValueError:
            expected = ", ".join(Combine)
            raise VerifyException(f"combine: expected one of {expected}, got '{attribute.data}'") from None


def identity_value(combine: Combine, element_type: Attribute) -> int | float:
    """The value that changes nothing: 0, 1, and for max and min the least and greatest value of `element_type`.

    Floats have -inf and +inf. i1 is unsigned (0 and 1), other integers are signed, index counts as 64 bits.
    """
    if combine is Combine.SUM:
        return 0
    if combine is Combine.PROD:
        return 1
    if isinstance(element_type, AnyFloat):
        return -math.inf if combine is Combine.MAX else math.inf
    if element_type == i1:
        return 0 if combine is Combine.MAX else 1
    if isinstance(element_type, IndexType):
        width = 64
    elif isinstance(element_type, IntegerType):
        width = cast("IntegerType[int]", element_type).width.data
    else:
        raise VerifyException(f"combine {combine}: expected a float, integer or index element, got {element_type}")
    return -(1 << (width - 1)) if combine is Combine.MAX else (1 << (width - 1)) - 1
