"""Runs a module at whatever level it stands: reference, tile interpreter, simulator with all checks, or the CPU.

    execute(module, program, "sim")     # the results, one array each; raises Faults for races and the like

`PlannedCall` is one call of a planned module: which launches it makes, on which memory. It runs kernels of the tile
level in the interpreter and kernels of the simt level in the simulator or on the CPU, whoever lowered them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tilewright.api.testing.program import Program
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import FuncOp, LaunchOp
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import KernelOp as SimtKernelOp
from tilewright.dialects.tile.structure import KernelOp as TileKernelOp
from tilewright.dialects.verify import verify_module
from tilewright.lowering import pipelines
from tilewright.lowering.instantiate import instantiate, variant_symbol
from tilewright.runtime.arguments import TensorArgument, intake
from tilewright.runtime.backends.base import aligned_empty, layouts, scalar_value, take_arguments
from tilewright.runtime.backends.sim import buffer_of
from tilewright.runtime.inputs import make_inputs
from tilewright.runtime.plan import HostPlan, Site
from tilewright.runtime.plan_code import expressions_function
from tilewright.runtime.reference import ReferenceValue, run_reference
from tilewright.runtime.sim.async_copies import Landing
from tilewright.runtime.sim.launch import Program as SimProgram
from tilewright.runtime.sim.launch import compile_kernel
from tilewright.runtime.tile_interpreter.host import interpret_host
from tilewright.runtime.tile_interpreter.kernel import PERSISTENT_BLOCKS, interpret

Array = np.ndarray[Any, Any]
Backend = Literal["reference", "tile", "sim", "cpu"]
POISON = 0xFF
"""Every byte of memory that a call has not written: NaN in each float type."""
POISON_INTEGER = 0xA5


class Faults(TilewrightError):
    """What the simulator saw go wrong: races, accesses out of bounds, divergent barriers, uninitialised reads."""


@cache
def context() -> Context:
    """The one context of the process: dialects load into it once, and passes change nothing in it."""
    return make_context()


def parse(program: Program, name: str = "program.mlir") -> ModuleOp:
    """The verified module of a program."""
    module = parse_module(program.text, name, context())
    verify_module(module)
    return module


def entry_of(module: ModuleOp) -> func.FuncOp | FuncOp:
    """The one function of a program: a `func.func`, or the `host.func` over its kernels."""
    found = [op for op in module.ops if isinstance(op, func.FuncOp | FuncOp)]
    if len(found) != 1:
        raise TilewrightError(f"expected a program of one function, got {len(found)}")
    return found[0]


def level_of(module: ModuleOp) -> Literal["tensor", "tile", "simt"]:
    """The lowest level that the module's functions and kernels have reached."""
    if any(isinstance(op, SimtKernelOp) for op in module.ops):
        return "simt"
    return "tile" if any(isinstance(op, TileKernelOp | FuncOp) for op in module.ops) else "tensor"


def arguments_of(program: Program, module: ModuleOp) -> list[Any]:
    """The arrays that a program is called with, at aligned addresses: the same in every process.

    What a tile program means says more of its arguments than its kernels do: which of them pick rows.
    """
    stated = parse_module(program.meaning, "meaning.mlir", context()) if program.meaning else module
    return make_inputs(entry_of(stated), program.sizes, program.seed, program.lane)


def execute(module: ModuleOp, program: Program, backend: Backend) -> list[Array]:
    """The results of the module's function on the program's inputs, one array each.

    A module of the tensor level runs in the `reference`, and is lowered by the pipelines for `tile` (the interpreter,
    on scheduled kernels), `sim` (all checks) and `cpu`. One at the tile level (a `host.func` with its kernels) runs in
    `tile` as it is, and is lowered by the rest of the pipelines for the others. A module whose kernels are at the simt
    level, named as the plan's variants, runs in `sim` and `cpu`. The module is left as it is. Raises TilewrightError
    for what a backend cannot run, `Faults` for what the simulator sees.
    """
    inputs = arguments_of(program, module)
    if backend == "reference":
        return [value.rounded for value in oracle(module, inputs, program.sizes)]
    if backend == "tile" and level_of(module) == "tile":
        return interpret_host(module, None, inputs)
    call = PlannedCall(planned(module), inputs)
    if backend == "tile":
        return call.interpret({site: call.lowered(site, SCHEDULE) for site in call.sites})
    kernels = {site: call.simt(site) for site in call.sites}
    return call.simulate(kernels) if backend == "sim" else call.compute(kernels)


