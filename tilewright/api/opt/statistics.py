"""The table of what passes counted, as `--statistics` prints it; MLIR's users look for `(S)`."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.passes.statistics import statistics_of


def statistics_report(counts: Mapping[tuple[str, str], int]) -> str:
    """Return a block of lines for each pass, in the order in which they ran: `(S)`, the count, and what it counts."""
    lines = ["// -----// Pass statistics //----- //"]
    last: str | None = None
    for each in statistics_of(counts):
        if each.pass_name != last:
            lines.append(each.pass_name)
            last = each.pass_name
        lines.append(f"  (S) {each.value:7d} {each.name}")
    if last is None:
        lines.append("nothing was counted")
    return "\n".join(lines) + "\n"
