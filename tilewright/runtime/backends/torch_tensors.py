"""torch tensors on a GPU, read by their own attributes: a tenth of what DLPack costs a call. torch is never imported.

What is out of the ordinary (gradients, lazy negation, sparse layouts, subclasses, another element type) is left to the
door that every argument can take, `arguments.intake`, which knows what to say about it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from tilewright.runtime.arguments import TensorArgument, normalised_strides
from tilewright.runtime.results import TORCH_NAMES
from tilewright.runtime.streams import normalised


def torch_argument(obj: Any, dtype: str, rank: int, stream: Callable[[int], int]) -> TensorArgument | None:
    """`obj` as an argument if it is a plain torch tensor on a GPU with this element type and rank, else None.

    `stream` gives torch's current stream of a device; ask `current_streams` for it once a call.
    """
    torch = sys.modules.get("torch")
    if torch is None or type(obj) is not torch.Tensor or not obj.is_cuda:
        return None
    if obj.dtype is not torch_dtype(dtype) or obj.dim() != rank:
        return None
    if obj.requires_grad or obj.layout is not torch.strided or obj.is_neg() or obj.is_conj():
        return None
    shape, strides = tuple(obj.shape), obj.stride()
    if 0 in shape or 1 in shape:
        strides = normalised_strides(shape, strides)
    ordinal: int = obj.device.index
    return TensorArgument(
        dtype, shape, strides, obj.data_ptr(), "cuda", "torch", obj, device_index=ordinal, stream=stream(ordinal)
    )


def current_streams() -> Callable[[int], int]:
    """A function from a device's number to the handle of torch's current stream there, asked for once each."""
    known: dict[int, int] = {}

    def of(ordinal: int) -> int:
        found = known.get(ordinal)
        if found is None:
            found = known[ordinal] = normalised(raw_stream(ordinal))
        return found

    return of


def keep_for_stream(tensor: Any, handle: int) -> None:
    """Tell torch's allocator that a tensor is in use on this stream, so that its memory is not handed out too early."""
    torch: Any = sys.modules["torch"]
    tensor.record_stream(torch.cuda.ExternalStream(handle) if handle else torch.cuda.default_stream(tensor.device))


@cache
def torch_dtype(dtype: str) -> Any:
    """torch's dtype of an element type, or None."""
    return getattr(sys.modules["torch"], TORCH_NAMES[dtype], None)


def raw_stream(ordinal: int) -> int:
    """Handle of torch's current stream on a device."""
    return _raw_stream()(ordinal)


@cache
def _raw_stream() -> Callable[[int], int]:
    """torch's own way to a stream's handle without making an object of it (as Triton uses it), else the public one."""
    torch: Any = sys.modules["torch"]
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return raw or (lambda ordinal: torch.cuda.current_stream(ordinal).cuda_stream)
