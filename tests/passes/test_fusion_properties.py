"""Fusion keeps what programs mean: random small `lin` programs over random sizes, run before and after."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.passes.support import ops_named, parse, preserves

F32, BF16, I32 = "f32", "bf16", "i32"

UNARY = {
    F32: ["arith.negf", "math.exp", "math.absf"],
    BF16: ["arith.negf", "math.absf"],
    I32: [],
}
BINARY = {
    F32: ["arith.addf", "arith.mulf", "arith.subf", "arith.maximumf"],
    BF16: ["arith.addf", "arith.mulf", "arith.maximumf"],
    I32: ["arith.addi", "arith.muli", "arith.maxsi"],
}
SYMBOLS = ["M", "N", "K"]


class Program:
    """Text of a function that grows op by op; `values` maps a name to (dims, element type)."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arguments: list[str] = []
        self.values: dict[str, tuple[tuple[str, ...], str]] = {}

    def type_of(self, name: str) -> str:
        return tensor_type(*self.values[name])

    def argument(self, dims: tuple[str, ...], element: str) -> str:
        name = f"%arg{len(self.arguments)}"
        self.values[name] = (dims, element)
        self.arguments.append(name)
        return name

    def define(self, dims: tuple[str, ...], element: str, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.values[name] = (dims, element)
        self.lines.append(f"  {name} = {text}")
        return name

    def map(self, op: str, operands: list[str], dims: tuple[str, ...], element: str) -> str:
        names = ["%p", "%q"][: len(operands)]
        arguments = ", ".join(f"{n}: {element}" for n in names)
        ins = ", ".join(operands) + " : " + ", ".join(self.type_of(o) for o in operands)
        return self.define(
            dims,
            element,
            f"lin.map ins({ins}) -> {tensor_type(dims, element)} {{\n  ^bb0({arguments}):\n"
            f"    %r = {op} {', '.join(names)} : {element}\n    lin.yield %r : {element}\n  }}",
        )

    def text(self, returned: list[str]) -> str:
        arguments = ", ".join(f"{a}: {self.type_of(a)}" for a in self.arguments)
        types = ", ".join(self.type_of(r) for r in returned)
        symbols = "".join(f"sym.symbol @{s}\n" for s in SYMBOLS)
        body = "\n".join(self.lines)
        return (
            f"{symbols}func.func @f({arguments}) -> ({types}) {{\n{body}\n"
            f"  func.return {', '.join(returned)} : {types}\n}}\n"
        )


def tensor_type(dims: tuple[str, ...], element: str) -> str:
    shape = "x".join(["?" if d in SYMBOLS else d for d in dims] + [element])
    return f"tensor<{shape}, #sym.dims<{', '.join(dims)}>>"


def broadcast(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...] | None:
    """The NumPy broadcast of two shapes, None if there is none."""
    rank = max(len(left), len(right))
    padded = [("1",) * (rank - len(s)) + s for s in (left, right)]
    result: list[str] = []
    for a, b in zip(*padded, strict=True):
        if a != b and "1" not in (a, b):
            return None
        result.append(b if a == "1" else a)
    return tuple(result)


@st.composite
def programs(draw: st.DrawFn) -> str:
    program = Program()
    for _ in range(draw(st.integers(1, 3))):
        rank = draw(st.integers(1, 3))
        dims = tuple(draw(st.sampled_from([*SYMBOLS, "M", "N", "1", "4"])) for _ in range(rank))
        program.argument(dims, draw(st.sampled_from([F32, F32, BF16, I32])))
    for _ in range(draw(st.integers(1, 7))):
        extend(draw, program)
    made = [name for name in program.values if name not in program.arguments]
    last = made[-1]
    others = draw(st.lists(st.sampled_from(made), max_size=2, unique=True))
    return program.text([last, *[o for o in others if o != last]])


def extend(draw: st.DrawFn, program: Program) -> None:
    """Add one op on values that are there, the latest more often than others."""
    names = list(program.values)
    x = draw(st.sampled_from([*names, names[-1], names[-1]]))
    dims, element = program.values[x]
    kind = draw(
        st.sampled_from(
            ["unary", "binary", "binary", "reduce", "transpose", "cast", "softmax", "matmul", "matmul", "row"]
        )
    )
    target = tensor_type(dims, element)
    if kind == "row" and row(draw, program, x):
        return
    if kind == "unary" and UNARY[element]:
        program.map(draw(st.sampled_from(UNARY[element])), [x], dims, element)
        return
    if kind == "reduce" and dims:
        axes = draw(st.lists(st.integers(0, len(dims) - 1), min_size=1, max_size=len(dims), unique=True))
        kept = tuple(d for i, d in enumerate(dims) if i not in axes)
        combine = draw(st.sampled_from(["sum", "max", "min"]))
        program.define(
            kept, element, f"lin.reduce {combine} {x} axes {axes} : {target} -> {tensor_type(kept, element)}"
        )
        return
    if kind == "transpose" and len(dims) > 1:
        perm = draw(st.permutations(range(len(dims))))
        permuted = tuple(dims[p] for p in perm)
        program.define(
            permuted, element, f"lin.transpose {x} perm {list(perm)} : {target} -> {tensor_type(permuted, element)}"
        )
        return
    if kind == "cast" and element != I32:
        other = BF16 if element == F32 else F32
        program.define(dims, other, f"lin.cast {x} : {target} -> {tensor_type(dims, other)}")
        return
    if kind == "softmax" and element != I32 and dims:
        axis = draw(st.integers(0, len(dims) - 1))
        program.define(dims, element, f"lin.softmax {x} axis {axis} : {target} -> {target}")
        return
    if kind == "matmul" and len(dims) > 1:
        contract(draw, program, x)
        return
    partners = [n for n, (d, e) in program.values.items() if e == element and broadcast(dims, d) is not None]
    y = draw(st.sampled_from(partners))
    result = broadcast(dims, program.values[y][0])
    assert result is not None
    program.map(draw(st.sampled_from(BINARY[element])), [x, y], result, element)


def contract(draw: st.DrawFn, program: Program, x: str) -> None:
    """x[..., k] times a new argument [k, j], given as it is or transposed, as a generic; then perhaps bias."""
    dims, element = program.values[x]
    last = draw(st.sampled_from(SYMBOLS))
    straight = draw(st.booleans())
    w = program.argument((dims[-1], last) if straight else (last, dims[-1]), element)
    out = (*dims[:-1], last)
    letters = [f"i{i}" for i in range(len(dims) - 1)]
    multiply, kind = ("arith.muli", element) if element == I32 else ("arith.mulf", element)
    result = program.define(
        out,
        element,
        f"lin.generic (k, j, {', '.join(letters)}) ins({x}[{', '.join(letters)}, k] : {program.type_of(x)}, "
        f"{w}[{'k, j' if straight else 'j, k'}] : {program.type_of(w)}) out[{', '.join(letters)}, j] combine sum : "
        f"{tensor_type(out, element)} {{\n  ^bb0(%p: {kind}, %q: {kind}):\n    %r = {multiply} %p, %q : {kind}\n"
        f"    lin.yield %r : {kind}\n  }}",
    )
    if draw(st.booleans()):
        bias = program.argument((last,), element)
        program.map(BINARY[element][0], [result, bias], out, element)


def row(draw: st.DrawFn, program: Program, x: str) -> bool:
    """A generic that combines x with a value of fewer dims, read at some of x's dims; False when there is none."""
    dims, element = program.values[x]
    fitting: list[tuple[str, tuple[int, ...]]] = []
    for name, (other, other_element) in program.values.items():
        if other_element == element and len(other) <= len(dims):
            at = tuple(next((i for i, d in enumerate(dims) if d == o), -1) for o in other)
            if -1 not in at and len(set(at)) == len(at):
                fitting.append((name, at))
    if not fitting:
        return False
    y, at = draw(st.sampled_from(fitting))
    letters = [f"i{i}" for i in range(len(dims))]
    out = draw(st.permutations(range(len(dims))))
    out_dims = tuple(dims[o] for o in out)
    op = draw(st.sampled_from(BINARY[element]))
    program.define(
        out_dims,
        element,
        f"lin.generic ({', '.join(letters)}) ins({x}[{', '.join(letters)}] : {program.type_of(x)}, "
        f"{y}[{', '.join(letters[a] for a in at)}] : {program.type_of(y)}) "
        f"out[{', '.join(letters[o] for o in out)}] : {tensor_type(out_dims, element)} {{\n"
        f"  ^bb0(%p: {element}, %q: {element}):\n    %r = {op} %p, %q : {element}\n    lin.yield %r : {element}\n  }}",
    )
    return True


SIZES = st.fixed_dictionaries({s: st.sampled_from([1, 2, 3, 5]) for s in SYMBOLS})
PIPELINE = ["infer-shapes", "canonicalize", "decompose", "cse", "fuse-elementwise", "fuse-groups", "verify-dims"]


@given(programs(), SIZES, st.integers(0, 2**31))
def test_the_whole_pipeline_keeps_results(text: str, sizes: dict[str, int], seed: int) -> None:
    after = preserves(PIPELINE, parse(text), sizes, seed)
    for op in ops_named(after, "lin.generic"):
        parent = op.parent_op()
        assert parent is not None
        assert parent.name == "lin.group"


@pytest.mark.parametrize("name", ["canonicalize", "cse", "decompose"])
@given(text=programs(), sizes=SIZES, seed=st.integers(0, 2**31))
def test_each_pass_keeps_results(name: str, text: str, sizes: dict[str, int], seed: int) -> None:
    preserves([name], parse(text), sizes, seed)


@given(programs())
def test_fusion_leaves_nothing_to_fuse(text: str) -> None:
    """A second run of each fusion changes nothing."""
    once = preserves(["decompose", "fuse-elementwise"], parse(text), {"M": 2, "N": 3, "K": 4})
    twice = preserves(["fuse-elementwise"], once, {"M": 2, "N": 3, "K": 4})
    assert once.is_structurally_equivalent(twice)


def reading(text: str) -> list[int]:
    """For each group after fusion, how many generics it has."""
    module = preserves(PIPELINE, parse(text), {"M": 3, "N": 4, "K": 5})
    return [len(ops_named(group, "lin.generic")) for group in ops_named(module, "lin.group")]


@given(st.sampled_from([F32, BF16]), st.integers(0, 2))
def test_a_softmax_of_three_dims_is_one_group(element: str, axis: int) -> None:
    program = Program()
    x = program.argument(("M", "N", "K"), element)
    kind = program.type_of(x)
    y = program.define(("M", "N", "K"), element, f"lin.softmax {x} axis {axis} : {kind} -> {kind}")
    assert len(reading(program.text([y]))) == 1
