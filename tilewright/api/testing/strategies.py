"""The programs that a subject is tried on unless the caller has better ones."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st

from tilewright.api.testing.lin_programs import lin_programs
from tilewright.api.testing.program import Lane, Program
from tilewright.api.testing.subject import Subject
from tilewright.api.testing.tile_kernels import tile_kernels

MAX_OPS = 4
"""Ops of a program: small ones run many times a second, and most faults need few."""

MOVEMENT = ("transpose", "reshape", "slice", "pad", "concat")
PRODUCTS = ("matmul", "contraction", "conv2d")
FOCUS: dict[str, tuple[str, ...]] = {
    "cancel-movement": MOVEMENT,
    "interchange-loops": PRODUCTS,
    "promote-to-shared": (*PRODUCTS, "transpose"),
    "block-registers": PRODUCTS,
    "pad-shared": (*PRODUCTS, "transpose"),
    "coalesce": (*PRODUCTS, "transpose"),
    "remove-barriers": (*PRODUCTS, "softmax"),
    "cse": ("map", "softmax"),
}
"""Pass -> kinds of op (those of `lin_programs`) that give it something to do; half of its programs have these alone."""


def default_programs(subject: Subject, lane: Lane | None = None) -> st.SearchStrategy[Program]:
    """Programs that reach the places of a subject; both lanes of values unless one is given.

    Programs of the tensor level, and for a subject that is tried in TILE or compares executors also kernels as an
    author writes them.
    """
    choices: list[st.SearchStrategy[Program]] = [lin_programs(max_ops=MAX_OPS, lane=lane)]
    for name in subject.pass_names:
        if name in FOCUS:
            choices.append(lin_programs(max_ops=MAX_OPS, lane=lane, ops=FOCUS[name]))
    if not subject.places or any(place.pipeline == "TILE" for place in subject.places):
        kernels = tile_kernels()
        choices.append(kernels if lane is None else kernels.map(lambda program: replace(program, lane=lane)))
    return st.one_of(choices)
