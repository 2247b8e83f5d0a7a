"""Calls on torch tensors whose layouts have come before: everything but addresses is known, so nothing is checked anew.

A call is remembered under the layouts of its arguments (sizes, strides, address modulo the plan's alignment, element
type, device), which is all that the plan's decision and the checks of arguments depend on.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilewright.runtime.backends.torch_tensors import raw_stream
from tilewright.runtime.cuda_driver import Device, Function
from tilewright.runtime.streams import normalised
from tilewright.runtime.transfers import new_on_device

REMEMBERED: Final = 256
"""Layouts that are kept; when there are more, all are forgotten and met anew."""


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


@dataclass(frozen=True, slots=True)
class ReadyCall:
    """A remembered call: addresses are those of the arguments, then the results, then scratch."""

    owner: Device
    results: tuple[tuple[tuple[int, ...], Any], ...]
    """Shape and torch dtype of each."""
    scratch: tuple[tuple[tuple[int, ...], str] | None, ...]
    """Shape and element type of each; None for scratch that this call does not need."""
    launches: tuple[ReadyLaunch, ...]
    device: Any
    """torch's name of the device."""

    def run(self, args: Sequence[Any]) -> list[Any]:
        """Queue the launches on torch's current stream; the new results."""
        torch: Any = sys.modules["torch"]
        stream = normalised(raw_stream(self.owner.info.ordinal))
        results = [torch.empty(shape, dtype=dtype, device=self.device) for shape, dtype in self.results]
        pointers: list[int] = [each.data_ptr() for each in args]
        pointers += [each.data_ptr() for each in results]
        held: list[Any] = []
        for wanted in self.scratch:
            if wanted is None:
                pointers.append(0)
                continue
            tensor = new_on_device(self.owner, *wanted, stream)
            held.append(tensor)  # its memory goes back to the pool, for later work on this stream, when we are through
            pointers.append(tensor.pointer)
        for each in self.launches:
            packed = each.packer.pack(*[pointers[slot] for slot in each.slots], *each.scalars)
            each.function.launch(each.grid, each.threads, each.smem_bytes, packed, stream)
        return results


class ReadyCalls:
    """The calls that one entry remembers. `alignment` is the plan's."""

    def __init__(self, alignment: int) -> None:
        self.alignment = alignment
        self._calls: dict[tuple[Any, ...], ReadyCall] = {}

    def key(self, args: Sequence[Any]) -> tuple[Any, ...] | None:
        """What a call on these arguments is remembered under; None unless all are plain torch tensors on a GPU."""
        torch = sys.modules.get("torch")
        if torch is None:
            return None
        kind, strided, alignment = torch.Tensor, torch.strided, self.alignment
        parts: list[Any] = []
        for arg in args:
            if type(arg) is not kind or not arg.is_cuda or arg.layout is not strided:
                return None
            if arg.requires_grad or arg.is_neg():
                return None
            parts += (arg.shape, arg.stride(), arg.dtype, arg.data_ptr() % alignment, arg.get_device())
        return tuple(parts) if parts else None

    def find(self, key: tuple[Any, ...]) -> ReadyCall | None:
        """The remembered call, if there is one."""
        return self._calls.get(key)

    def remember(self, key: tuple[Any, ...], call: ReadyCall) -> None:
        """Keep a call for the next time."""
        if len(self._calls) >= REMEMBERED:
            self._calls.clear()
        self._calls[key] = call
