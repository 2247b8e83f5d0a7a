"""Helpers of the pass tests: text to module, one pass over it, and does a pass keep what a program means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.verify import verify_module
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.registry import all_passes
from tilewright.runtime.inputs import Lane
from tilewright.runtime.reference import compare, run_reference
from tilewright.testing import Program, differs, make_inputs, zero_signs

CONTEXT = make_context()


def parse(text: str) -> ModuleOp:
    """The verified module of a text."""
    module = parse_module(text, "test.mlir", CONTEXT)
    verify_module(module)
    return module


def make_pass(name: str, **options: object) -> ModulePass:
    """A pass by name."""
    return all_passes()[name]()(**options)


def run(module: ModuleOp, *names: str) -> ModuleOp:
    """Run passes by name over a module, verified after each; returns the module."""
    run_pipeline(module, CONTEXT, [make_pass(name) for name in names], verify_each=True)
    return module


def ops_named(module: Operation, name: str) -> list[Operation]:
    """All ops of a name, in the order of the text."""
    return [op for op in module.walk() if op.name == name]


def assert_preserved(
    before: ModuleOp, after: ModuleOp, sizes: Mapping[str, int], seed: int, lane: Lane = "ordinary"
) -> None:
    """Both modules' functions give the same results for random inputs, within the bound of the first's meaning."""
    functions = [op for op in before.ops if isinstance(op, func.FuncOp)]
    assert functions, "a program without functions would show nothing"
    for function in functions:
        name = function.sym_name.data
        inputs = make_inputs(function, sizes, seed, lane)
        expected = run_reference(before, name, inputs, sizes)
        got = run_reference(after, name, inputs, sizes)
        assert len(got) == len(expected)
        for i, (want, have, signs) in enumerate(zip(expected, got, zero_signs(function), strict=True)):
            if differs(have.rounded, want, zero_signs=signs).any():
                mismatch = compare(have.rounded, want) or "the sign of a zero"
                raise AssertionError(f"@{name}, result {i}, sizes {sizes}, {lane}: {mismatch}\n{before}\n{after}")


def preserves(
    names: Sequence[str], module: ModuleOp, sizes: Mapping[str, int], seed: int = 0, lane: Lane = "ordinary"
) -> ModuleOp:
    """Run passes over a copy of the module and check that the results stay; returns the copy."""
    after = module.clone()
    run(after, *names)
    assert_preserved(module, after, sizes, seed, lane)
    return after


def preserves_program(names: Sequence[str], program: Program) -> ModuleOp:
    """The same for a random program."""
    return preserves(names, parse(program.text), program.sizes, program.seed, program.lane)
