"""Which lowerings there are, as one literal table like that of the passes: a name gives the file and the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tilewright.passes.registry import LOWERING_NAMES, PassEntry, entries

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

LOWERINGS: dict[str, PassEntry] = entries(LOWERING_NAMES, "tilewright.lowering")
"""Every lowering by name."""


def all_lowerings() -> dict[str, Callable[[], type[ModulePass]]]:
    """Every lowering by name; call a value to import it."""
    return {name: entry.load for name, entry in LOWERINGS.items()}
