"""Kernels run twice, by the simulator from their IR and on the cores from their source, and the bits compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.dialects.simt.structure import KernelOp
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.cpu_unit import CpuKernel, CpuSource, build
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import simulate

Array = np.ndarray[Any, Any]


def built(kernels: Sequence[KernelOp], options: tuple[str, ...] = ()) -> list[CpuKernel]:
    """The kernels from the source that each has for the GPU, in one translation unit."""
    return build([CpuSource(kernel, emit_kernel(kernel, "sm_80")) for kernel in kernels], options)


def launch(kernel: CpuKernel, arrays: Sequence[Array], scalars: Sequence[Any], grid: int, **options: Any) -> None:
    """Run on flat arrays, in place."""
    kernel.launch([a.ctypes.data for a in arrays], scalars, grid, **options)


def on_simulator(kernel: KernelOp, arrays: Sequence[Array], scalars: Sequence[Any], grid: int) -> None:
    """Run on flat arrays, in place."""
    simulate(kernel, [Buffer(a) for a in arrays], scalars, grid=grid)


def assert_same_bits(got: Array, expected: Array, name: str = "") -> None:
    """Element for element the same bits; a NaN is a NaN."""
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype), name
    whole = np.dtype(f"u{got.dtype.itemsize}")
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected, name)
        return
    wide, wide_expected = got.astype(np.float64), expected.astype(np.float64)
    nan = np.isnan(wide)
    np.testing.assert_array_equal(nan, np.isnan(wide_expected), name)
    same = (np.ascontiguousarray(got).view(whole) == np.ascontiguousarray(expected).view(whole)) | nan
    wrong = np.argwhere(~same)
    assert wrong.size == 0, f"{name}: {len(wrong)} of {got.size} differ, first at {wrong[0]}: " + (
        f"{wide[tuple(wrong[0])]!r} and {wide_expected[tuple(wrong[0])]!r}"
    )


def ulps_apart(got: Array, expected: Array) -> Array:
    """How many steps of the float type lie between two, element for element; NaN is 0 from NaN, and far from others."""
    bits = 8 * got.dtype.itemsize
    keys: list[Array] = []
    for each in (got, expected):
        raw = np.ascontiguousarray(each).view(f"i{got.dtype.itemsize}").astype(np.int64)
        # Negative numbers count down from zero; -0.0 and 0.0 are one value.
        keys.append(np.where(raw < 0, -(raw & ((1 << (bits - 1)) - 1)), raw))
    apart = np.abs(keys[0].astype(np.float64) - keys[1].astype(np.float64))
    nan, other = np.isnan(got.astype(np.float64)), np.isnan(expected.astype(np.float64))
    return np.where(nan & other, 0.0, np.where(nan != other, np.inf, apart))