def oracle(module: ModuleOp, inputs: Sequence[Any], sizes: Mapping[str, int]) -> list[ReferenceValue]:
    """The results of a module of the tensor level by the reference, with their bounds."""
    return run_reference(module, entry_of(module).sym_name.data, inputs, sizes)


SCHEDULE = pipelines.TILE[: pipelines.TILE.index("tile-to-simt")]
"""The passes that leave tile IR."""
PLAN = pipelines.TENSOR[pipelines.TENSOR.index("lin-to-tile") + 1 :]
"""The passes that make a launch plan of kernels in tiles."""


def planned(module: ModuleOp) -> ModuleOp:
    """A copy of a module that has its launch plan: lowered from the tensor level, or planned where it is in tiles."""
    made = module.clone()
    if level_of(made) == "tensor":
        pipelines.run(made, context(), pipelines.TENSOR)
    elif any(isinstance(op, LaunchOp) and op.index_width is None for op in made.walk()):
        pipelines.run(made, context(), PLAN)
    return made


@dataclass(frozen=True, slots=True)
class _Launch:
    site: Site
    grid: int
    tensors: list[TensorArgument]
    scalars: list[int | float]


class PlannedCall:
    """One call of a planned module: the launches that the plan decides on for these inputs.

    Results and scratch are poisoned before each run, so that what no kernel writes shows.
    """

    def __init__(self, module: ModuleOp, inputs: Sequence[Any]) -> None:
        self.module = module
        self.plan = HostPlan(next(op for op in module.ops if isinstance(op, FuncOp)))
        self._arguments = take_arguments(self.plan.arguments, inputs, self.plan.entry)
        self._decision = self.plan.decide(layouts(self.plan.arguments, self._arguments))
        self.symbols: dict[str, int] = dict(zip(self.plan.symbols, self._decision.symbols, strict=True))
        self._compiled: dict[SimtKernelOp, SimProgram] = {}
        self.sites: dict[str, Site] = {}
        """The variants that run, by the name of the instantiated kernel."""
        for each in self._decision.launches:
            site = self.plan.sites[each.site]
            self.sites[variant_symbol(site.launch)] = site

    def instantiated(self, name: str) -> ModuleOp:
        """A variant as the tile pipeline gets it."""
        return instantiate(self.module, self.sites[name].launch)

    def lowered(self, name: str, passes: Sequence[str]) -> TileKernelOp | SimtKernelOp:
        """A variant after these passes."""
        module = self.instantiated(name)
        pipelines.run(module, context(), passes)
        return kernel_of(module)

    def simt(self, name: str) -> SimtKernelOp:
        """A variant at the simt level: the module's own where it has one of that name, else lowered."""
        for op in self.module.ops:
            if isinstance(op, SimtKernelOp) and op.sym_name.data in (name, self.sites[name].kernel):
                return op
        kernel = self.lowered(name, pipelines.TILE)
        if not isinstance(kernel, SimtKernelOp):
            raise TilewrightError(f"@{name}: the tile pipeline left no simt.kernel")
        return kernel

    def interpret(self, kernels: Mapping[str, TileKernelOp | SimtKernelOp]) -> list[Array]:
        """Run tile kernels in the interpreter; their facts must hold."""
        results, launches = self._launches()
        for each in launches:
            kernel = kernels[variant_symbol(each.site.launch)]
            if not isinstance(kernel, TileKernelOp):
                raise TilewrightError(f"the tile interpreter runs tile.kernel, got {kernel.name}")
            for relation in kernel.assumes.data:
                if relation.data.symbols <= self.symbols.keys() and not relation.data.holds(self.symbols):
                    raise TilewrightError(f"@{kernel.sym_name.data} assumes {relation.data}, which does not hold")
            arrays = [t.array for t in each.tensors if t.array is not None]
            interpret(kernel, arrays, each.scalars, self.symbols)
        return results

    def simulate(self, kernels: Mapping[str, TileKernelOp | SimtKernelOp], landing: Landing = "latest") -> list[Array]:
        """Run simt kernels in the simulator at level `check`; raises `Faults` for the first launch that has some.

        What runs beside the threads happens at the `latest` or the `earliest` legal moment. A persistent kernel runs on
        few blocks, so that each computes several tiles.
        """

        def launch(kernel: SimtKernelOp, each: _Launch, params: list[int | float]) -> None:
            program = self._compiled.get(kernel)
            if program is None:
                program = self._compiled[kernel] = compile_kernel(kernel, "check", aliased=True)
            of_maps = [e for m in kernel.tensor_maps.data for e in (*m.dims.data, *m.strides.data)]
            sizes = expressions_function(of_maps, self.plan.symbols)(self._decision.symbols)
            size = kernel.cluster_size
            few = -(-PERSISTENT_BLOCKS // size) * size
            grid = each.grid if kernel.persistent is None else min(each.grid, few)
            report = program.run(
                [buffer_of(t) for t in each.tensors], params, grid=grid, map_sizes=sizes, landing=landing
            )
            if report.diagnostics:
                more = f" (and {len(report.diagnostics) - 1} more)" if len(report.diagnostics) > 1 else ""
                raise Faults(f"@{kernel.sym_name.data}: {report.diagnostics[0]}{more}")

        return self._run_simt(kernels, launch)

    def landings(self, kernels: Mapping[str, TileKernelOp | SimtKernelOp]) -> tuple[Landing, ...]:
        """When what runs beside the threads may happen: both extremes where a kernel that was simulated has such."""
        compiled = [self._compiled[k] for k in kernels.values() if isinstance(k, SimtKernelOp) and k in self._compiled]
        return ("latest", "earliest") if any(program.asynchronous for program in compiled) else ("latest",)

    def compute(self, kernels: Mapping[str, TileKernelOp | SimtKernelOp]) -> list[Array]:
        """Compile the C++ of simt kernels and run it; raises TilewrightError without a compiler."""
        from tilewright.lowering.simt_to_cuda import emit_kernel
        from tilewright.runtime.cpu_unit import CpuKernel, CpuSource, build

        simt = [k for k in kernels.values() if isinstance(k, SimtKernelOp)]
        built: dict[SimtKernelOp, CpuKernel] = {}
        if simt:
            sources = [CpuSource(kernel, emit_kernel(kernel, "sm_80")) for kernel in simt]
            built = dict(zip(simt, build(sources), strict=True))

        def launch(kernel: SimtKernelOp, each: _Launch, params: list[int | float]) -> None:
            built[kernel].launch([t.pointer for t in each.tensors], params, each.grid)

        return self._run_simt(kernels, launch)

    def _run_simt(
        self,
        kernels: Mapping[str, TileKernelOp | SimtKernelOp],
        launch: Callable[[SimtKernelOp, _Launch, list[int | float]], None],
    ) -> list[Array]:
        results, launches = self._launches()
        for each in launches:
            kernel = kernels[variant_symbol(each.site.launch)]
            if not isinstance(kernel, SimtKernelOp):
                raise TilewrightError(f"expected a simt.kernel, got {kernel.name}")
            bind = expressions_function([p.data for p in kernel.params.data], self.plan.symbols)
            launch(kernel, each, [*each.scalars, *bind(self._decision.symbols)])
        return results

    def _launches(self) -> tuple[list[Array], list[_Launch]]:
        """Fresh poisoned results, and the launches on them."""
        pairs = zip(self._decision.results, self.plan.results, strict=True)
        results = [poisoned(shape, p.dtype) for shape, p in pairs]
        outputs = [intake(r, p.dtype, p.name) for r, p in zip(results, self.plan.results, strict=True)]
        scratch = [
            None if shape is None else intake(poisoned(shape, p.dtype), p.dtype, p.name)
            for shape, p in zip(self._decision.scratch, self.plan.scratch, strict=True)
        ]
        row = [*self._arguments, *outputs, *scratch]
        chosen = [None if n < 0 else row[n] for n in self._decision.chosen]
        places = {"argument": self._arguments, "result": outputs, "scratch": scratch, "chosen": chosen}
        launches: list[_Launch] = []
        for each in self._decision.launches:
            site = self.plan.sites[each.site]
            tensors = [places[slot.kind][slot.number] for slot in site.tensors]
            scalars = [scalar_value(self._arguments[slot.number]) for slot in site.scalars]
            launches.append(_Launch(site, each.grid, [t for t in tensors if t is not None], scalars))
        return results, launches


def kernel_of(module: ModuleOp) -> TileKernelOp | SimtKernelOp:
    """The one kernel of an instantiated module."""
    found = [op for op in module.ops if isinstance(op, TileKernelOp | SimtKernelOp)]
    if len(found) != 1:
        raise TilewrightError(f"expected a module of one kernel, got {len(found)}")
    return found[0]


def poisoned(shape: tuple[int, ...], dtype: str) -> Array:
    """An aligned array in which every float is NaN, every integer a bit pattern, every boolean true."""
    array = aligned_empty(shape, dtype)
    if array.dtype.kind == "b":
        array[...] = True
    else:
        array.reshape(-1).view(np.uint8)[...] = POISON_INTEGER if array.dtype.kind == "i" else POISON
    return array
