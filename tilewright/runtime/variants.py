"""One entry of a program through the pipelines: the tensor half once, each kernel variant when it is first wanted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, get_args

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import FuncOp
from tilewright.dialects.location import location_of
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.sym import Expr, Relation, RequireOp, SymbolOp
from tilewright.lowering import pipelines
from tilewright.lowering.instantiate import instantiate, variant_symbol
from tilewright.lowering.same_kernels import canonical_form
from tilewright.lowering.targets.limits import cuda_limits
from tilewright.passes.pipeline import run_pipeline
from tilewright.runtime.plan import HostPlan, Site
from tilewright.runtime.plan_code import expressions_function

Level = Literal["tensor", "tile", "scheduled", "simt", "host"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)


@dataclass(frozen=True, slots=True)
class Lowered:
    """A variant at the simt level. `scalars` maps the values of the plan's symbols to those of the kernel's params."""

    name: str
    module: ModuleOp
    kernel: KernelOp
    scalars: Callable[[tuple[int, ...]], tuple[int, ...]]
    map_sizes: Callable[[tuple[int, ...]], tuple[int, ...]]
    """The same for the kernel's tensor maps: sizes, then strides, of one after the other."""


VariantKey = tuple[str, int, tuple[Relation, ...], str]
"""Kernel, index width, assumed facts, architecture: all that a variant's code depends on within one program."""


