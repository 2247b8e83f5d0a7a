"""Results on disk: one JSON line for each mutant that was run, appended at once, so that a run can stop at any time.

A result holds as long as the mutant is the same change. What was not caught is run again when the package or the tests
are others than they were.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutants.mutants import Mutant
from tests.mutants.running import Outcome

CAUGHT = ("caught", "timeout")


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant, and with which package and tests (a hash)."""

    name: str
    key: str
    tree: str
    outcome: Outcome

    @property
    def is_caught(self) -> bool:
        """Whether some test tells the mutant from the compiler; a test that hangs does."""
        return self.outcome.verdict in CAUGHT


class Results:
    """The results in a file; the last one of a mutant counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.by_key: dict[str, Result] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                    self.by_key[entry["key"]] = Result(**{**entry, "outcome": Outcome(**entry["outcome"])})
                except (json.JSONDecodeError, KeyError, TypeError):
                    continue  # a line that was cut off when a run was stopped, or is from another version

    def of(self, mutant: Mutant) -> Result | None:
        """The result of a mutant as it is now, if it was run."""
        return self.by_key.get(mutant.key())

    def is_open(self, mutant: Mutant, tree: str) -> bool:
        """Whether a mutant must be run, with this package and these tests."""
        found = self.of(mutant)
        return found is None or (not found.is_caught and found.tree != tree)

    def add(self, result: Result) -> None:
        """Keep a result, in memory and on disk."""
        self.by_key[result.key] = result
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")

    def clear(self) -> None:
        """Forget all."""
        self.by_key.clear()
        self.path.unlink(missing_ok=True)
