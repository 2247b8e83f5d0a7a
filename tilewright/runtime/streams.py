"""CUDA streams as plain handles: the number that the driver knows a stream by.

0 is the legacy default stream. The array protocols write it as 1, which the driver takes for the same stream; here it
is 0 always, so that handles compare. 2 is the per-thread default stream.
"""

from __future__ import annotations

import sys
from typing import Any

from tilewright.diagnostics import TilewrightError


def stream_handle(stream: object) -> int:
    """The handle of a stream: an int; None, the legacy default stream; or an object with `cuda_stream` (torch),
    `__cuda_stream__` (cuda.core and others), `ptr` (CuPy) or `handle` (pycuda)."""
    if stream is None:
        return 0
    found: Any = stream
    if callable(protocol := getattr(stream, "__cuda_stream__", None)):
        answer: Any = protocol()  # (version of the protocol, handle)
        found = answer[1]
    else:
        for attribute in ("cuda_stream", "ptr", "handle"):
            if hasattr(stream, attribute):
                found = getattr(stream, attribute)
                break
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise TilewrightError(
            f"stream: expected a handle (int) or an object with cuda_stream, got {type(stream).__name__}"
        )
    return normalised(found)


def normalised(handle: int) -> int:
    """The one number for each stream: 1 and 0 both name the legacy default stream."""
    return 0 if handle == 1 else handle


def is_torch_tensor(obj: object) -> bool:
    """Whether `obj` is a torch.Tensor; never imports torch."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and isinstance(obj, torch.Tensor)


def current_stream_of(obj: object) -> int | None:
    """Handle of the stream on which the producer of `obj` queues its work now: for torch tensors on a GPU torch's
    current stream of that device, else the `stream` of `__cuda_array_interface__`. None when there is nothing to wait
    for, or nothing is known."""
    if is_torch_tensor(obj):
        tensor: Any = obj
        if not tensor.is_cuda:
            return None
        return normalised(sys.modules["torch"].cuda.current_stream(tensor.device).cuda_stream)
    interface: Any = getattr(obj, "__cuda_array_interface__", None)
    return None if interface is None else stream_of_interface(interface)


def stream_of_interface(interface: dict[str, Any]) -> int | None:
    """The stream that `__cuda_array_interface__` (version 3) names; 0 is forbidden there for being ambiguous."""
    stream = interface.get("stream")
    if stream is None:
        return None
    if isinstance(stream, bool) or not isinstance(stream, int) or stream <= 0:
        raise TilewrightError(f"__cuda_array_interface__: expected stream None or a handle from 1 up, got {stream!r}")
    return normalised(stream)
