"""Near misses: the `did you mean` of every message about an unknown name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `"; did you mean 'x'?"` for the name in `known` that is closest to `name`, or `""` if none is near.

    Upper and lower case count as equal, since that is a slip and not another word. Of names equally near, the one
    of the same letters is taken: `adi` is rather `addi` than `andi`.
    """
    wanted = name.lower()
    by_lower = {candidate.lower(): candidate for candidate in known}

    def nearness(candidate: str) -> tuple[float, int]:
        ratio = SequenceMatcher(None, candidate, wanted).ratio()
        return round(ratio, 3), -len(set(candidate) ^ set(wanted))

    near = get_close_matches(wanted, by_lower, n=5, cutoff=0.6)
    return f"; did you mean '{by_lower[max(near, key=nearness)]}'?" if near else ""
