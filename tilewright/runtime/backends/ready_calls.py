"""Calls on torch tensors whose layouts have come before: everything but addresses is known, so nothing is checked anew.

A call is remembered under the layouts of its arguments (sizes, strides, address modulo the plan's alignment, element
type, device), which is all that the plan's decision and the checks of arguments depend on.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tilewright.runtime.backends.torch_tensors import raw_stream
from tilewright.runtime.cuda_driver import Device, Function
from tilewright.runtime.memory_pool import Allocation
from tilewright.runtime.streams import normalised
from tilewright.runtime.tensor_maps import tensor_map

REMEMBERED: Final = 256
"""Layouts that are kept; when there are more, all are forgotten and met anew."""
ADDRESSES: Final = 64
"""Addresses whose maps a launch keeps; when there are more, all are forgotten."""
SCRATCH_ALIGNMENT: Final = 256
"""What offsets of scratch tensors in the one block of a call are multiples of, as allocations are."""


@dataclass(frozen=True, slots=True)
class MapPlan:
    """A tensor map whose address alone is open: that of the launch's pointer of this number. See `tensor_map`."""

    pointer: int
    element: str
    element_bytes: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    known: dict[int, bytes] = field(default_factory=dict[int, bytes], compare=False, repr=False)
    """Maps by address: quicker to find than by all that `tensor_map` takes."""

    def at(self, address: int) -> bytes:
        """The map of the tensor at an address. The caller has the device's context current."""
        found = tensor_map(address, self.element, self.element_bytes, self.dims, self.strides, self.box, self.swizzle)
        if len(self.known) >= ADDRESSES:
            self.known.clear()
        self.known[address] = found
        return found


@dataclass(frozen=True, slots=True)
class ReadyLaunch:
    """A launch whose pointers alone are open: `slots` says which of the call's addresses go where."""

    function: Function
    grid: tuple[int, int, int]
    threads: int
    smem_bytes: int
    packer: struct.Struct
    slots: tuple[int, ...]
    scalars: tuple[int, ...]
    maps: tuple[MapPlan, ...] = ()

    def pack(self, pointers: Sequence[int], values: Sequence[int | float] = ()) -> bytes:
        """The parameters of a launch on these addresses of the call, with these numbers by value."""
        own = [pointers[slot] for slot in self.slots]
        if not self.maps:
            return self.packer.pack(*own, *values, *self.scalars)
        maps = [m.known.get(own[m.pointer]) for m in self.maps]
        if None in maps:
            with self.function.device.current():  # the driver encodes a map in a context
                maps = [m.at(own[m.pointer]) for m in self.maps]
        return self.packer.pack(*maps, *own, *values, *self.scalars)

    def on(self, places: Mapping[int, int]) -> ReadyLaunch:
        """The same with slots that count in another row: old number -> new one."""
        return replace(self, slots=tuple(places[slot] for slot in self.slots))


@dataclass(frozen=True, slots=True)
class ReadyCall:
    """A remembered call: addresses are those of the arguments, then the results, then the scratch that it needs.

    For a call with outputs of the caller, which may be anywhere, `spans` has the bytes that each argument and output
    touches around its address: an output may share none with another tensor.
    """

    owner: Device
    results: tuple[tuple[tuple[int, ...], Any], ...]
    """Shape and torch dtype of each."""
    scratch_bytes: int
    """Bytes of the block that all scratch tensors of the call lie in."""
    scratch: tuple[int, ...]
    """Where in the block each of them starts."""
    launches: tuple[ReadyLaunch, ...]
    device: Any
    """torch's name of the device."""
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(
        cls,
        owner: Device,
        results: tuple[tuple[tuple[int, ...], Any], ...],
        scratch: Sequence[int | None],
        chosen: Sequence[int],
        launches: Sequence[ReadyLaunch],
        device: Any,
        spans: tuple[tuple[int, int], ...],
        tensors: int,
    ) -> ReadyCall:
        """A call with so many argument and result `tensors` in all.

        The launches' slots count these, then the plan's scratch tensors (`scratch` has their bytes, None for those that
        this call does not need), then what its dispatches give (`chosen`: numbers in the same row, -1 for none). A
        plan has tens of both, of which a call needs few.
        """
        places = {n: n for n in range(tensors)}
        starts: list[int] = []
        end = 0
        for number, size in enumerate(scratch, tensors):
            if size is not None:
                places[number] = tensors + len(starts)
                starts.append(end)
                end += -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
        first = tensors + len(scratch)
        places |= {first + n: places[number] for n, number in enumerate(chosen) if number in places}
        ready = tuple(launch.on(places) for launch in launches)
        return cls(owner, results, end, tuple(starts), ready, device, spans)

    def run(self, args: Sequence[Any], out: Sequence[Any] | None) -> list[Any] | None:
        """Queue the launches on torch's current stream; the results. None, and nothing is done, where an output comes
        so near to another tensor that it takes a closer look."""
        pointers: list[int] = [each.data_ptr() for each in args]
        if out is None:
            torch: Any = sys.modules["torch"]
            results = [torch.empty(shape, dtype=dtype, device=self.device) for shape, dtype in self.results]
            pointers += [each.data_ptr() for each in results]
        else:
            results = list(out)
            pointers += [each.data_ptr() for each in results]
            if self._meet(pointers, len(args)):
                return None
        stream = normalised(raw_stream(self.owner.info.ordinal))
        memory: Allocation | None = None
        if self.scratch_bytes:
            memory = self.owner.allocate(self.scratch_bytes, stream)
            pointers += [memory.pointer + start for start in self.scratch]
        for each in self.launches:
            each.function.launch(each.grid, each.threads, each.smem_bytes, each.pack(pointers), stream)
        if memory is not None:
            memory.free()  # back to the pool, for later work on this stream
        return results

    def _meet(self, pointers: Sequence[int], first_output: int) -> bool:
        """Whether the bytes from the first to the last of an output meet those of an argument or an earlier output."""
        places = [(p + low, p + high) for p, (low, high) in zip(pointers, self.spans, strict=True)]
        for number in range(first_output, len(places)):
            low, high = places[number]
            for start, end in places[:number]:
                if low < end and start < high:
                    return True
        return False


class ReadyCalls:
    """The calls that one entry remembers. `alignment` is the plan's."""

    def __init__(self, alignment: int) -> None:
        self.alignment = alignment
        self._calls: dict[tuple[Any, ...], ReadyCall] = {}

    def key(self, args: Sequence[Any], out: Sequence[Any] | None) -> tuple[Any, ...] | None:
        """What a call on these tensors is remembered under; None unless all are plain torch tensors on a GPU."""
        torch = sys.modules.get("torch")
        if torch is None:
            return None
        kind, strided, alignment = torch.Tensor, torch.strided, self.alignment
        parts: list[Any] = [out is None]
        for arg in args if out is None else (*args, *out):
            if type(arg) is not kind or not arg.is_cuda or arg.layout is not strided:
                return None
            if arg.requires_grad or arg.is_neg():
                return None
            parts += (arg.shape, arg.stride(), arg.dtype, arg.data_ptr() % alignment, arg.get_device())
        return tuple(parts) if args else None

    def find(self, key: tuple[Any, ...]) -> ReadyCall | None:
        """The remembered call, if there is one."""
        return self._calls.get(key)

    def remember(self, key: tuple[Any, ...], call: ReadyCall) -> None:
        """Keep a call for the next time."""
        if len(self._calls) >= REMEMBERED:
            self._calls.clear()
        self._calls[key] = call
