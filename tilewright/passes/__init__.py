"""Rewrites within one level, one pass a file, and what one writes passes with.

The names below are the pass author's kit; each is imported on first use, so that importing a pass costs what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.passes.core import LEVELS, TilewrightPass, error_at
    from tilewright.passes.effects import is_dead, is_pure, may_write, only_reads
    from tilewright.passes.options import option_text, option_types
    from tilewright.passes.pipeline import run_pipeline
    from tilewright.passes.registry import all_passes, load_passes_from, register_pass, registered_passes
    from tilewright.passes.remarks import Remark, collecting_remarks, remark
    from tilewright.passes.rewriting import Pattern, Rewriter, apply_patterns, pattern
    from tilewright.passes.statistics import (
        Statistic,
        collecting_statistics,
        count_statistic,
        running_pass,
        statistics_of,
    )

_HOME: dict[str, str] = {
    "LEVELS": "core",
    "Pattern": "rewriting",
    "Remark": "remarks",
    "Rewriter": "rewriting",
    "Statistic": "statistics",
    "TilewrightPass": "core",
    "all_passes": "registry",
    "apply_patterns": "rewriting",
    "collecting_remarks": "remarks",
    "collecting_statistics": "statistics",
    "count_statistic": "statistics",
    "error_at": "core",
    "is_dead": "effects",
    "is_pure": "effects",
    "load_passes_from": "registry",
    "may_write": "effects",
    "only_reads": "effects",
    "option_text": "options",
    "option_types": "options",
    "pattern": "rewriting",
    "register_pass": "registry",
    "registered_passes": "registry",
    "remark": "remarks",
    "run_pipeline": "pipeline",
    "running_pass": "statistics",
    "statistics_of": "statistics",
}
"""Public name -> the file of this room that defines it."""

__all__ = [
    "LEVELS",
    "Pattern",
    "Remark",
    "Rewriter",
    "Statistic",
    "TilewrightPass",
    "all_passes",
    "apply_patterns",
    "collecting_remarks",
    "collecting_statistics",
    "count_statistic",
    "error_at",
    "is_dead",
    "is_pure",
    "load_passes_from",
    "may_write",
    "only_reads",
    "option_text",
    "option_types",
    "pattern",
    "register_pass",
    "registered_passes",
    "remark",
    "run_pipeline",
    "running_pass",
    "statistics_of",
]


def __getattr__(name: str) -> Any:
    """Import a name of the kit on first use and keep it."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
