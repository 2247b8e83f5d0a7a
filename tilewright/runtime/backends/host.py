"""What the backends that run kernels in host memory share: arguments, the plan, results, and the launches of a call."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.runtime.arguments import TensorArgument, intake
from tilewright.runtime.backends.base import (
    Backend,
    aligned_empty,
    expect_host,
    kind_of,
    layout,
    layouts,
    named,
    scalar_value,
    take_arguments,
    take_outputs,
)
from tilewright.runtime.results import empty_like_kind
from tilewright.runtime.variants import CompiledEntry, Lowered


@dataclass(frozen=True, slots=True)
class HostLaunch:
    """A variant with all that it is launched on."""

    lowered: Lowered
    tensors: tuple[TensorArgument, ...]
    """Memory of the pointers, in the kernel's order."""
    scalars: tuple[int | float, ...]
    """Numbers that the call passes, then those that the host computes."""
    grid: int
    map_sizes: tuple[int, ...] = ()
    """Sizes, then strides, of each of the kernel's tensor maps after the other."""


class HostBackend(Backend):
    """Runs on NumPy arrays and anything else that DLPack shares in host memory; strided views are not copied."""

    def __init__(self, entry: CompiledEntry) -> None:
        super().__init__(entry)
        self._by_site: dict[int, Lowered] = {}

    @abstractmethod
    def run(self, launches: Sequence[HostLaunch], force: bool) -> None:
        """Run the launches of one call, in order."""

    def call(self, args: Sequence[object], out: Sequence[object] | None, stream: object, force: bool) -> list[Any]:
        """Run the entry; `stream` means nothing here."""
        plan = self.entry.plan
        arguments = take_arguments(plan.arguments, args, plan.entry)
        expect_host(arguments, self.name)
        given: list[TensorArgument] | None = None
        if out is not None:
            given = take_outputs(plan.results, out, plan.entry, named(plan.arguments, arguments))
            expect_host(given, self.name)
        decision = plan.decide(
            layouts(plan.arguments, arguments), None if given is None else [layout(each) for each in given]
        )
        results: list[Any] = [] if out is None else list(out)
        if given is None:
            given = []
            for parameter, shape in zip(plan.results, decision.results, strict=True):
                made, taken = _result(kind_of(arguments), shape, parameter.dtype, parameter.name, plan.alignment)
                results.append(made)
                given.append(taken)
        scratch = [
            None if shape is None else intake(aligned_empty(shape, p.dtype), p.dtype, p.name)
            for p, shape in zip(plan.scratch, decision.scratch, strict=True)
        ]
        places = {"argument": arguments, "result": given, "scratch": scratch}
        row = [*arguments, *given, *scratch]
        places["chosen"] = [None if n < 0 else row[n] for n in decision.chosen]
        self.launches = len(decision.launches)
        launches: list[HostLaunch] = []
        for each in decision.launches:
            site = plan.sites[each.site]
            lowered = self._by_site.get(each.site)
            if lowered is None:
                lowered = self._by_site[each.site] = self.entry.lower(site)
            if each.scalars is None:
                each.scalars = lowered.scalars(decision.symbols)
            tensors: list[TensorArgument] = []
            for slot in site.tensors:
                tensor = places[slot.kind][slot.number]
                assert tensor is not None  # of the case that was chosen
                tensors.append(tensor)
            values = [scalar_value(arguments[slot.number]) for slot in site.scalars]
            sizes = lowered.map_sizes(decision.symbols) if lowered.kernel.maps else ()
            launches.append(HostLaunch(lowered, tuple(tensors), (*values, *each.scalars), each.grid, sizes))
        self.run(launches, force)
        return results


def _result(kind: Any, shape: tuple[int, ...], dtype: str, name: str, alignment: int) -> tuple[Any, TensorArgument]:
    """A result in the caller's kind, and its description; at an address that the plan's alignment divides."""
    made = empty_like_kind(kind, shape, dtype, "host")
    taken = intake(made, dtype, name)
    if taken.pointer % alignment and taken.size and isinstance(made, np.ndarray):
        made = aligned_empty(shape, dtype)
        taken = intake(made, dtype, name)
    return made, taken
