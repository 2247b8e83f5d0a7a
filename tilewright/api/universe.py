"""What plain `xdsl-opt` gets of Tilewright, through the entry point group `xdsl.universe`: dialects, passes, targets.

    xdsl-opt program.mlir -p infer-shapes,decompose,tilewright-canonicalize

xDSL refuses two passes of one name, so a pass whose name xDSL has is `tilewright-NAME` there (`canonicalize`, `cse`).
`func`, `arith`, `math`, `scf` and `builtin` are xDSL's own. What `tilewright-opt` adds, `xdsl-opt` does not have:
places of errors in the text, checks of dominance, remarks, statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.universe import XDSL_UNIVERSE, Universe

from tilewright.dialects.registry import all_dialects
from tilewright.lowering.registry import all_lowerings
from tilewright.lowering.targets import all_targets
from tilewright.passes.registry import all_passes

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

PREFIX = "tilewright-"


def _renamed(load: Callable[[], type[ModulePass]], name: str) -> Callable[[], type[ModulePass]]:
    """A function that loads the pass as a class of another name, which xDSL's pipelines compare with the text's."""

    def loaded() -> type[ModulePass]:
        cls = load()
        return type(cls.__name__, (cls,), {"name": name, "__doc__": cls.__doc__, "__module__": cls.__module__})

    return loaded


def tilewright_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Every pass and lowering by its name in `xdsl-opt`; call a value to import it."""
    table: dict[str, Callable[[], type[ModulePass]]] = {}
    for name, load in {**all_passes(), **all_lowerings()}.items():
        free = name not in XDSL_UNIVERSE.all_passes
        table[name if free else PREFIX + name] = load if free else _renamed(load, PREFIX + name)
    return table


TILEWRIGHT_UNIVERSE = Universe(
    all_dialects={name: load for name, load in all_dialects().items() if name not in XDSL_UNIVERSE.all_dialects},
    all_passes=tilewright_passes(),
    all_targets={name: load for name, load in all_targets().items() if name not in XDSL_UNIVERSE.all_targets},
)
"""What the entry point names."""
