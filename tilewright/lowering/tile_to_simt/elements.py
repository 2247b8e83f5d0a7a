"""Which elements a thread holds: loops over its local elements, their register index and their place in the tile.

Element `(o*threads + t)*vector + v` of a dim sits in thread coordinate `t = (tid / stride) mod threads`, at local index
`o*vector + v` (`DimDistribution`). The place splits into `t*vector`, the same for all local elements of the thread, and
`o*threads*vector + v`, known once loops are unrolled.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.ir import SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.tile.types import DimDistribution
from tilewright.lowering.tile_to_simt.builder import I32, Builder


@dataclass(frozen=True, slots=True)
class Local:
    """One local element of a dim: its register index, and the part of its place that differs between elements (i32)."""

    register: SSAValue
    place: SSAValue | None
    """None where nobody asked for it."""


def thread_place(builder: Builder, dim: DimDistribution) -> SSAValue:
    """`t*vector`, an i32: where the thread's elements begin."""
    if dim.threads == 1:
        return builder.constant(0, I32)
    return builder.mul_int(thread_coordinate(builder, dim), builder.constant(dim.vector, I32))


def thread_coordinate(builder: Builder, dim: DimDistribution) -> SSAValue:
    """`(tid / stride) mod threads`, an i32."""
    quotient = builder.div_unsigned(builder.tid(), builder.constant(dim.stride, I32))
    if dim.stride * dim.threads >= builder.threads:
        return quotient
    return builder.mod_unsigned(quotient, builder.constant(dim.threads, I32))


@contextmanager
def each_local(
    builder: Builder, dim: DimDistribution, size: int, *, step: int = 1, place: bool = True
) -> Generator[Local]:
    """Loops over the local elements of a dim of `size` elements, `step` neighbours at a time.

    Raises TilewrightError unless the step divides what lies side by side in a thread.
    """
    count = dim.elements_per_thread(size)
    run = count if dim.threads == 1 else dim.vector
    if run % step:
        raise TilewrightError(f"width {step} does not divide the {run} neighbouring elements that a thread holds")
    if not place or run == count:
        with builder.unroll(count // step) as i:
            register = builder.mul_int(i, builder.constant(step, I32))
            yield Local(register, register if place else None)
        return
    with builder.unroll(count // run) as o, builder.unroll(run // step) as v:
        inner = builder.mul_int(v, builder.constant(step, I32))
        register = builder.add_int(builder.mul_int(o, builder.constant(run, I32)), inner)
        outer = builder.mul_int(o, builder.constant(dim.threads * run, I32))
        yield Local(register, builder.add_int(outer, inner))


def first_copy(builder: Builder, dims: Sequence[DimDistribution]) -> SSAValue | None:
    """An i1 that holds in one thread of those that hold the same elements; None when no two threads do.

    Threads that no dim uses hold copies: the condition is that all unused parts of the thread index are zero.
    """
    used = sorted((d.stride, d.threads) for d in dims if d.threads > 1)
    condition: SSAValue | None = None
    low = 1
    for stride, threads in [*used, (builder.threads, 1)]:
        if stride < low or stride % low:
            raise TilewrightError(f"thread strides must be multiples of what lies below them, got {stride} over {low}")
        if stride > low:
            part = thread_coordinate(builder, DimDistribution(stride // low, low, 1))
            condition = builder.both(condition, builder.compare("eq", part, builder.constant(0, I32)))
        low = stride * threads
    return condition
