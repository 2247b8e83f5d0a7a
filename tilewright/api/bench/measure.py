"""How it is measured: shuffled rounds of all systems in one process, medians over the rounds. No GPU in here.

What is timed is a `Repeated`: some calls of one system in a row, made ready by a `Timer` (one CUDA graph, as a rule).
In each round every system has its turn, in an order that a seeded generator shuffles anew, so that what drifts (clocks,
temperature) meets all alike.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from tilewright.api.bench.shapes import Mode

MOST_WARM_ROUNDS: Final = 50
"""Of tiny products: so many turns are queued at most before those that count."""

Call = Callable[[], object]
"""One product of one system, queued."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """Some calls in a row that are started as one."""

    run: Call
    calls: int
    how: str
    """`graph`: a replay of a CUDA graph; `launches`: one launch after the other; `loop`: on the host. In cold mode with
    the number of samples, if any, that the host was late with, which hold its time too."""


class Timer(Protocol):
    """A device's clock. Times are seconds."""

    def estimate(self, call: Call) -> float:
        """About what one call takes, warmed up. Raises what the call raises."""
        ...

    def repeat(self, call: Call, calls: int) -> Repeated:
        """So many calls in a row, ready to be started."""
        ...

    def back_to_back(self, turns: Sequence[Repeated]) -> list[float]:
        """Time of each turn, with the device never idle between them."""
        ...

    def after_idle(self, turn: Repeated, idle: float) -> float:
        """Time of a turn that an idle gap of so many seconds goes before."""
        ...

    def cold(self, call: Call) -> tuple[float, bool]:
        """(time of one call with nothing of its operands in the L2 cache, whether the host was quick enough for it)."""
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """How often and how long. Times in seconds."""

    rounds: int = 9
    cold_rounds: int = 7
    sustained: float = 0.010
    """Length of a turn in sustained mode."""
    warm: float = 0.2
    """How long turns go on before those that count in sustained mode, so that clocks and temperature meet the load."""
    burst: float = 0.001
    """Length of a turn in burst mode."""
    idle: float = 0.020
    """The gap before a burst."""
    most_calls: int = 400
    """Calls in one turn: a graph has so many nodes."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """One system in one mode: seconds a call, one figure a round in the order of the rounds."""

    samples: tuple[float, ...]
    calls: int
    """Calls that each figure is the mean of."""
    how: str

    @property
    def median(self) -> float:
        """Seconds a call."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """The middle half's width over the median; 0 for one sample."""
        if len(self.samples) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return (high - low) / self.median


def measure(
    timer: Timer, calls: Mapping[str, Call], modes: Sequence[Mode], settings: Settings, seed: str
) -> dict[Mode, dict[str, Timing]]:
    """Mode -> system -> timing. `seed` and the settings' seed give the orders of the rounds."""
    shuffle = random.Random(f"{settings.seed}/{seed}").shuffle
    guesses: dict[str, float] = {}
    if any(mode != "cold" for mode in modes):
        guesses = {name: timer.estimate(call) for name, call in calls.items()}

    def turns(seconds: float) -> dict[str, Repeated]:
        return {
            name: timer.repeat(call, min(settings.most_calls, max(1, math.ceil(seconds / guesses[name]))))
            for name, call in calls.items()
        }

    def orders(rounds: int) -> list[list[str]]:
        found: list[list[str]] = []
        for _ in range(rounds):
            order = list(calls)
            shuffle(order)
            found.append(order)
        return found

    found: dict[Mode, dict[str, Timing]] = {}
    for mode in modes:
        samples: dict[str, list[float]] = {name: [] for name in calls}
        if mode == "cold":
            late = dict.fromkeys(calls, 0)
            single = {name: timer.repeat(call, 1) for name, call in calls.items()}
            for order in orders(settings.cold_rounds):
                for name in order:
                    seconds, in_time = timer.cold(single[name].run)
                    samples[name].append(seconds)
                    late[name] += not in_time
            found[mode] = {
                name: Timing(tuple(s), 1, f"{single[name].how}, {late[name]} late" if late[name] else single[name].how)
                for name, s in samples.items()
            }
            continue
        ready = turns(settings.sustained if mode == "sustained" else settings.burst)
        rounds = orders(settings.rounds)
        if mode == "sustained":
            a_round = sum(each.calls * guesses[name] for name, each in ready.items())
            warm = orders(min(MOST_WARM_ROUNDS, max(1, math.ceil(settings.warm / a_round))))
            sequence = [name for order in (*warm, *rounds) for name in order]
            times = timer.back_to_back([ready[name] for name in sequence])
            skipped = len(warm) * len(calls)
            named = zip(sequence[skipped:], times[skipped:], strict=True)
        else:
            named = ((name, timer.after_idle(ready[name], settings.idle)) for order in rounds for name in order)
        for name, seconds in named:
            samples[name].append(seconds / ready[name].calls)
        found[mode] = {name: Timing(tuple(s), ready[name].calls, ready[name].how) for name, s in samples.items()}
    return found
