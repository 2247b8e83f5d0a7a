"""Ways for a tensor to lie in memory, as Hypothesis strategies: transposed, stepped, backwards, shifted, broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Memory:
    """How a tensor of some rank lies in a larger array: the order of its dims from the slowest to the fastest, and for
    each dim its step (negative: backwards), elements before it and after it, and whether it is one element repeated."""

    order: tuple[int, ...]
    steps: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    repeated: tuple[bool, ...] = field(default=())

    def place(self, shape: Sequence[int], dtype: Any, filler: float) -> tuple[Array, Array]:
        """(view, memory): the view has the shape, and is part of the memory, which holds `filler` everywhere.

        A repeated dim has size 1 in the view (0 where it is empty).
        """
        sizes = [
            min(size, 1) if r else size for r, size in zip(self.repeated or (False,) * len(shape), shape, strict=True)
        ]
        spans = [
            b + (size * abs(step)) + a
            for size, step, b, a in zip(sizes, self.steps, self.before, self.after, strict=True)
        ]
        memory = np.full([spans[d] for d in self.order], filler, dtype)
        view = memory.transpose([self.order.index(d) for d in range(len(shape))])
        for d, (size, step, start) in enumerate(zip(sizes, self.steps, self.before, strict=True)):
            chosen = slice(start, start + size * abs(step), abs(step))
            view = view[(*[slice(None)] * d, chosen)]
            if step < 0:
                view = view[(*[slice(None)] * d, slice(None, None, -1))]
        return view, memory

    def hold(self, values: Array) -> Array:
        """A view of the values' shape, with the values in it (the first ones of a repeated dim) and NaN around it."""
        view, _ = self.place(values.shape, values.dtype, float("nan"))
        view[...] = values[tuple(slice(0, n) for n in view.shape)]
        return np.broadcast_to(view, values.shape)


def contiguous(rank: int) -> Memory:
    """Row-major without gaps."""
    return Memory(tuple(range(rank)), (1,) * rank, (0,) * rank, (0,) * rank)


@st.composite
def inputs(draw: st.DrawFn, rank: int) -> Memory:
    """Any layout that an input may have; one in three is contiguous."""
    if draw(st.integers(0, 2)) == 0:
        return contiguous(rank)
    each = st.tuples(*[st.sampled_from([0, 0, 1, 3, 4])] * rank)
    return Memory(
        tuple(draw(st.permutations(range(rank)))),
        tuple(draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2])) for _ in range(rank)),
        draw(each),
        draw(each),
        tuple(draw(st.integers(0, 5)) == 0 for _ in range(rank)),
    )


@st.composite
def outputs(draw: st.DrawFn, rank: int) -> Memory:
    """Any layout that an output may have: forward strides, each element its own."""
    each = st.tuples(*[st.sampled_from([0, 0, 1, 4])] * rank)
    return Memory(
        tuple(draw(st.permutations(range(rank)))),
        tuple(draw(st.sampled_from([1, 1, 2, 3])) for _ in range(rank)),
        draw(each),
        draw(each),
    )
