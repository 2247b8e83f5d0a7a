"""Choices of a random program, all made of bounded integers: what Hypothesis shrinks is the number, towards the first.

Every option list is written simplest first, every flag shrinks to False, so that a shrunken program is a simple one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import hypothesis.strategies as st

T = TypeVar("T")


class Chance:
    """Draws of one example, from Hypothesis's `draw`.

    They go through one `randoms()`, whose integers Hypothesis records and shrinks like those of `integers()`. Drawn as
    a hundred strategies of one kind they would be mutated into one another: five of six examples would be near copies
    of the sixth (`ConjectureRunner.generate_mutations_from`), too dear where each is compiled.
    """

    def __init__(self, draw: st.DrawFn) -> None:
        self._random = draw(st.randoms(use_true_random=False))

    def integer(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included; shrinks to `low`."""
        return low if low == high else self._random.randint(low, high)

    def choose(self, options: Sequence[T]) -> T:
        """One of the options, all alike often; shrinks to the first. An option that stands twice is drawn twice as
        often."""
        return options[self.integer(0, len(options) - 1)]

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        """One of (weight, option), in proportion to the weights; shrinks to the first."""
        at = self.integer(0, sum(weight for weight, _ in options) - 1)
        for weight, option in options:
            at -= weight
            if at < 0:
                return option
        raise AssertionError("the draw is below the sum of the weights")

    def flag(self, one_in: int) -> bool:
        """True once in `one_in` times; shrinks to False."""
        return self.integer(0, one_in - 1) == one_in - 1

    def order(self, count: int) -> list[int]:
        """A permutation of 0..count-1; shrinks to the identity."""
        left = list(range(count))
        return [left.pop(self.integer(0, len(left) - 1)) for _ in range(count)]

    def subset(self, count: int, least: int = 1) -> list[int]:
        """Ascending numbers below `count`, `least` of them or more; shrinks to the first `least`."""
        chosen = [i for i in range(count) if self.flag(3)]
        for i in range(count):
            if len(chosen) >= least:
                break
            if i not in chosen:
                chosen.append(i)
        return sorted(chosen)
