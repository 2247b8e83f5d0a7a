"""The meaning of a tensor-level program, in float64, with a bound on the error of any honest execution."""

from __future__ import annotations

from tilewright.runtime.reference.compare import Mismatch, compare
from tilewright.runtime.reference.executor import ReferenceValue, run_reference

__all__ = ["Mismatch", "ReferenceValue", "compare", "run_reference"]
