"""Programs through the tile pipeline into the simulator, every access checked, held to the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tests.passes.support import CONTEXT, parse
from tilewright.api.build import build_module
from tilewright.api.tensor import Tensor
from tilewright.dialects.host.ops import FuncOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.tile.structure import KernelOp as TileKernelOp
from tilewright.lowering import pipelines
from tilewright.lowering.instantiate import instantiate
from tilewright.lowering.lin_to_tile import LinToTilePass
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.remarks import Remark, collecting_remarks
from tilewright.passes.verify_dims import VerifyDimsPass
from tilewright.passes.verify_facts import VerifyFactsPass
from tilewright.runtime.arguments import intake
from tilewright.runtime.backends.base import aligned_empty, layouts, scalar_value, take_arguments
from tilewright.runtime.backends.sim import buffer_of
from tilewright.runtime.inputs import make_inputs
from tilewright.runtime.plan import HostPlan, Site
from tilewright.runtime.plan_code import expressions_function
from tilewright.runtime.reference import ReferenceValue, compare, run_reference
from tilewright.runtime.sim.launch import Program, compile_kernel
from tilewright.runtime.sim.report import Report, SiteCounts
from tilewright.runtime.tile_interpreter.host import interpret_host

Array = np.ndarray[Any, Any]
VARIANTS = ("vector32", "general32", "vector64", "general64")


def without(*names: str) -> tuple[str, ...]:
    """The tile pipeline without these passes."""
    assert set(names) <= set(pipelines.TILE)
    return tuple(name for name in pipelines.TILE if name not in names)


def check_facts(each: ModulePass, module: ModuleOp) -> None:
    """After a pass: shapes name declared symbols and fit their types, and every fact on a kernel's op follows again."""
    VerifyDimsPass().apply(CONTEXT, module)
    if any(isinstance(op, TileKernelOp) for op in module.ops):
        VerifyFactsPass().apply(CONTEXT, module)


def to_simt(module: ModuleOp, names: Sequence[str] = pipelines.TILE) -> tuple[KernelOp, list[Remark]]:
    """The kernel of a module after the tile pipeline, verified after each pass; and the remarks of the passes."""
    with collecting_remarks() as remarks:
        run_pipeline(module, CONTEXT, pipelines.make_passes(names), verify_each=True, on_after=check_facts)
    (kernel,) = (op for op in module.ops if isinstance(op, KernelOp))
    return kernel, remarks


@dataclass
class Launch:
    """One launch of a call: which variant ran, and what the simulator saw."""

    site: Site
    kernel: KernelOp
    report: Report

    def accesses(self, op_name: str, space: str) -> list[SiteCounts]:
        """Counters of the loads or stores of a memory space that were executed, in text order."""
        return [
            counts
            for site, counts in self.report.counts.items()
            if (site.op_name, site.space) == (op_name, space) and counts.requests
        ]


