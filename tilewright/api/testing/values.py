"""Element types by where `lin` takes them. Values come from `tilewright.runtime.inputs.make_inputs`."""

from __future__ import annotations

from typing import Final, Literal

import hypothesis.strategies as st

from tilewright.api.testing.lin_text import DTYPES, FLOATS
from tilewright.diagnostics import TilewrightError

Where = Literal["tensor", "product", "float", "scalar", "ids"]
LEGAL: Final[dict[str, tuple[str, ...]]] = {
    "tensor": DTYPES,
    "product": (*FLOATS, "i32"),
    "float": FLOATS,
    "scalar": ("f32", "i32", "index"),
    "ids": ("i32",),
}
"""Elements of tensors at large; operands of matmul, batch_matmul and conv2d; of softmax and clamp; arguments by value;
indices of gather. Simplest first."""


def dtypes(where: Where = "tensor") -> st.SearchStrategy[str]:
    """Names of element types that are legal there, as IR writes them. Shrinks to f32 (i32 for ids).

    TilewrightError for an unknown place.
    """
    if where not in LEGAL:
        raise TilewrightError(f"dtypes: expected one of {', '.join(LEGAL)}, got {where!r}")
    return st.sampled_from(LEGAL[where])
