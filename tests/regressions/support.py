"""Entries compiled from text, the decision of a call, and a launch of it on virtual memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.runtime.arguments import intake
from tilewright.runtime.backends.base import aligned_empty
from tilewright.runtime.backends.sim import buffer_of
from tilewright.runtime.binding import Layout, contiguous
from tilewright.runtime.dtypes import element_type
from tilewright.runtime.plan import Site
from tilewright.runtime.reference import compare, run_reference
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.compiler import Level
from tilewright.runtime.sim.launch import compile_kernel
from tilewright.runtime.sim.report import Report
from tilewright.runtime.sim.virtual import Values, VirtualMemory, virtual_zeros
from tilewright.runtime.variants import CompiledEntry

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def parsed(text: str, *symbols: str) -> Any:
    """A verified module from text; symbols as `M` or `M {multiple_of = 8}` are declared in front of it."""
    module = parse_module("\n".join([*(f"sym.symbol @{each}" for each in symbols), text]), "p.mlir", make_context())
    module.verify()
    return module


def fresh_entry(text: str, *symbols: str) -> CompiledEntry:
    """The entry @main of a text, with nothing lowered yet."""
    return CompiledEntry(parsed(text, *symbols), "main", "sm_80")


@cache
def entry_of(text: str, *symbols: str) -> CompiledEntry:
    """The entry @main of a text, the same for all tests that ask for it."""
    return fresh_entry(text, *symbols)


def map_program(shape: str, inputs: int = 1, body: str = "lin.yield %p0 : f32") -> str:
    """@main: a map over f32 tensors of one symbolic shape such as "M, N"; `body` is over %p0, %p1, ..."""
    # Not at the commas of min and max.
    sizes = [size.strip() for size in re.split(r",(?![^()]*\))", shape)]
    kind = f"tensor<{''.join(s + 'x' if s.isdecimal() else '?x' for s in sizes)}f32, #sym.dims<{shape}>>"
    arguments = ", ".join(f"%x{n} : {kind}" for n in range(inputs))
    names = ", ".join(f"%x{n}" for n in range(inputs))
    return f"""func.func @main({arguments}) -> {kind} {{
  %r = lin.map ins({names} : {", ".join([kind] * inputs)}) -> {kind} {{
  ^bb0({", ".join(f"%p{n}: f32" for n in range(inputs))}):
    {body}
  }}
  func.return %r : {kind}
}}
"""


def differences(
    entry: CompiledEntry, arrays: Sequence[Array], level: Level = "fast", variant: str | None = None
) -> list[str]:
    """How the simulator's results differ from the reference's, and the faults that the level finds; [] when all is
    well.

    The call is made as the backend makes it, without its copies: of an entry that has f32 tensors and nothing else.
    `variant` forces a variant of each kernel ("general64"), whose facts the call must satisfy.
    """
    plan = entry.plan
    given = [array.copy() for array in arrays]
    decision = plan.decide([Layout(a.shape, element_strides(a), a.ctypes.data) for a in arrays])
    results = [aligned_empty(shape, p.dtype) for p, shape in zip(plan.results, decision.results, strict=True)]
    for result in results:
        result[...] = 77
    scratch = [
        np.empty(0, np.float32) if shape is None else aligned_empty(shape, p.dtype)
        for p, shape in zip(plan.scratch, decision.scratch, strict=True)
    ]
    places = {"argument": arrays, "result": results, "scratch": scratch}
    row = [*arrays, *results, *scratch]
    places["chosen"] = [row[n] for n in decision.chosen]
    found: list[str] = []
    for launch in decision.launches:
        site = plan.sites[launch.site] if variant is None else forced(entry, plan.sites[launch.site], variant)
        lowered = entry.lower(site)
        buffers = [buffer_of(intake(places[s.kind][s.number], "f32", "x")) for s in site.tensors]
        program = compile_kernel(lowered.kernel, level, aliased=False)
        report = program.run(buffers, lowered.scalars(decision.symbols), grid=launch.grid)
        found.extend(str(fault) for fault in report.diagnostics)
    for number, (before, array) in enumerate(zip(given, arrays, strict=True)):
        if not np.array_equal(before, array, equal_nan=True):
            found.append(f"argument {number} was written")
    sizes = dict(zip(plan.symbols, decision.symbols, strict=True))
    expected = run_reference(entry.module, "main", list(arrays), sizes)
    for result, want in zip(results, expected, strict=True):
        if (mismatch := compare(result, want)) is not None:
            found.append(str(mismatch))
    return found


def forced(entry: CompiledEntry, site: Site, variant: str) -> Site:
    """The other variant of the same kernel."""
    return next(each for name, each in entry.sites.items() if name.endswith(f"{site.kernel}/{variant}"))


def variants_of(entry: CompiledEntry, *arrays: Array) -> list[str]:
    """`kernel/variant` of each launch that a call with these arrays makes."""
    sites = chosen(entry, *[Layout(a.shape, element_strides(a), a.ctypes.data) for a in arrays])
    return [f"{site.kernel}/{site.variant}" for site in sites]


def filled(*shape: int, seed: int = 0) -> Array:
    """Normal f32 values at an address that every vector divides."""
    array = aligned_empty(shape, "f32")
    array[...] = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return array


def within(values: Array, layout: str) -> Array:
    """The values of a matrix in a view that lies in memory as `layout` says, with NaN around it."""
    m, n = values.shape
    made: dict[str, tuple[Shape, Callable[[Array], Array]]] = {
        "contiguous": ((m, n), lambda a: a),
        "gapped rows": ((m, n + 3), lambda a: a[:, :n]),
        "gapped columns": ((m, 2 * n), lambda a: a[:, ::2]),
        "transposed": ((n, m), lambda a: a.T),
        "transposed and gapped": ((2 * n, m + 1), lambda a: a.T[:m, ::2]),
        "odd offset": ((m + 1, n), lambda a: a.reshape(-1)[1 : 1 + m * n].reshape(m, n)),
        "rows backwards": ((m, n), lambda a: a[::-1]),
        "columns backwards": ((m, n + 1), lambda a: a[:, :n][:, ::-1]),
    }
    shape, view_of = made[layout]
    memory = aligned_empty(shape, "f32")
    memory[...] = np.nan
    view = view_of(memory)
    view[...] = values
    return view


LAYOUTS = (
    "contiguous",
    "gapped rows",
    "gapped columns",
    "transposed",
    "transposed and gapped",
    "odd offset",
    "rows backwards",
    "columns backwards",
)
"""What `within` knows."""


def element_strides(array: Array) -> Shape:
    """Strides in elements."""
    return tuple(s // array.itemsize for s in array.strides)


def chosen(entry: CompiledEntry, *tensors: Layout) -> list[Site]:
    """The variants that a call with these tensors launches, in order."""
    return [entry.plan.sites[each.site] for each in entry.plan.decide(list(tensors)).launches]


def aligned(*shape: int) -> Layout:
    """A contiguous tensor at an address that every vector divides."""
    return Layout(shape, contiguous(shape), 1 << 20)


def scrambled(positions: Array) -> Array:
    """A number below 2^24, exact in f32, that differs between positions which wrapped arithmetic confuses."""
    return (positions * 2654435761 >> 12) % (1 << 24)


@dataclass(frozen=True)
class Trial:
    """A launch in some of its blocks on virtual memory."""

    site: Site
    report: Report
    stored: dict[int, Any]
    """What was stored to the result, by position."""


def sampled(
    entry: CompiledEntry,
    shapes: Sequence[Shape],
    values: Values | Sequence[Values],
    variant: str | None = None,
) -> Trial:
    """The one launch of a call on contiguous tensors of these shapes, in its first, middle and last block.

    The arguments hold `values(position)`, each its own or all the same. `variant` forces a variant ("general32") that
    the plan need not choose.
    """
    plan = entry.plan
    decision = plan.decide([aligned(*shape) for shape in shapes])
    (launch,) = decision.launches
    site = plan.sites[launch.site]
    if variant is not None:
        site = forced(entry, site, variant)
    lowered = entry.lower(site)
    held = list(values) if isinstance(values, Sequence) else [values] * len(shapes)
    places = {
        "argument": [
            VirtualMemory(prod(shape), element_type(p.dtype).numpy_dtype(), each)
            for p, shape, each in zip(plan.arguments, shapes, held, strict=True)
        ],
        "result": [
            virtual_zeros(prod(shape), element_type(p.dtype).numpy_dtype())
            for p, shape in zip(plan.results, decision.results, strict=True)
        ],
    }
    program = compile_kernel(lowered.kernel, "check", aliased=False)
    blocks = [0, launch.grid // 2, launch.grid - 1]
    buffers = [Buffer(places[slot.kind][slot.number]) for slot in site.tensors]
    report = program.run(buffers, lowered.scalars(decision.symbols), grid=launch.grid, blocks=blocks)
    return Trial(site, report, places["result"][0].stored)
