"""The programs that a subject is tried on unless the caller has better ones."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st

from tilewright.api.testing.lin_programs import lin_programs
from tilewright.api.testing.matrix_kernels import matrix_kernels
from tilewright.api.testing.program import Lane, Program
from tilewright.api.testing.subject import Subject
from tilewright.api.testing.tile_kernels import tile_kernels

MAX_OPS = 4
"""Ops of a program: small ones run many times a second, and most faults need few."""

PRODUCTS = ("matmul", "contraction", "conv2d")
FOCUS: dict[str, tuple[int, tuple[str, ...]]] = {
    "cancel-movement": (6, ("transpose", "reshape", "slice")),
    "interchange-loops": (1, ("conv2d",)),
    "promote-to-shared": (2, (*PRODUCTS, "transpose")),
    "block-registers": (2, ("matmul", "contraction")),
    "cse": (4, ("softmax",)),
}
"""Pass that most programs leave nothing to do -> how many ops of which kinds (those of `lin_programs`) give it work;
two in three of its programs are such."""


FOR_MATRICES = ("choose-mma", "stage-results", "make-persistent", "pipeline-copies", "specialise-warps")
"""Passes that act on kernels for matrix instructions alone."""


def default_programs(subject: Subject, lane: Lane | None = None) -> st.SearchStrategy[Program]:
    """Programs that reach the places of a subject; both lanes of values unless one is given.

    Programs of the tensor level, and for a subject that is tried in TILE or compares executors also kernels as an
    author writes them; kernels for matrix instructions for the passes that need them, and now and then for
    whatever else is tried in TILE or in the simulator.
    """
    in_tile = any(place.pipeline == "TILE" for place in subject.places)
    if any(name in FOR_MATRICES for name in subject.pass_names):
        return matrix_kernels(lane=lane)
    choices: list[st.SearchStrategy[Program]] = [lin_programs(max_ops=MAX_OPS, lane=lane)]
    if not subject.places or in_tile:
        kernels = tile_kernels()
        choices.append(kernels if lane is None else kernels.map(lambda program: replace(program, lane=lane)))
    usual = plain = st.one_of(choices)
    if in_tile or subject.kind == "reference-sim":
        # They are dear: a tile has 4096 elements at least.
        usual = st.integers(0, 7).flatmap(lambda eighth: matrix_kernels(lane=lane) if eighth == 7 else plain)
    focused = [FOCUS[name] for name in subject.pass_names if name in FOCUS]
    if not focused:
        return usual
    wanted = st.one_of([lin_programs(max_ops=count, lane=lane, ops=ops) for count, ops in focused])
    return st.integers(0, 2).flatmap(lambda third: usual if third == 2 else wanted)
