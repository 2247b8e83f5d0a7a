"""Helpers of the pass tests: text to module, one pass over it, and does a pass keep what a program means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tilewright.dialects.lin.shapes import is_tensor, scalar_type
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.sym import dims_of
from tilewright.dialects.verify import verify_module
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.registry import all_passes
from tilewright.runtime.numerics import Array, storage_dtype
from tilewright.runtime.reference import compare, run_reference

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


def random_inputs(function: func.FuncOp, sizes: dict[str, int], rng: np.random.Generator) -> list[Array]:
    """Arrays for a function's arguments: small numbers of either sign, some of them equal, some zero."""
    inputs: list[Array] = []
    for argument in function.body.block.args:
        dtype = storage_dtype(scalar_type(argument.type))
        shape = tuple(dim.evaluate(sizes) for dim in dims_of(argument.type)) if is_tensor(argument.type) else ()
        if dtype == np.bool_:
            inputs.append(rng.integers(0, 2, shape).astype(dtype))
        elif np.issubdtype(dtype, np.integer):
            inputs.append(rng.integers(-5, 6, shape).astype(dtype))
        else:
            inputs.append((rng.integers(-8, 9, shape) / 4 + rng.standard_normal(shape) / 64).astype(dtype))
    return inputs


def assert_preserved(before: ModuleOp, after: ModuleOp, sizes: dict[str, int], seed: int) -> None:
    """Both modules' functions give the same results for random inputs, within the bound of the first's meaning."""
    rng = np.random.default_rng(seed)
    functions = [op for op in before.ops if isinstance(op, func.FuncOp)]
    assert functions, "a program without functions would show nothing"
    for function in functions:
        name = function.sym_name.data
        inputs = random_inputs(function, sizes, rng)
        expected = run_reference(before, name, inputs, sizes)
        got = run_reference(after, name, inputs, sizes)
        assert len(got) == len(expected)
        for i, (want, have) in enumerate(zip(expected, got, strict=True)):
            mismatch = compare(have.rounded, want)
            assert mismatch is None, f"@{name}, result {i}, sizes {sizes}: {mismatch}\n{before}\n{after}"


def preserves(names: Sequence[str], module: ModuleOp, sizes: dict[str, int], seed: int = 0) -> ModuleOp:
    """Run passes over a copy of the module and check that the results stay; returns the copy."""
    after = module.clone()
    run(after, *names)
    assert_preserved(module, after, sizes, seed)
    return after
