"""Many draws of one strategy with a fixed seed, without what they are drawn for."""

from __future__ import annotations

from typing import TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def drawn(strategy: SearchStrategy[T], count: int, seed: int = 0) -> list[T]:
    """The examples that Hypothesis generates from this seed."""
    found: list[T] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        derandomize=False,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @hypothesis.given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    collect()
    return found
