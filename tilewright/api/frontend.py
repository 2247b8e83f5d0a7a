"""The Python front end: symbolic sizes, placeholders and functions on tensors, and the module that they make.

    B, M = symbols("B M", min=1)
    a = placeholder((B, M, 512), "float32")
    b = placeholder((512, 256), "float32")
    module = build_module(relu(matmul(a, b)))

Nothing is computed here: a tensor is a node of a graph. Wrong shapes and dtypes are a TilewrightError at the call.
"""

from __future__ import annotations

from tilewright.api.build import build_module
from tilewright.api.contractions import batch_matmul, einsum, matmul
from tilewright.api.convolution import conv2d
from tilewright.api.elementwise import (
    abs,
    add,
    cast,
    clamp,
    div,
    equal,
    erf,
    exp,
    gelu,
    greater,
    greater_equal,
    less,
    less_equal,
    log,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    mul,
    neg,
    not_equal,
    relu,
    rsqrt,
    sigmoid,
    silu,
    sqrt,
    sub,
    tanh,
    where,
)
from tilewright.api.movement import concat, gather, pad, reshape, slice
from tilewright.api.reductions import reduce_max, reduce_min, reduce_prod, reduce_sum, softmax, transpose
from tilewright.api.reductions import reduce_max as max
from tilewright.api.reductions import reduce_min as min
from tilewright.api.reductions import reduce_prod as prod
from tilewright.api.reductions import reduce_sum as sum
from tilewright.api.sizes import Size, Symbol, symbols
from tilewright.api.tensor import Tensor, placeholder

__all__ = [
    "Size",
    "Symbol",
    "Tensor",
    "abs",
    "add",
    "batch_matmul",
    "build_module",
    "cast",
    "clamp",
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