@dataclass
class Call:
    """What one call did."""

    results: list[Array]
    launches: list[Launch]
    symbols: dict[str, int]
    """Values of the plan's symbols: sizes, strides, addresses."""

    @property
    def variants(self) -> set[str]:
        """Names of the variants that ran."""
        return {launch.site.variant for launch in self.launches}

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels that ran, in order."""
        return [launch.site.kernel for launch in self.launches]

    def faults(self) -> list[str]:
        """Every fault that the simulator saw."""
        return [f"{x.site.kernel}/{x.site.variant}: {d}" for x in self.launches for d in x.report.diagnostics]


class Lowering:
    """A function at the tensor level, taken down with the passes that are given; the reference for it at hand.

    `tensor` and `tile` are the passes of the two halves; `tile_sizes` overrides the choices of lin-to-tile, and `arch`
    is the architecture whose instructions may be used.
    """

    def __init__(
        self,
        source: Tensor | Sequence[Tensor] | ModuleOp | str,
        *,
        tensor: Sequence[str] = pipelines.TENSOR,
        tile: Sequence[str] = pipelines.TILE,
        tile_sizes: tuple[int, ...] = (),
        arch: str | None = None,
    ) -> None:
        if isinstance(source, str):
            source = parse(source)
        self.module = source if isinstance(source, ModuleOp) else build_module(source)
        (self.function,) = (op for op in self.module.ops if isinstance(op, func.FuncOp))
        self.tile = tile
        self.planned = self.module.clone()
        self.arch = arch
        passes = [
            LinToTilePass(tile_sizes, arch) if n == "lin-to-tile" else pipelines.make_passes([n])[0] for n in tensor
        ]
        run_pipeline(self.planned, CONTEXT, passes, verify_each=True, on_after=check_facts)
        self.plan = HostPlan(next(op for op in self.planned.ops if isinstance(op, FuncOp)))
        self.sites = {f"{site.kernel}/{site.variant}": site for site in self.plan.sites}
        self.remarks: dict[str, list[Remark]] = {}
        self._programs: dict[str, tuple[Program, Callable[[tuple[int, ...]], tuple[int, ...]]]] = {}

    def program(self, site: Site) -> tuple[Program, Callable[[tuple[int, ...]], tuple[int, ...]]]:
        """A variant compiled for the simulator, and the function that binds its parameters."""
        name = f"{site.kernel}/{site.variant}"
        if name not in self._programs:
            kernel, self.remarks[name] = to_simt(instantiate(self.planned, site.launch, self.arch), self.tile)
            bind = expressions_function([p.data for p in kernel.params.data], self.plan.symbols)
            self._programs[name] = compile_kernel(kernel, "check", aliased=True), bind
        return self._programs[name]

    def call(self, arrays: Sequence[object], variant: str | None = None) -> Call:
        """Run on arrays; with `variant`, each kernel's variant of that name instead of the one that the plan chooses
        (the caller sees to it that what it assumes holds)."""
        arguments = take_arguments(self.plan.arguments, arrays, self.plan.entry)
        decision = self.plan.decide(layouts(self.plan.arguments, arguments))
        results = [aligned_empty(s, p.dtype) for s, p in zip(decision.results, self.plan.results, strict=True)]
        scratch = [
            None if s is None else intake(aligned_empty(s, p.dtype), p.dtype, p.name)
            for s, p in zip(decision.scratch, self.plan.scratch, strict=True)
        ]
        outputs = [intake(r, p.dtype, p.name) for r, p in zip(results, self.plan.results, strict=True)]
        places = {"argument": arguments, "result": outputs, "scratch": scratch}
        launches: list[Launch] = []
        for each in decision.launches:
            site = self.plan.sites[each.site]
            tensors = site.tensors  # the scratch of the case that is taken, whatever variant runs on it
            if variant is not None:
                site = self.sites.get(f"{site.kernel}/{variant}", site)
            program, bind = self.program(site)
            buffers = [buffer_of(places[slot.kind][slot.number]) for slot in tensors]
            values = [scalar_value(arguments[slot.number]) for slot in site.scalars]
            report = program.run(buffers, [*values, *bind(decision.symbols)], grid=each.grid)
            launches.append(Launch(site, program.kernel, report))
        return Call(results, launches, dict(zip(self.plan.symbols, decision.symbols, strict=True)))

    def inputs(self, sizes: Mapping[str, int], seed: int = 0) -> list[Array]:
        """Random arguments of these sizes at aligned addresses."""
        return make_inputs(self.function, sizes, seed)

    def assert_right(self, sizes: Mapping[str, int], variant: str | None = None, strided: bool = False) -> Call:
        """Run on random arguments without a fault of any kind, with results within the bounds of the reference."""
        arrays = self.inputs(sizes)
        expected = run_reference(self.module, self.function.sym_name.data, arrays, dict(sizes))
        call = self.call([spread(a) for a in arrays] if strided else arrays, variant)
        where = f"{dict(sizes)} {[f'{x.site.kernel}/{x.site.variant}' for x in call.launches]}"
        assert call.faults() == [], where
        for number, (got, want) in enumerate(zip(call.results, expected, strict=True)):
            mismatch = compare(got, want)
            assert mismatch is None, f"result {number}, {where}: {mismatch}"
        return call


def spread(array: Array) -> Array:
    """The same values in a larger array: strides that are no multiples of anything, an address off by one element,
    the last dim running backwards."""
    if not array.ndim:
        return array
    shape = tuple(2 * n + 3 for n in array.shape)
    room = np.zeros(shape, array.dtype)
    view = room[tuple(slice(1, 1 + 2 * n, 2) for n in array.shape)][..., ::-1]
    view[...] = array
    return view


TILE_STAGES = pipelines.TILE[: pipelines.TILE.index("tile-to-simt")]
"""The passes that leave tile IR."""


def preserves(source: Tensor | Sequence[Tensor], sizes: Sequence[Mapping[str, int]]) -> list[str]:
    """Execute at the tile level as lin-to-tile leaves it and after each pass of the tile pipeline, in place one after
    the other; results must stay within the reference's bounds. Returns the passes that changed the text."""
    module = build_module(source)
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    name = function.sym_name.data
    runs: list[tuple[list[Array], list[ReferenceValue]]] = []
    for number, each in enumerate(sizes):
        inputs = make_inputs(function, each, number)
        runs.append((inputs, run_reference(module, name, inputs, dict(each))))
    tiled = module.clone()
    run_pipeline(tiled, CONTEXT, pipelines.make_passes(pipelines.TENSOR[:-1]), verify_each=True, on_after=check_facts)
    text, changed = str(tiled), list[str]()
    for stage in ("lin-to-tile", *TILE_STAGES):
        if stage != "lin-to-tile":
            run_pipeline(tiled, CONTEXT, pipelines.make_passes([stage]), verify_each=True, on_after=check_facts)
            if str(tiled) == text:
                continue
            text = str(tiled)
            changed.append(stage)
        for (inputs, expected), each in zip(runs, sizes, strict=True):
            for number, (got, want) in enumerate(zip(interpret_host(tiled, name, inputs), expected, strict=True)):
                mismatch = compare(got, want)
                assert mismatch is None, f"after {stage}, {dict(each)}, result {number}: {mismatch}\n{tiled}"
    return changed
