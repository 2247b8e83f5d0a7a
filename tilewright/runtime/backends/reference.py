"""Backend `reference`: the meaning of the tensor-level program in float64, rounded once. Nothing is lowered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.arguments import TensorArgument, intake
from tilewright.runtime.backends.base import (
    Backend,
    expect_host,
    kind_of,
    layouts,
    named,
    take_arguments,
    take_outputs,
)
from tilewright.runtime.binding import Environment, size_steps, solve_sizes
from tilewright.runtime.plan import parameter_of
from tilewright.runtime.reference import ReferenceValue, run_reference
from tilewright.runtime.results import empty_like_kind
from tilewright.runtime.variants import CompiledEntry


class ReferenceBackend(Backend):
    """Takes what lives in host memory; results have the types of the program."""

    name = "reference"

    def __init__(self, entry: CompiledEntry) -> None:
        super().__init__(entry)
        function = entry.function
        self.parameters = [
            parameter_of(a.type, a.name_hint or f"arg{n}") for n, a in enumerate(function.body.block.args)
        ]
        self.results = [parameter_of(t, f"out{n}") for n, t in enumerate(function.function_type.outputs.data)]
        self.steps = size_steps(function)

    def call(self, args: Sequence[object], out: Sequence[object] | None, stream: object, force: bool) -> list[Any]:
        """Run the entry; `stream` and `force` mean nothing here."""
        arguments = take_arguments(self.parameters, args, self.entry.entry)
        expect_host(arguments, self.name)
        given = None
        if out is not None:
            given = take_outputs(self.results, out, self.entry.entry, named(self.parameters, arguments))
        self.launches = 0
        values = self.evaluate(arguments)
        results: list[Any] = [] if out is None else list(out)
        for number, (value, each) in enumerate(zip(values, self.results, strict=True)):
            if given is None:
                made = empty_like_kind(kind_of(arguments), value.rounded.shape, each.dtype, "host")
                target = intake(made, each.dtype, each.name)
                results.append(made)
            else:
                target = given[number]
                if target.shape != value.rounded.shape:
                    raise TilewrightError(f"result {number}: expected shape {value.rounded.shape}, got {target.shape}")
            assert target.array is not None
            target.array[...] = value.rounded
        return results

    def evaluate(self, arguments: Sequence[TensorArgument]) -> list[ReferenceValue]:
        """The results with their error bounds."""
        environment = Environment()
        found = {n: each for n, each in enumerate(layouts(self.parameters, arguments)) if each is not None}
        solve_sizes(self.steps, found, environment)
        arrays = [np.asarray(a.array) for a in arguments]
        try:
            return run_reference(self.entry.module, self.entry.entry, arrays, environment.values)
        except MemoryError as error:
            sizes = environment.describe(sorted(environment.values))
            raise TilewrightError(f"@{self.entry.entry}: too large for the reference ({sizes}): {error}") from None
