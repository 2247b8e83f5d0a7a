"""Which elements a thread holds: loops over its local elements, their register index and their place in the tile.

The place of an element in a dim has digits, the fastest first, over threads and over registers (`factors` of a
distribution). It splits into the sum of the thread's digits, the same for all local elements of the thread, and that of
the register's digits, known once loops are unrolled. The register index counts the register's digits alone.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.tile.types import AnyDistribution, Factor
from tilewright.lowering.tile_to_simt.builder import I32, Builder


@dataclass(frozen=True, slots=True)
class Local:
    """One local element of a dim: its register index, and the part of its place that differs between elements (i32)."""

    register: SSAValue
    place: SSAValue | None
    """None where nobody asked for it."""


def thread_place(builder: Builder, dim: AnyDistribution, size: int) -> SSAValue:
    """Where the thread's elements begin in a dim of `size` elements, an i32: the thread's digits of the place."""
    place, weight = builder.constant(0, I32), 1
    for digit in dim.factors(size):
        if digit.is_thread:
            part = builder.mul_int(thread_digit(builder, digit), builder.constant(weight, I32))
            place = builder.add_int(place, part)
        weight *= digit.count
    return place


def thread_digit(builder: Builder, digit: Factor) -> SSAValue:
    """`(tid / stride) mod count`, an i32."""
    quotient = builder.div_unsigned(builder.tid(), builder.constant(digit.stride, I32))
    if digit.stride * digit.count >= builder.threads:
        return quotient
    return builder.mod_unsigned(quotient, builder.constant(digit.count, I32))


@contextmanager
def each_local(
    builder: Builder, dim: AnyDistribution, size: int, *, step: int = 1, place: bool = True
) -> Generator[Local]:
    """Loops over the local elements of a dim of `size` elements, `step` neighbours at a time.

    One loop for each digit over registers, the slowest outermost; where no place is asked for, one for all of them.
    Raises TilewrightError unless the step divides what lies side by side in a thread.
    """
    digits = dim.factors(size)
    first_is_local = bool(digits) and not digits[0].is_thread
    run = digits[0].count if first_is_local else 1
    if run % step:
        raise TilewrightError(f"width {step} does not divide the {run} neighbouring elements that a thread holds")
    local: list[tuple[int, int]] = []
    weight = 1
    for digit in digits:
        if not digit.is_thread:
            local.append((digit.count, weight))
        weight *= digit.count
    if not place:
        local = [(prod(count for count, _ in local), 1)]
    elif not local:
        local = [(1, 1)]
    if not place or first_is_local:
        local[0] = (local[0][0] // step, local[0][1])
    with ExitStack() as loops:
        variables = [loops.enter_context(builder.unroll(count)) for count, _ in reversed(local)][::-1]
        register, found, registers = builder.constant(0, I32), builder.constant(0, I32), 1
        for n, ((count, weight), variable) in enumerate(zip(local, variables, strict=True)):
            by = step if n == 0 and (not place or first_is_local) else 1
            inner = builder.mul_int(variable, builder.constant(by, I32))
            register = builder.add_int(builder.mul_int(inner, builder.constant(registers, I32)), register)
            found = builder.add_int(builder.mul_int(inner, builder.constant(weight, I32)), found)
            registers *= count * by
        yield Local(register, found if place else None)


def first_copy(builder: Builder, dims: Sequence[tuple[AnyDistribution, int]]) -> SSAValue | None:
    """An i1 that holds in one thread of those that hold the same elements; None when no two threads do.

    `dims` are distributions with the sizes of their dims. Threads that no dim uses hold copies: the condition is that
    all unused parts of the thread index are zero.
    """
    used = sorted((f.stride, f.count) for dim, size in dims for f in dim.factors(size) if f.is_thread)
    condition: SSAValue | None = None
    low = 1
    for stride, threads in [*used, (builder.threads, 1)]:
        if stride < low or stride % low:
            raise TilewrightError(f"thread strides must be multiples of what lies below them, got {stride} over {low}")
        if stride > low:
            part = thread_digit(builder, Factor(stride // low, low))
            condition = builder.both(condition, builder.compare("eq", part, builder.constant(0, I32)))
        low = stride * threads
    return condition
