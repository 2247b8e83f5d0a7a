"""What a run found, as text: a table by operator, each mutant with the test that caught it, survivors with verdicts.

`survivors.toml` holds the verdicts: a table for each mutant that is no fault, with `equivalent = "why"`. A survivor
without one is a fault that the tests do not see, and wants a test.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.mutants.mutants import Mutant
from tests.mutants.results import Result, Results
from tests.mutants.table import OPERATORS

SURVIVORS: Final = Path(__file__).with_name("survivors.toml")
WANTED_SHARE: Final = 0.9
"""Of all mutants, equivalent ones included, at least so many must be caught."""


def equivalents(path: Path = SURVIVORS) -> dict[str, str]:
    """Why each mutant that was judged is no fault. ValueError for an entry that says something else."""
    found: dict[str, str] = {}
    for name, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
        if not isinstance(entry, dict) or set(entry) != {"equivalent"} or not str(entry["equivalent"]).strip():
            raise ValueError(f'{path.name}: [{name}] expected one line, equivalent = "why", got {entry}')
        found[name] = str(entry["equivalent"])
    return found


def passes(mutants: Sequence[Mutant], results: Results, why: Mapping[str, str]) -> bool:
    """Whether all were run, enough were caught, and each of the others is known to be no fault."""
    found = [results.of(m) for m in mutants]
    caught = sum(r is not None and r.is_caught for r in found)
    judged = all(r is not None and (r.is_caught or r.name in why) for r in found)
    return judged and caught >= WANTED_SHARE * len(mutants)


def table(mutants: Sequence[Mutant], results: Results) -> list[str]:
    """Operators with how many mutants each made and what became of them."""
    lines = ["| operator | mutants | caught | of these timeouts | survived | reached by no test | not run |"]
    lines.append("|---|---|---|---|---|---|---|")
    groups = [*(operator.name for operator in OPERATORS), "by hand", "all"]
    for group in groups:
        own = [m for m in mutants if group in (m.operator, "all")]
        verdicts = ["" if (r := results.of(m)) is None else r.outcome.verdict for m in own]
        caught = verdicts.count("caught") + verdicts.count("timeout")
        numbers = [len(own), caught, *(verdicts.count(v) for v in ("timeout", "survived", "unreached", ""))]
        lines.append(f"| {group} | " + " | ".join(str(n) for n in numbers) + " |")
    return lines


def line_of(mutant: Mutant, result: Result | None) -> str:
    """One mutant in one line."""
    where = f"{mutant.file}:{mutant.line}"
    if result is None:
        return f"{mutant.name:32} {where}"
    outcome = result.outcome
    how = f"by {outcome.by}" if outcome.by else f"{outcome.ran} of {outcome.planned} tests, {outcome.seconds:.0f} s"
    return f"{outcome.verdict:9} {mutant.name:32} {where}  {how}"


def report(mutants: Sequence[Mutant], results: Results, tree: str, why: Mapping[str, str]) -> str:
    """All of it, to be printed."""
    lines = table(mutants, results)
    lines += ["", *(line_of(m, results.of(m)) for m in mutants)]
    for mutant in mutants:
        result = results.of(mutant)
        if result is None or result.is_caught:
            continue
        verdict = f"equivalent: {why[mutant.name]}" if mutant.name in why else "no verdict: needs a test"
        lines += ["", f"{mutant.name}: {verdict}", mutant.diff().rstrip()]
    caught = sum(r is not None and r.is_caught for r in map(results.of, mutants))
    old = sum(r is not None and r.tree != tree for r in map(results.of, mutants))
    lines += ["", f"{caught} of {len(mutants)} caught ({caught / max(1, len(mutants)):.1%})"]
    if old:
        lines.append(f"{old} results are from before the last change of the package or the tests")
    unknown = sorted(why.keys() - {m.name for m in mutants})
    if unknown:
        lines.append(f"{SURVIVORS.name} speaks of mutants that there are not: {', '.join(unknown)}")
    return "\n".join(lines)