class CompiledEntry:
    """A tensor-level function and everything that is made from it, each at most once.

    `module` is kept as it was (a copy) for the reference and for `ir`; functions other than `entry` are left out. The
    `arch` picks what variants are lowered for; the plan chooses among them for a device of so many `processors` (the
    architecture's by default), which no kernel depends on.
    """

    def __init__(self, module: ModuleOp, entry: str, arch: str, processors: int | None = None) -> None:
        self.module = copy_module(module)
        for each in list(self.module.ops):
            if isinstance(each, func.FuncOp) and each.sym_name.data != entry:
                each.detach()
                each.erase()
        self.entry = entry
        self.arch = arch
        self.processors = processors
        self.pipeline_runs = 0
        self.compile_seconds = 0.0
        """Time spent in pipelines, and by backends in compilers behind them, so far."""
        self._lowered: dict[VariantKey, Lowered] = {}
        self._locks: dict[VariantKey, threading.Lock] = {}
        self._forms: dict[str, tuple[str, ModuleOp, KernelOp, tuple[str, ...]]] = {}
        """Kernels by what they are made from, names aside: name, module, kernel, and its symbols in order."""
        self._form_locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._plan_lock = threading.Lock()
        self._planned: tuple[ModuleOp, HostPlan] | None = None

    @cached_property
    def context(self) -> Context:
        """The context that passes get."""
        return make_context()

    @property
    def function(self) -> func.FuncOp:
        """The entry at the tensor level."""
        return next(op for op in self.module.ops if isinstance(op, func.FuncOp))

    @property
    def planned(self) -> tuple[ModuleOp, HostPlan]:
        """Kernels with their launch plan, and the plan compiled: the tensor half of the compiler, run once."""
        if self._planned is None:
            with self._plan_lock:
                if self._planned is None:
                    self.pipeline_runs += 1
                    started = time.perf_counter()
                    module = self._tensor_half(pipelines.TENSOR)
                    plan = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == self.entry)
                    self._planned = module, HostPlan(plan)
                    self.compile_seconds += time.perf_counter() - started
        return self._planned

    @property
    def plan(self) -> HostPlan:
        """The compiled launch plan."""
        return self.planned[1]

    @property
    def sites(self) -> Mapping[str, Site]:
        """The variants of the plan by `kernel/variant`, in the plan's order."""
        found: dict[str, Site] = {}
        for site in self.plan.sites:
            found.setdefault(f"{site.kernel}/{site.variant}", site)
        return found

    def key(self, site: Site) -> VariantKey:
        """What the variant of a launch is kept under."""
        return site.kernel, site.index_width, site.assumes, self.arch

    def is_lowered(self, site: Site) -> bool:
        """Whether the variant has been lowered in this process."""
        return self.key(site) in self._lowered

    def lower(self, site: Site) -> Lowered:
        """The variant that a launch asks for at the simt level; lowered when first asked for, by one thread.

        Of variants that differ in names alone the first is lowered: the others have its `kernel` and its `name`.
        """
        key = self.key(site)
        found = self._lowered.get(key)
        if found is not None:
            return found
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._lowered:
                started = time.perf_counter()
                self._lowered[key] = self._lower(site)
                self.compile_seconds += time.perf_counter() - started
            return self._lowered[key]

    def ir(self, level: str) -> str:
        """The program's text at a level: `tensor`, `tile`, `scheduled` and `simt` (all variants), `host` (the plan)."""
        if level not in LEVELS:
            raise TilewrightError(f"level: expected one of {', '.join(LEVELS)}, got {level!r}")
        if level in ("tensor", "tile"):
            return str(self._tensor_half(_up_to(pipelines.TENSOR, pipelines.STAGE_ENDS[level])))
        if level == "host":
            symbols = [op for op in self.planned[0].ops if isinstance(op, SymbolOp | RequireOp | FuncOp)]
            return str(ModuleOp([copy_op(op) for op in symbols]))
        kernels: list[Operation] = []
        if level == "simt":
            distinct = dict.fromkeys(self.lower(site).kernel for site in self.sites.values())
            kernels.extend(copy_op(kernel) for kernel in distinct)
        seen: set[str] = set()
        for site in self.sites.values() if level == "scheduled" else ():
            module = instantiate(self.planned[0], site.launch, self.arch)
            form, _ = canonical_form(module)
            if form in seen:
                continue
            seen.add(form)
            self._schedule(module, _up_to(pipelines.TILE, pipelines.STAGE_ENDS[level]))
            kernels.extend(copy_op(op) for op in module.ops if not isinstance(op, SymbolOp | RequireOp))
        symbols = [copy_op(op) for op in self.planned[0].ops if isinstance(op, SymbolOp | RequireOp)]
        return str(ModuleOp([*symbols, *kernels]))

    def _tensor_half(self, names: Sequence[str]) -> ModuleOp:
        module = copy_module(self.module)
        pipelines.run(module, self.context, names, arch=self.arch, processors=self.processors)
        return module

    def _schedule(self, module: ModuleOp, names: Sequence[str]) -> None:
        """Run passes of the tile pipeline within the limits of the architecture."""
        run_pipeline(module, self.context, pipelines.make_passes(names, cuda_limits(self.arch).pass_options()))

    def _lower(self, site: Site) -> Lowered:
        module = instantiate(self.planned[0], site.launch, self.arch)
        form, symbols = canonical_form(module)
        with self._lock:
            lock = self._form_locks.setdefault(form, threading.Lock())
        with lock:
            found = self._forms.get(form)
            if found is None:
                name = variant_symbol(site.launch)
                self._schedule(module, pipelines.TILE)
                kernel = next((op for op in module.ops if isinstance(op, KernelOp)), None)
                if kernel is None:
                    raise TilewrightError(f"@{name}: the tile pipeline left no simt.kernel", location_of(site.launch))
                found = self._forms[form] = name, module, kernel, symbols
        name, module, kernel, others = found
        meant: dict[str, Expr | int] = {a: Expr.symbol(b) for a, b in zip(others, symbols, strict=True) if a != b}
        params = [p.data.substitute(meant) for p in kernel.params.data]
        of_maps = [e.substitute(meant) for m in kernel.tensor_maps.data for e in (*m.dims.data, *m.strides.data)]
        plan = self.plan
        for expr in (*params, *of_maps):
            unknown = sorted(expr.symbols - (set(plan.symbols) - plan.bases))
            if unknown:
                raise TilewrightError(f"@{name}: parameter {expr} needs {', '.join(unknown)}, which no call binds")
        scalars, map_sizes = (expressions_function(e, plan.symbols) for e in (params, of_maps))
        return Lowered(name, module, kernel, scalars, map_sizes)


def _up_to(names: Sequence[str], last: str) -> Sequence[str]:
    return names[: names.index(last) + 1]


def copy_op(op: Operation) -> Operation:
    """A clone that keeps the locations, which `clone` drops."""
    made = op.clone()
    for old, new in zip(op.walk(), made.walk(), strict=True):
        new.location = old.location
    return made


def copy_module(module: ModuleOp) -> ModuleOp:
    """A clone of a module that keeps the locations."""
    made = copy_op(module)
    assert isinstance(made, ModuleOp)
    return made
