"""The programs that a subject is tried on unless the caller has better ones."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import OpResult

from tilewright.api.testing.execute import parse
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


REPEATED = ("cse",)
"""Passes whose programs of such kinds compute a result twice, which random programs hardly do."""

FOR_MATRICES = (
    "form-clusters",
    "choose-mma",
    "stage-results",
    "make-persistent",
    "pipeline-copies",
    "share-copies",
    "specialise-warps",
)
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
    if any(name in REPEATED for name in subject.pass_names):
        wanted = wanted.map(with_a_repetition)
    return st.integers(0, 2).flatmap(lambda third: usual if third == 2 else wanted)


def with_a_repetition(program: Program) -> Program:
    """The program of the tensor level with the op of its first result once more, as another result."""
    module = parse(program)
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    block, last = function.body.block, function.body.block.last_op
    assert last is not None
    result = last.operands[0]
    if not isinstance(result, OpResult):
        return program
    again = result.op.clone()
    block.insert_op_before(again, last)
    last.operands = [*last.operands, again.results[result.index]]
    types = function.function_type
    outputs = [*types.outputs.data, result.type]
    function.properties["function_type"] = FunctionType.from_lists(types.inputs.data, outputs)
    return replace(program, text=str(module))
