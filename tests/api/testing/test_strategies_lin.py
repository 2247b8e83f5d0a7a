"""Random programs of the tensor level are legal, varied, quick to draw, and become simple when shrunk."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from statistics import median
from time import process_time

import numpy as np
import pytest
from hypothesis import HealthCheck, find, settings
from xdsl.dialects.builtin import ModuleOp

from tests.api.testing.draws import drawn
from tilewright.api.testing.execute import context, entry_of, parse
from tilewright.api.testing.lin_programs import OPS
from tilewright.api.testing.oracle import differs
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.dialect import Lin
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.sym import SymbolOp, dims_of
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.registry import all_passes
from tilewright.runtime.inputs import LANES
from tilewright.runtime.reference import ReferenceValue, run_reference
from tilewright.testing import Program, lin_programs, make_inputs

COUNT = 300
MADE_BY_PASSES = {"lin.group"}
"""What `fuse-groups` wraps around generics; programs are not written with it."""


@cache
def programs() -> list[Program]:
    return drawn(lin_programs(), COUNT)


@cache
def modules() -> list[ModuleOp]:
    """Parsed and verified."""
    return [parse(program) for program in programs()]


def evaluated(program: Program, module: ModuleOp, lane: str) -> list[ReferenceValue]:
    inputs = make_inputs(entry_of(module), program.sizes, program.seed, lane)  # pyright: ignore[reportArgumentType]
    return run_reference(module, "f", inputs, program.sizes)


def test_programs_are_legal_after_infer_shapes_too() -> None:
    """And infer-shapes finds every type as it is written."""
    infer = all_passes()["infer-shapes"]()
    for module in modules():
        after = module.clone()
        run_pipeline(after, context(), [infer()], verify_each=True)
        before = [dims_of(r.type) for op in module.walk() for r in op.results if is_tensor(r.type)]
        assert before == [dims_of(r.type) for op in after.walk() for r in op.results if is_tensor(r.type)]


@pytest.mark.parametrize("lane", LANES)
def test_the_reference_runs_all_programs(lane: str) -> None:
    """In the ordinary lane with a bound on every element: nothing overflows, nothing is divided by what may be 0."""
    results = unknown = special = 0
    for program, module in zip(programs(), modules(), strict=True):
        for value in evaluated(program, module, lane):
            results += 1
            unknown += bool(np.isinf(value.bound).any())
            special += not bool(np.isfinite(value.value.astype(np.float64)).all())
            assert not differs(value.rounded, value).any()
    if lane == "ordinary":
        # Softmax and max of nothing are NaN and -inf.
        assert (unknown, special <= results // 50) == (0, True)
    else:
        assert unknown <= results // 8
        assert special >= results // 8


def test_bounds_are_tight_in_the_ordinary_lane() -> None:
    """Nine results of ten are known to a hundredth of their largest element: a wrong element would show."""
    loose = results = 0
    for program, module in zip(programs()[:150], modules(), strict=False):
        for value in evaluated(program, module, "ordinary"):
            if value.value.size and value.rounded.dtype.name in ("float32", "int32", "bool"):
                results += 1
                loose += bool(np.mean(value.bound) > 0.01 * np.max(np.abs(value.value.astype(np.float64))) + 1e-6)
    assert results > 100
    assert loose <= results // 10


def test_programs_are_varied() -> None:
    ops: list[int] = []
    symbols: list[int] = []
    for module in modules():
        names = [op.name for op in module.walk()]
        ops.append(sum(n.startswith("lin.") and n not in ("lin.yield", "lin.index") for n in names))
        symbols.append(names.count("sym.symbol"))
    assert median(ops) >= 3
    assert median(symbols) >= 2
    # Near copies of one another would show nothing new.
    assert len({program.text for program in programs()}) >= COUNT * 0.95
    assert {program.lane for program in programs()} == set(LANES)


def test_every_op_of_the_dialect_occurs() -> None:
    """An op that is added to the dialect needs a writer in `lin_programs.OPS`, or a reason in `MADE_BY_PASSES`."""
    found = Counter(op.name for module in modules() for op in module.walk())
    missing = [op.name for op in Lin.operations if not found[op.name] and op.name not in MADE_BY_PASSES]
    assert missing == []
    assert found["sym.require"]
    assert found["sym.apply"]


def test_the_parts_of_programs_that_pass_through_few_ops_occur() -> None:
    """Several results, values read twice, each element type, each combination, bounds of symbols, expressions."""
    texts = [program.text for program in programs()]
    for part in ("f32", "f16", "bf16", "i32", "i1", "combine sum", "combine max", "reduce min", "reduce prod"):
        assert any(part in text for text in texts), part
    for part in ("multiple_of =", "min =", "max =", "2*", " + 1", "floordiv", "ceildiv", " at [", "as v0", "groups 2"):
        assert any(part in text for text in texts), part
    functions = [entry_of(module) for module in modules()]
    results = [len(f.function_type.outputs.data) for f in functions]  # pyright: ignore
    assert max(results) >= 3
    assert sum(n > 1 for n in results) > COUNT // 10
    shared = [any(len(list(r.uses)) > 1 for op in f.walk() for r in op.results) for f in functions]
    assert sum(shared) > COUNT // 10
    values = [argument for f in functions for argument in f.body.block.args if not is_tensor(argument.type)]
    assert values, "expected arguments by value"


def test_sizes_are_those_worth_a_test() -> None:
    sizes = Counter(size for program in programs() for size in program.sizes.values())
    for size in (0, 1, 2, 31, 32, 33):
        assert sizes[size], size
    assert max(sizes) > 64
    for program, module in zip(programs(), modules(), strict=True):
        declared = [op.symbol for op in module.ops if isinstance(op, SymbolOp)]
        assert declared == list(program.sizes)


def test_drawing_is_quick() -> None:
    """Under 10 ms of processor time each; parsing and verifying take more."""
    programs()
    start = process_time()
    drawn(lin_programs(), 100, seed=1)
    assert (process_time() - start) / 100 < 0.010


def smallest(matches: Callable[[Program], bool]) -> Program:
    quick = settings(
        max_examples=1000,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    return find(lin_programs(), matches, settings=quick, random=random.Random(0))


def test_a_program_shrinks_to_one_op_of_one_symbol() -> None:
    found = smallest(lambda program: "lin.softmax" in program.text)
    assert found.text == (
        "sym.symbol @M\n"
        "func.func @f(%x: tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {\n"
        "  %t0 = lin.softmax %x axis 0 : tensor<?xf32, #sym.dims<M>> -> tensor<?xf32, #sym.dims<M>>\n"
        "  func.return %t0 : tensor<?xf32, #sym.dims<M>>\n"
        "}\n"
    )
    assert (found.sizes, found.seed, found.lane) == ({"M": 0}, 0, "ordinary")


def test_sizes_shrink_to_the_least_that_fails() -> None:
    found = smallest(lambda program: "lin.slice" in program.text and max(program.sizes.values(), default=0) >= 33)
    assert max(found.sizes.values()) == 33
    assert found.text.count(" = lin.") == 1


@pytest.mark.parametrize("kind", [name for _, name, _ in OPS])
def test_the_caller_chooses_kinds_of_op(kind: str) -> None:
    """The op of each writer, or what stands in where it does not fit: an elementwise op."""
    generics = ("generic", "contraction", "combine", "diagonal")
    own = "lin.generic" if kind in generics else f"lin.{kind}"
    texts = [program.text for program in drawn(lin_programs(ops=[kind], max_ops=3), 20)]
    assert sum(own in text for text in texts) >= 8
    others = {f"lin.{name}" for _, name, _ in OPS} - {own, "lin.map", "lin.batch_matmul"}
    assert not [text for text in texts if any(f"{other} " in text for other in others)]


def test_the_caller_chooses_element_types_and_lane() -> None:
    for program in drawn(lin_programs(dtypes=["bf16"], lane="special"), 50):
        assert program.lane == "special"
        tensors = [r.type for op in parse(program).walk() for r in op.results if is_tensor(r.type)]
        # Products of bf16 accumulate in f32, comparisons give truth values.
        assert {str(t.element_type) for t in tensors} <= {"bf16", "f32", "i1"}


def test_products_of_integers_do_not_outgrow_the_bookkeeping() -> None:
    """Numbers of the program's text are drawn by how large values may be, which integers that wrap let grow."""
    programs = drawn(lin_programs(dtypes=["i32"], ops=["map", "matmul", "reduce"], max_ops=12), 100)
    assert sum(program.text.count("muli") + program.text.count("reduce prod") for program in programs) > 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtypes": ["f64"]}, "dtypes: expected element types among f32, f16, bf16, i32, i1, got 'f64'"),
        ({"ops": ["matmull"]}, "ops: expected kinds among map, reduce"),
    ],
)
def test_what_is_not_there_is_refused(options: dict[str, list[str]], message: str) -> None:
    with pytest.raises(TilewrightError, match=message):
        find(lin_programs(**options), lambda _: True)  # pyright: ignore[reportArgumentType]
