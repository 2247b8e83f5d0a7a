"""What a module can be written as, by name, for `-t`: `TARGETS["cuda"]()` imports and returns the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.utils.target import Target


def _cuda() -> type[Target]:
    from tilewright.lowering.simt_to_cuda.target import CudaTarget

    return CudaTarget


TARGETS: dict[str, Callable[[], type[Target]]] = {"cuda": _cuda}
"""Each target by name."""
