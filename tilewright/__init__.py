"""Tilewright: a multi-dialect GPU kernel compiler for symbolic shapes.

This module names the public interface and loads none of it: each name is imported on first use, so that
`import tilewright` costs no NumPy and no xDSL.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.api.compile import compile
    from tilewright.api.frontend import (
        Size,
        Symbol,
        Tensor,
        abs,
        add,
        batch_matmul,
        build_module,
        cast,
        clamp,
        concat,
        conv2d,
        div,
        einsum,
        equal,
        erf,
        exp,
        gather,
        gelu,
        greater,
        greater_equal,
        less,
        less_equal,
        log,
        logical_and,
        logical_not,
        logical_or,
        matmul,
        max,
        maximum,
        min,
        minimum,
        mul,
        neg,
        not_equal,
        pad,
        placeholder,
        prod,
        reduce_max,
        reduce_min,
        reduce_prod,
        reduce_sum,
        relu,
        reshape,
        rsqrt,
        sigmoid,
        silu,
        slice,
        softmax,
        sqrt,
        sub,
        sum,
        symbols,
        tanh,
        transpose,
        where,
    )
    from tilewright.diagnostics import SourceLocation, TilewrightError, TilewrightWarning
    from tilewright.runtime.kernel import Kernel

__version__ = "0.1.0"

__all__ = [
    "Kernel",
    "Size",
    "SourceLocation",
    "Symbol",
    "Tensor",
    "TilewrightError",
    "TilewrightWarning",
    "__version__",
    "abs",
    "add",
    "batch_matmul",
    "build_module",
    "cast",
    "clamp",
    "compile",
    "concat",
    "conv2d",
    "div",
    "einsum",
    "equal",
    "erf",
    "exp",
    "gather",
    "gelu",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "matmul",
    "max",
    "maximum",
    "min",
    "minimum",
    "mul",
    "neg",
    "not_equal",
    "pad",
    "placeholder",
    "prod",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "relu",
    "reshape",
    "rsqrt",
    "sigmoid",
    "silu",
    "slice",
    "softmax",
    "sqrt",
    "sub",
    "sum",
    "symbols",
    "tanh",
    "transpose",
    "where",
]

_ELSEWHERE = {
    "Kernel": "tilewright.runtime.kernel",
    "SourceLocation": "tilewright.diagnostics",
    "TilewrightError": "tilewright.diagnostics",
    "TilewrightWarning": "tilewright.diagnostics",
    "compile": "tilewright.api.compile",
}
_HOME: dict[str, str] = {name: _ELSEWHERE.get(name, "tilewright.api.frontend") for name in __all__}
"""Public name -> module that defines it; the front end defines all that stand nowhere else."""


def __getattr__(name: str) -> Any:
    """Import a public name on first use and keep it, so that the next use is an ordinary attribute."""
    home = _HOME.get(name)
    if home is None or name.startswith("__"):
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
