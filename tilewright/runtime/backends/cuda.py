"""Backend `cuda`: the emitted CUDA C++ of the chosen variants, compiled by NVRTC and launched through pycuda."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

import numpy as np

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.types import TmapType
from tilewright.lowering.host_variants import element_bytes
from tilewright.lowering.simt_to_cuda import emit_kernel, kernel_symbol
from tilewright.runtime.arguments import TensorArgument, intake
from tilewright.runtime.backends.base import (
    Backend,
    kind_of,
    layout,
    layouts,
    named,
    scalar_value,
    take_arguments,
    take_outputs,
)
from tilewright.runtime.backends.ready_calls import MapPlan, ReadyCall, ReadyCalls, ReadyLaunch
from tilewright.runtime.backends.torch_tensors import current_streams, keep_for_stream, torch_argument
from tilewright.runtime.cubin_cache import load_or_compile
from tilewright.runtime.cuda_driver import Device, Function
from tilewright.runtime.cuda_driver import device as cuda_device
from tilewright.runtime.dtypes import element_type
from tilewright.runtime.nvrtc import CompiledKernel
from tilewright.runtime.parameters import ParameterLayout
from tilewright.runtime.plan import Decision, PlannedLaunch, Site
from tilewright.runtime.results import empty_like_kind
from tilewright.runtime.streams import stream_handle
from tilewright.runtime.transfers import download, new_on_device, upload
from tilewright.runtime.variants import CompiledEntry, Lowered, VariantKey


@dataclass(frozen=True, slots=True)
class Loaded:
    """A variant on one device."""

    lowered: Lowered
    compiled: CompiledKernel
    function: Function
    threads: int
    smem_bytes: int
    packer: struct.Struct
    """Packs the kernel's parameters: tensor maps, addresses, numbers by value, bound expressions."""
    most_blocks: int
    """Blocks that run at once, which a persistent kernel is launched with at most; else 0."""

    def blocks(self, tiles: int) -> int:
        """How many blocks a launch over so many tiles has."""
        return min(tiles, self.most_blocks) if self.most_blocks else tiles


