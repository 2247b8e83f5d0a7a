"""The table of operators."""

from __future__ import annotations

from typing import Final

from tests.mutants.kernel_operators import (
    DroppedBarrier,
    DroppedMask,
    EmittedSign,
    Twins,
    WrongIdentity,
    WrongOp,
)
from tests.mutants.logic_operators import (
    AndOr,
    Believed,
    DroppedCall,
    DroppedConjunct,
    DroppedGuard,
    NegatedCondition,
    WrongOrder,
    WrongStage,
)
from tests.mutants.number_operators import (
    Boundary,
    MinMax,
    MinusOne,
    Pitch,
    PlusOne,
    Rounding,
    SwappedOperands,
    WrongArithmetic,
    WrongDim,
    WrongWidth,
)
from tests.mutants.operators import Operator

OPERATORS: Final[tuple[Operator, ...]] = (
    Boundary(),
    PlusOne(),
    MinusOne(),
    SwappedOperands(),
    WrongArithmetic(),
    Rounding(),
    DroppedMask(),
    DroppedBarrier(),
    WrongIdentity(),
    Pitch(),
    WrongStage(),
    DroppedGuard(),
    NegatedCondition(),
    DroppedConjunct(),
    AndOr(),
    Believed(),
    MinMax(),
    WrongDim(),
    WrongOrder(),
    DroppedCall(),
    WrongOp(),
    WrongWidth(),
    EmittedSign(),
    Twins(),
)
"""The table. Its quotas add up to the size of the sample."""
