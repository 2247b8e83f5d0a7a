"""Property tests for passes: three lines of pytest put a pass to random programs over random symbolic shapes.

    from tilewright.testing import assert_pass_preserves

    def test_my_pass() -> None:
        assert_pass_preserves(MyPass)

Each program runs before and after the pass, at the pass's own level and at the end of the pipelines; one that fails is
shrunk and written to a small .mlir file. Needs Hypothesis (`pip install 'tilewright[testing]'`). Names are imported on
first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.api.testing.execute import execute
    from tilewright.api.testing.layouts import ViewLayout, layouts
    from tilewright.api.testing.lin_programs import lin_programs
    from tilewright.api.testing.oracle import differs, zero_signs
    from tilewright.api.testing.preserve import Coverage, NeverChanged, NotPreserved, assert_pass_preserves
    from tilewright.api.testing.program import Program
    from tilewright.api.testing.shapes import sizes, symbol_sizes
    from tilewright.api.testing.tile_kernels import TileProgram, tile_kernels
    from tilewright.api.testing.tile_kernels_layouts import spread_tile_kernels
    from tilewright.api.testing.values import dtypes
    from tilewright.runtime.inputs import make_inputs

__all__ = [
    "Coverage",
    "NeverChanged",
    "NotPreserved",
    "Program",
    "TileProgram",
    "ViewLayout",
    "assert_pass_preserves",
    "differs",
    "dtypes",
    "execute",
    "layouts",
    "lin_programs",
    "make_inputs",
    "sizes",
    "spread_tile_kernels",
    "symbol_sizes",
    "tile_kernels",
    "zero_signs",
]

_HOME: dict[str, str] = {
    "Coverage": "tilewright.api.testing.preserve",
    "NeverChanged": "tilewright.api.testing.preserve",
    "NotPreserved": "tilewright.api.testing.preserve",
    "Program": "tilewright.api.testing.program",
    "ViewLayout": "tilewright.api.testing.layouts",
    "assert_pass_preserves": "tilewright.api.testing.preserve",
    "differs": "tilewright.api.testing.oracle",
    "dtypes": "tilewright.api.testing.values",
    "execute": "tilewright.api.testing.execute",
    "layouts": "tilewright.api.testing.layouts",
    "lin_programs": "tilewright.api.testing.lin_programs",
    "make_inputs": "tilewright.runtime.inputs",
    "TileProgram": "tilewright.api.testing.tile_kernels",
    "sizes": "tilewright.api.testing.shapes",
    "spread_tile_kernels": "tilewright.api.testing.tile_kernels_layouts",
    "symbol_sizes": "tilewright.api.testing.shapes",
    "tile_kernels": "tilewright.api.testing.tile_kernels",
    "zero_signs": "tilewright.api.testing.oracle",
}
"""Public name -> module that defines it."""


def __getattr__(name: str) -> Any:
    """Import a public name on first use and keep it."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'tilewright.testing' has no attribute {name!r}")
    try:
        value = getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        from tilewright.diagnostics import TilewrightError

        raise TilewrightError("tilewright.testing needs hypothesis: pip install 'tilewright[testing]'") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
