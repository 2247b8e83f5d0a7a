"""`Program`: one function, the sizes of its symbols and the seed of its inputs; what a fuzzed example is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Lane = Literal["ordinary", "special"]
"""Values of the inputs: ordinary numbers alone, or NaN, infinities, -0.0, subnormals and the like among them."""

Level = Literal["tensor", "tile"]
"""Where a program's text stands: `lin` on tensors, or `tile` kernels with a `host.func`."""


@dataclass(frozen=True)
class Program:
    """A program with all that decides what it computes: strategies yield it, the harness runs it, a file stores it."""

    text: str
    """Text of a module with one function."""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """The value of each symbol that argument shapes bind."""
    seed: int = 0
    """Of the inputs: the same seed, lane and sizes give the same arrays in every process."""
    lane: Lane = "ordinary"
    level: Level = "tensor"
    meaning: str = ""
    """Of a program at the tile level: text of a module of the tensor level with the same arguments and results, by
    which it is judged. Without it, it is judged by what the tile interpreter makes of it as it is written."""
