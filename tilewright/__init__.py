"""Tilewright: a multi-dialect GPU kernel compiler for symbolic shapes.

This module names the public interface and loads none of it: each name is imported on first use, so that
`import tilewright` costs no NumPy and no xDSL.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.diagnostics import SourceLocation, TilewrightError

__version__ = "0.1.0"

__all__ = ["SourceLocation", "TilewrightError", "__version__"]

_HOME: dict[str, str] = {
    "SourceLocation": "tilewright.diagnostics",
    "TilewrightError": "tilewright.diagnostics",
}
"""Public name -> module that defines it."""


def __getattr__(name: str) -> Any:
    """Import a public name on first use and keep it, so that the next use is an ordinary attribute."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
