"""What the levels `count` and `check` do at each load and store, beside the access itself."""

from __future__ import annotations

from typing import Any

from tilewright.dialects.simt.memory import LoadOp, StoreOp
from tilewright.runtime.sim.compiler import Compiler
from tilewright.runtime.sim.report import Site


def observers(
    compiler: Compiler, op: LoadOp | StoreOp, site: Site, argument: int, shared_offset: int
) -> tuple[Any, ...]:
    """The functions (state, index, active) that the compiler's level asks for, in the order to call them."""
    return ()
