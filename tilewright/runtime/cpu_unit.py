"""Kernels of the `cpu` backend: a translation unit of several sources, compiled, loaded and launched through ctypes.

The sources are those that the GPU gets, to the letter. The shim stands in front of them, and behind each one a function
that takes the launch's numbers.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
from xdsl.ir import Attribute, Operation

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.simt.async_copy import CpAsyncOp, CpAsyncWaitOp
from tilewright.dialects.simt.matrix import LdmatrixOp, MmaSyncOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.sync import BarrierOp, ShuffleOp
from tilewright.lowering.simt_to_cuda import kernel_symbol
from tilewright.lowering.simt_to_cuda.fragment_maps import fragment_maps
from tilewright.lowering.simt_to_cuda.hopper import HOPPER
from tilewright.runtime.numerics import storage_dtype
from tilewright.runtime.object_cache import load_or_compile

MAX_WORKERS: Final = 32
MAX_SMEM_BYTES: Final = 233472
"""Length of `tw_smem` in the shim."""

_HEADERS = ("shim", "copies", "fibers", "matrices", "launch")
_WAITING = (BarrierOp, ShuffleOp, LdmatrixOp, MmaSyncOp, CpAsyncOp, CpAsyncWaitOp)
"""Ops for which the threads of a block have to be fibers."""
_POOL_ARENAS = 32
"""`TW_POOL_ARENAS` of the launch."""
_SLOT_BYTES = 8
_FAULT_WORDS = 6
_DIVERGENCE, _WARP_DIVERGENCE, _DEADLOCK, _NO_MEMORY, _COPIES_LEFT = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class CpuSource:
    """A kernel and the CUDA C++ that holds it, as `emit_kernel` or `emit_module` gives it."""

    kernel: KernelOp
    text: str


@dataclass(frozen=True, slots=True)
class CpuKernel:
    """A kernel that can be launched."""

    name: str
    types: tuple[Attribute, ...]
    """Types of the numbers by value: those that the launch passes, then those bound to `params`."""
    pointers: int
    threads: int
    smem_bytes: int
    waits: bool
    """Whether its threads wait for each other or for copies."""
    entry: Any
    """The function of the shared object."""

    def launch(
        self, pointers: Sequence[int], scalars: Sequence[Any], grid: int, *, workers: int | None = None, seed: int = 0
    ) -> None:
        """Run all blocks on memory at these addresses, where element 0 of each pointer is.

        `workers` is the number of threads that share the blocks (by default one a core); `seed` other than 0 makes the
        threads of a block run in a random order. Raises TilewrightError for a barrier that not all threads of a block
        reach, a shuffle or product that not all lanes of a warp take part in, copies that a thread does not wait for,
        and numbers that do not fit their parameters.
        """
        if len(pointers) != self.pointers or len(scalars) != len(self.types):
            expected = f"{self.pointers} pointers and {len(self.types)} scalars"
            raise TilewrightError(f"@{self.name}: expected {expected}, got {len(pointers)} and {len(scalars)}")
        if not 0 <= grid < 1 << 31:
            raise TilewrightError(f"@{self.name}: expected a grid of 0 to 2^31 - 1 blocks, got {grid}")
        data = np.array(pointers, np.uint64).tobytes()
        data += b"".join(self._slot(n, t, v) for n, (t, v) in enumerate(zip(self.types, scalars, strict=True)))
        count = 1 if grid < 2 or seed else min(grid, worker_count() if workers is None else workers, MAX_WORKERS)
        shape = (ctypes.c_uint32 * 6)(grid, self.threads, self.smem_bytes, self.waits, count, seed & 0xFFFFFFFF)
        report = (ctypes.c_int32 * _FAULT_WORDS)()
        self.entry(data, shape, report, _stacks)
        if report[0]:
            raise TilewrightError(self._fault(*report))

    def _slot(self, number: int, type_: Attribute, value: Any) -> bytes:
        """One number in the bytes of its slot."""
        try:
            return np.array(value, storage_dtype(type_)).tobytes().ljust(_SLOT_BYTES, b"\0")
        except (OverflowError, TypeError, ValueError):
            raise TilewrightError(f"@{self.name}: expected scalar {number} to fit {type_}, got {value}") from None

    def _fault(self, fault: int, block: int, thread: int, line: int, other: int, other_line: int) -> str:
        where = f"@{self.name}: block {block}"
        one, two = f"thread {thread} waits at line {line} of the source", f"thread {other} at line {other_line}"
        if fault == _DIVERGENCE:
            return f"{where}: barrier divergence: {one}, {two}"
        if fault == _WARP_DIVERGENCE:
            return f"{where}: divergence in a warp: {one}, {two}"
        if fault == _DEADLOCK:
            others = "" if other == thread else f", {two}"
            return f"{where}: deadlock: {one} for lanes of its warp that do not come{others}"
        if fault == _COPIES_LEFT:
            copies = f"copies that it has not waited for, the last from line {line} of the source"
            return f"{where}: thread {thread} ends with {copies}"
        return f"@{self.name}: no memory for the stacks of {self.threads} threads"


def of_sm_90a(kernel: KernelOp) -> Operation | None:
    """The first op of a kernel that only sm_90a has (`wgmma`, TMA, roles of warps): such kernels do not run here."""
    return next((op for op in kernel.walk() if type(op) in HOPPER), None)


def build(sources: Sequence[CpuSource], options: tuple[str, ...] = ()) -> list[CpuKernel]:
    """Compile the sources as one translation unit, or take it from the cache, and load it.

    `options` go to the compiler. Raises TilewrightError where there is no compiler, it refuses the text, or a kernel
    has what only sm_90a has.
    """
    for each in sources:
        if (op := of_sm_90a(each.kernel)) is not None:
            raise TilewrightError(
                f"@{each.kernel.sym_name.data}: backend cpu does not run the instructions that only sm_90a has "
                f"(here {op.name}): use sim, or --arch sm_80",
                location_of(op) or location_of(each.kernel),
            )
        if each.kernel.smem.value.data > MAX_SMEM_BYTES:
            name, size = each.kernel.sym_name.data, each.kernel.smem.value.data
            raise TilewrightError(f"@{name}: expected at most {MAX_SMEM_BYTES} bytes of shared memory, got {size}")
    library = _library(load_or_compile(unit_text(sources), options).cubin)
    return [_kernel(each.kernel, library, number) for number, each in enumerate(sources)]


def unit_text(sources: Sequence[CpuSource]) -> str:
    """The translation unit. Sources that say the same are written once; lines count from 1 in each source."""
    parts = [cpu_shim()]
    homes: dict[str, int] = {}
    for number, each in enumerate(sources):
        home = homes.setdefault(each.text, number)
        symbol = kernel_symbol(each.kernel)
        if home == number:
            # Kernels of different programs may have the same name.
            names = dict.fromkeys(kernel_symbol(s.kernel) for s in sources if s.text == each.text)
            parts += [f"#define {name} tw_unit{number}_{name}" for name in names]
            parts += [f'#line 1 "{symbol}"', each.text]
            parts += [f"#undef {name}" for name in names]
        parts.append(
            f"static void tw_unit{number}_call(const TwSlot *a) {{ tw_cpu_call(tw_unit{home}_{symbol}, a); }}\n"
            f'extern "C" __attribute__((visibility("default"))) void tw_unit{number}_launch('
            "const TwSlot *arguments, const TwShape *shape, TwReport *report, TwPool *pool) {\n"
            f"  tw_cpu_launch(tw_unit{number}_call, arguments, shape, report, pool);\n}}"
        )
    return "\n".join(parts) + "\n"


@cache
def cpu_shim() -> str:
    """The headers that stand in front of the sources: the words of CUDA, fibers, and the launch."""
    folder = files("tilewright.lowering")
    parts = [folder.joinpath(f"tilewright_cpu_{part}.hpp").read_text(encoding="utf-8") for part in _HEADERS]
    return "\n".join([fragment_maps(), *parts])


def worker_count() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _kernel(kernel: KernelOp, library: ctypes.CDLL, number: int) -> CpuKernel:
    entry = library[f"tw_unit{number}_launch"]
    entry.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    entry.restype = None
    return CpuKernel(
        kernel.sym_name.data,
        tuple(a.type for a in (*kernel.values, *kernel.scalars)),
        len(kernel.pointers),
        kernel.threads.value.data,
        kernel.smem.value.data,
        any(isinstance(op, _WAITING) for op in kernel.walk()),
        entry,
    )


_stacks = (ctypes.c_void_p * _POOL_ARENAS)()
"""The `TwPool` of the process: stacks of fibers between launches, whichever kernel made them."""
_loading = threading.Lock()


def _library(shared_object: bytes) -> ctypes.CDLL:
    """Load a shared object from a file of its own, which is gone once it is loaded: the loader takes a path, and what
    was verified has to be what is loaded."""
    with _loading, tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        path = Path(folder) / "unit.so"
        path.write_bytes(shared_object)
        try:
            return ctypes.CDLL(str(path))
        except OSError as problem:
            text = " ".join(str(problem).split())[:200]
            raise TilewrightError(
                f"the compiled kernel does not load ({text}): set TMPDIR to a folder that programs may run from"
            ) from None
