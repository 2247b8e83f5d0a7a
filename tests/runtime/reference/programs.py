"""Programs for the tests of the reference: a function body between fixed declarations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.verify import verify_module
from tilewright.runtime.reference import ReferenceValue, run_reference

ALIASES = """
!A = tensor<?x?xf32, #sym.dims<M, K>>
!B = tensor<?x?xf32, #sym.dims<K, N>>
!C = tensor<?x?xf32, #sym.dims<M, N>>
!R = tensor<?xf32, #sym.dims<M>>
!S = tensor<f32>
sym.symbol @M
sym.symbol @N
sym.symbol @K
"""


def run(signature: str, body: str, inputs: Sequence[np.ndarray[Any, Any]], **symbols: int) -> list[ReferenceValue]:
    """Run `func.func @f <signature> { <body> }` with the aliases above; both the text and the module must be right."""
    module = parse_module(f"{ALIASES}func.func @f{signature} {{\n{body}\n}}", "test.mlir", make_context())
    verify_module(module)
    return run_reference(module, "f", inputs, symbols)
