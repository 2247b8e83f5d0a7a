"""What every backend does the same way: take arguments in, check outputs, give results back in the caller's kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright.diagnostics import TilewrightError
from tilewright.runtime import dtypes
from tilewright.runtime.arguments import ArgumentKind, TensorArgument, intake
from tilewright.runtime.backends.torch_tensors import current_streams, torch_argument
from tilewright.runtime.binding import Layout
from tilewright.runtime.numerics import expect_possible
from tilewright.runtime.output_rules import check_output
from tilewright.runtime.plan import Parameter, Site
from tilewright.runtime.variants import CompiledEntry

ALIGNMENT = 256
"""Bytes that every tensor of ours is aligned to, as the plan assumes of what it allocates."""


class Backend(ABC):
    """One way to run entries. `launches` counts those of the last call."""

    name: str

    def __init__(self, entry: CompiledEntry) -> None:
        self.entry = entry
        self.launches = 0

    @abstractmethod
    def call(self, args: Sequence[object], out: Sequence[object] | None, stream: object, force: bool) -> list[Any]:
        """Run the entry; the results, which are `out` where it is given."""

    @property
    def reason(self) -> str | None:
        """Why it is this backend, in one line, where that depends on the call."""
        return None

    def details(self, site: Site) -> dict[str, Any]:
        """What is known of a variant's use of the machine: keys of `Kernel.stats()['kernels']`."""
        return {}


def take_arguments(
    parameters: Sequence[Parameter], args: Sequence[object], entry: str, consumer_stream: int = 0
) -> list[TensorArgument]:
    """The call's arguments, each checked for element type and rank; a count that differs is an error."""
    if len(args) != len(parameters):
        names = ", ".join(p.name for p in parameters)
        raise TilewrightError(f"@{entry}: expected {len(parameters)} arguments ({names}), got {len(args)}")
    streams = current_streams()
    taken: list[TensorArgument] = []
    for number, (parameter, arg) in enumerate(zip(parameters, args, strict=True)):
        dtype, rank = parameter.dtype, 0 if parameter.dims is None else len(parameter.dims)
        taken.append(
            torch_argument(arg, dtype, rank, streams)
            or intake(arg, dtype, parameter.name, index=number, rank=rank, consumer_stream=consumer_stream)
        )
    return taken


def take_outputs(
    parameters: Sequence[Parameter],
    out: Sequence[object],
    entry: str,
    inputs: Mapping[str, TensorArgument],
    consumer_stream: int = 0,
) -> list[TensorArgument]:
    """The caller's output tensors: element type, rank, and that nothing else shares their memory."""
    if len(out) != len(parameters):
        raise TilewrightError(f"@{entry}: out: expected {len(parameters)} tensors, got {len(out)}")
    streams = current_streams()
    taken: list[TensorArgument] = []
    for number, (parameter, each) in enumerate(zip(parameters, out, strict=True)):
        name = "out" if len(out) == 1 else f"out[{number}]"
        dtype, rank = parameter.dtype, len(parameter.dims or ())
        found = torch_argument(each, dtype, rank, streams) or intake(
            each, dtype, name, rank=rank, writable=True, consumer_stream=consumer_stream
        )
        others = {f"out[{n}]": earlier for n, earlier in enumerate(taken)}
        check_output(found, {**inputs, **others}, name)
        taken.append(found)
    return taken


def layout(argument: TensorArgument) -> Layout:
    """The argument as the plan sees it."""
    return Layout(argument.shape, argument.strides, argument.pointer)


def layouts(parameters: Sequence[Parameter], arguments: Sequence[TensorArgument]) -> list[Layout | None]:
    """Layouts of the tensor arguments, None for scalars."""
    return [None if p.dims is None else layout(a) for p, a in zip(parameters, arguments, strict=True)]


def named(parameters: Sequence[Parameter], arguments: Sequence[TensorArgument]) -> dict[str, TensorArgument]:
    """The tensor arguments by name, for messages."""
    return {p.name: a for p, a in zip(parameters, arguments, strict=True) if p.dims is not None}


def kind_of(arguments: Sequence[TensorArgument]) -> ArgumentKind:
    """The kind that results have: that of the first argument that is a tensor, else NumPy."""
    kinds: list[ArgumentKind] = [a.kind for a in arguments if a.kind != "scalar"]
    return kinds[0] if kinds else "numpy"


def scalar_value(argument: TensorArgument) -> int | float:
    """The Python number of an argument by value."""
    if argument.array is None:
        raise TilewrightError(f"expected a number in host memory, got one on {argument.device}")
    value = argument.array.reshape(()).item()
    return value if isinstance(value, int | float) else float(value)


def aligned_empty(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """An uninitialised NumPy array at an address that `ALIGNMENT` divides."""
    kind = dtypes.element_type(dtype).numpy_dtype()
    size = prod(shape) * kind.itemsize
    expect_possible(shape, size)
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(kind).reshape(shape)


def expect_host(arguments: Sequence[TensorArgument], backend: str) -> None:
    """An error for memory that is not the host's."""
    for number, argument in enumerate(arguments):
        if argument.array is None:
            raise TilewrightError(f"argument {number}: backend {backend} expects host memory, got {argument.device}")
