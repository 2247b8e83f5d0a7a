"""How many programs a test tries: `quick` on every run, `medium` before a merge, `deep` when machines have time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.diagnostics import TilewrightError

EXAMPLES: dict[str, int] = {"quick": 25, "medium": 150, "deep": 5000}
"""Programs of one call of `assert_pass_preserves`, by profile."""


@dataclass(frozen=True)
class Settings:
    """What a test run has chosen for all its calls; the pytest plugin fills it from the command line."""

    profile: str = "quick"
    seed: int = 0
    failures: Path = Path(".tilewright/failures")

    @property
    def examples(self) -> int:
        """Programs of one call."""
        return EXAMPLES[self.profile]


_current = Settings()  # the pytest plugin sets it once, before any test runs


def current_settings() -> Settings:
    """The settings of this process."""
    return _current


def set_settings(*, profile: str | None = None, seed: int | None = None, failures: Path | None = None) -> Settings:
    """Change settings of this process; None leaves one as it is. TilewrightError for a profile that is not there."""
    global _current
    if profile is not None and profile not in EXAMPLES:
        raise TilewrightError(f"profile: expected one of {', '.join(EXAMPLES)}, got {profile!r}")
    _current = replace(
        _current,
        profile=_current.profile if profile is None else profile,
        seed=_current.seed if seed is None else seed,
        failures=_current.failures if failures is None else failures,
    )
    return _current