class CudaBackend(Backend):
    """Takes device tensors as they are; host arrays are copied to the device, and results of host calls back.

    Without `stream`, a call runs on the stream that its first torch argument is on, else on the default stream. Work
    that producers have queued on other streams is waited for, on the GPU.
    """

    name = "cuda"

    def __init__(self, entry: CompiledEntry) -> None:
        super().__init__(entry)
        self._loaded: dict[tuple[VariantKey, int], Loaded] = {}
        self._by_site: dict[tuple[int, int], Loaded] = {}
        """The same by number of the launch in the plan: quicker to look up than facts are."""
        self._lock = threading.Lock()
        self._ready = ReadyCalls(entry.plan.alignment)

    def call(self, args: Sequence[object], out: Sequence[object] | None, stream: object, force: bool) -> list[Any]:
        """Queue the entry's launches; waits for the device only where a result goes to the host."""
        key = self._ready.key(args, out) if stream is None else None
        ready = None if key is None else self._ready.find(key)
        if ready is not None and (done := ready.run(args, out)) is not None:
            self.launches = len(ready.launches)
            return done
        plan = self.entry.plan
        handle = stream_handle(stream) if stream is not None else 0
        arguments = take_arguments(plan.arguments, args, plan.entry, handle)
        if stream is None:
            handle = next((a.stream for a in arguments if a.kind == "torch" and a.stream is not None), 0)
        given: list[TensorArgument] = []
        if out is not None:
            given = take_outputs(plan.results, out, plan.entry, named(plan.arguments, arguments), handle)
        owner = cuda_device(_ordinal([*arguments, *given]))
        for each in (*arguments, *given):
            if each.device == "cuda":
                owner.order(each.stream, handle)
        on_device = [
            a if p.dims is None or a.device == "cuda" else upload(owner, a, handle)
            for p, a in zip(plan.arguments, arguments, strict=True)
        ]
        results: list[Any] = [] if out is None else list(out)
        targets = [g if g.device == "cuda" else new_on_device(owner, g.shape, g.dtype, handle) for g in given]
        decision = plan.decide(
            layouts(plan.arguments, on_device), None if out is None else [layout(t) for t in targets]
        )
        if out is None:
            results, targets = self._new_results(decision.results, arguments, owner, handle)
        scratch = [
            None if shape is None else new_on_device(owner, shape, p.dtype, handle)
            for p, shape in zip(plan.scratch, decision.scratch, strict=True)
        ]
        pointers = [0 if t is None else t.pointer for t in (*on_device, *targets, *scratch)]
        pointers += [0 if n < 0 else pointers[n] for n in decision.chosen]
        self.launches = len(decision.launches)
        launches = [self._ready_launch(each, decision, owner) for each in decision.launches]
        for each, planned in zip(launches, decision.launches, strict=True):
            values = [scalar_value(arguments[slot.number]) for slot in plan.sites[planned.site].scalars]
            try:
                packed = each.pack(pointers, values)
            except struct.error as problem:
                numbers = (*values, *each.scalars)
                raise TilewrightError(f"@{each.function.name}: parameters {numbers}: {problem}") from None
            each.function.launch(each.grid, each.threads, each.smem_bytes, packed, handle)
        for made, target in zip(results, targets, strict=True):
            host = _host_array(made, target)
            if host is not None:
                download(owner, target, host, handle)
        if key is not None and results and all(t.kind == "torch" for t in targets):
            spans = () if out is None else tuple(t.span for t in (*on_device, *targets))
            self._remember(key, decision, launches, owner, results, spans)
        return results

    def _new_results(
        self, shapes: Sequence[tuple[int, ...]], arguments: Sequence[TensorArgument], owner: Device, handle: int
    ) -> tuple[list[Any], list[TensorArgument]]:
        """Results in the caller's kind, and where on the device they are written: what goes to the host at the end is
        written to memory of ours first."""
        results: list[Any] = []
        targets: list[TensorArgument] = []
        streams = current_streams()
        there = [a for a in arguments if a.device == "cuda"]
        for parameter, shape in zip(self.entry.plan.results, shapes, strict=True):
            dtype, ordinal = parameter.dtype, owner.info.ordinal
            if there:
                made = empty_like_kind(kind_of(there), shape, dtype, "cuda", device_index=ordinal, stream=handle)
                target = torch_argument(made, dtype, len(shape), streams) or intake(
                    made, dtype, parameter.name, consumer_stream=handle
                )
                if target.kind == "torch" and handle != target.stream:
                    keep_for_stream(made, handle)
            else:
                made = empty_like_kind(kind_of(arguments), shape, dtype, "host")
                target = new_on_device(owner, shape, dtype, handle)
            results.append(made)
            targets.append(target)
        return results, targets

    def _ready_launch(self, planned: PlannedLaunch, decision: Decision, owner: Device) -> ReadyLaunch:
        """A launch with all but addresses and numbers by value; `slots` are places in a row (`HostPlan.place`)."""
        plan, site = self.entry.plan, self.entry.plan.sites[planned.site]
        loaded = self._by_site.get((planned.site, owner.info.ordinal)) or self._prepare(planned.site, owner)
        if planned.scalars is None:
            planned.scalars = loaded.lowered.scalars(decision.symbols)
        slots = tuple(plan.place(slot) for slot in site.tensors)
        grid = (loaded.blocks(planned.grid), 1, 1)
        return ReadyLaunch(
            loaded.function, grid, loaded.threads, loaded.smem_bytes, loaded.packer, slots, planned.scalars,
            map_plans(loaded.lowered, decision.symbols),
        )  # fmt: skip

    def _remember(
        self,
        key: tuple[Any, ...],
        decision: Decision,
        launches: Sequence[ReadyLaunch],
        owner: Device,
        results: Sequence[Any],
        spans: tuple[tuple[int, int], ...],
    ) -> None:
        """Keep a call on torch tensors; numbers by value never get here, as they are no tensors."""
        plan = self.entry.plan
        scratch = [
            None if shape is None else prod(shape) * element_type(p.dtype).bytes
            for p, shape in zip(plan.scratch, decision.scratch, strict=True)
        ]
        device: Any = results[0].device
        made = tuple((shape, r.dtype) for shape, r in zip(decision.results, results, strict=True))
        tensors = len(plan.arguments) + len(plan.results)
        call = ReadyCall.of(owner, made, scratch, decision.chosen, launches, device, spans, tensors)
        self._ready.remember(key, call)

    def _prepare(self, number: int, owner: Device) -> Loaded:
        found = self._by_site[number, owner.info.ordinal] = self.load(self.entry.plan.sites[number], owner)
        return found

    def source(self, site: Site) -> str:
        """The CUDA C++ of a variant."""
        return emit_kernel(self.entry.lower(site).kernel, self.entry.arch)

    def load(self, site: Site, owner: Device) -> Loaded:
        """The variant ready to be launched on a device; compiled when first asked for."""
        key = (self.entry.key(site), owner.info.ordinal)
        found = self._loaded.get(key)
        if found is not None:
            return found
        lowered = self.entry.lower(site)
        with self._lock:
            if key not in self._loaded:
                same = [v for (_, n), v in self._loaded.items() if n == key[1] and v.lowered.kernel is lowered.kernel]
                if same:
                    self._loaded[key] = replace(same[0], lowered=lowered)
                    return self._loaded[key]
                started = time.perf_counter()
                compiled = load_or_compile(self.source(site), self.entry.arch)
                kinds, symbol = parameter_kinds(lowered), kernel_symbol(lowered.kernel)
                if lowered.kernel.maps:
                    parameters = ParameterLayout.from_cubin(compiled.cubin, symbol, kinds)
                else:
                    parameters = ParameterLayout.of(kinds)
                function = owner.load_module(compiled.cubin).function(symbol, parameters)
                threads, smem_bytes = lowered.kernel.threads.value.data, lowered.kernel.smem.value.data
                # Asked of all: it loads the kernel for streams of others too, which later would wait for the device.
                resident = max(1, function.occupancy(threads, smem_bytes))
                most = 0
                if lowered.kernel.persistent is not None:
                    most = owner.info.multiprocessors * resident
                    cluster = lowered.kernel.cluster_size
                    most = max(cluster, most // cluster * cluster)
                self._loaded[key] = Loaded(lowered, compiled, function, threads, smem_bytes, parameters.packer, most)
                self.entry.compile_seconds += time.perf_counter() - started
            return self._loaded[key]

    def details(self, site: Site) -> dict[str, Any]:
        """Registers, spills, stack, shared memory and occupancy of a variant that has been compiled."""
        loaded = next((v for (key, _), v in self._loaded.items() if key == self.entry.key(site)), None)
        if loaded is None:
            return {}
        used = loaded.compiled.resources.get(kernel_symbol(loaded.lowered.kernel))
        return {
            "registers": loaded.function.info.registers,
            "spill_bytes": None if used is None else used.spill_store_bytes + used.spill_load_bytes,
            "stack_bytes": None if used is None else used.stack_bytes,
            "smem_bytes": loaded.smem_bytes + loaded.function.info.static_smem_bytes,
            "occupancy": loaded.function.occupancy(loaded.threads, loaded.smem_bytes),
        }


def parameter_kinds(lowered: Lowered) -> list[str]:
    """Kinds of the kernel's parameters in order, as the launch packs them."""
    kernel = lowered.kernel
    kinds = ["tensor_map"] * len(kernel.maps) + ["ptr"] * len(kernel.pointers)
    for value in (*kernel.values, *kernel.scalars):
        kinds.append({"index": "i64"}.get(str(value.type), str(value.type)))
    return kinds


def map_plans(lowered: Lowered, symbols: tuple[int, ...]) -> tuple[MapPlan, ...]:
    """The kernel's tensor maps for these values of the plan's symbols; addresses are still open."""
    kernel = lowered.kernel
    if not kernel.maps:
        return ()
    sizes = lowered.map_sizes(symbols)
    found: list[MapPlan] = []
    at = 0
    for argument, made in zip(kernel.maps, kernel.tensor_maps.data, strict=True):
        assert isinstance(argument.type, TmapType)
        rank = len(argument.type.box)
        dims, strides = sizes[at : at + rank], sizes[at + rank : at + 2 * rank]
        at += 2 * rank
        element = argument.type.element
        found.append(
            MapPlan(
                made.pointer.data, str(element), element_bytes(element), dims, strides, argument.type.box,
                made.swizzle.data,
            )
        )  # fmt: skip
    return tuple(found)


def _ordinal(arguments: Sequence[TensorArgument]) -> int:
    found = {a.device_index for a in arguments if a.device == "cuda"}
    if len(found) > 1:
        raise TilewrightError(f"expected tensors on one CUDA device, got devices {', '.join(map(str, sorted(found)))}")
    return found.pop() if found else 0


def _host_array(made: Any, target: TensorArgument) -> np.ndarray[Any, Any] | None:
    """The host memory of a result that the device tensor is to be copied into; None when it is on the device."""
    if isinstance(made, np.ndarray):
        return cast("np.ndarray[Any, Any]", made)
    if hasattr(made, "__dlpack_device__") and made.__dlpack_device__()[0] == 1:
        return intake(made, target.dtype, "out").array
    return None
