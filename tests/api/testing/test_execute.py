"""`execute` runs a module at each level, to the same results; what the simulator sees is raised."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.api.testing.planted import DropBarriersPass
from tilewright.api.testing.execute import Faults, PlannedCall, arguments_of, context, kernel_of, parse, planned
from tilewright.diagnostics import TilewrightError
from tilewright.lowering import pipelines
from tilewright.testing import Program, execute

TEXT = """
sym.symbol @M
sym.symbol @N
func.func @f(%x: tensor<?x?xi32, #sym.dims<M, N>>) -> tensor<?x?xi32, #sym.dims<N, M>> {
  %y = lin.transpose %x perm [1, 0] : tensor<?x?xi32, #sym.dims<M, N>> -> tensor<?x?xi32, #sym.dims<N, M>>
  func.return %y : tensor<?x?xi32, #sym.dims<N, M>>
}
"""
PROGRAM = Program(TEXT, {"M": 33, "N": 5}, seed=3)
EXPECTED = arguments_of(PROGRAM, parse(PROGRAM))[0].T
"""Integers that are moved: exact at every level."""


def at(passes: int) -> ModuleOp:
    """The module after so many passes of TENSOR."""
    module = parse(PROGRAM)
    pipelines.run(module, context(), pipelines.TENSOR[:passes])
    return module


@pytest.mark.parametrize("backend", ["reference", "tile", "sim", pytest.param("cpu", marks=pytest.mark.cxx)])
def test_the_tensor_level(backend: str) -> None:
    (result,) = execute(parse(PROGRAM), PROGRAM, backend)  # pyright: ignore[reportArgumentType]  # one of its literals
    np.testing.assert_array_equal(result, EXPECTED)


@pytest.mark.parametrize("backend", ["tile", "sim"])
@pytest.mark.parametrize("passes", [len(pipelines.TENSOR) - 1, len(pipelines.TENSOR)])
def test_kernels_with_and_without_their_plan(passes: int, backend: str) -> None:
    module = at(passes)
    before = str(module)
    (result,) = execute(module, PROGRAM, backend)  # pyright: ignore[reportArgumentType]  # one of its literals
    np.testing.assert_array_equal(result, EXPECTED)
    assert str(module) == before


def lowered(passes: tuple[str, ...]) -> ModuleOp:
    """The plan with the kernels that the call launches at the simt level beside it."""
    module = planned(parse(PROGRAM))
    call = PlannedCall(module, arguments_of(PROGRAM, module))
    for name in call.sites:
        variant = call.instantiated(name)
        for each in passes:
            if each == "drop-barriers":
                DropBarriersPass().apply(context(), variant)
            else:
                pipelines.run(variant, context(), [each])
        kernel = kernel_of(variant)
        kernel.detach()
        module.body.block.add_op(kernel)
    return module


def test_the_simt_level() -> None:
    (result,) = execute(lowered(pipelines.TILE), PROGRAM, "sim")
    np.testing.assert_array_equal(result, EXPECTED)


def test_a_race_is_raised() -> None:
    passes = list(pipelines.TILE)
    passes.insert(passes.index("remove-barriers") + 1, "drop-barriers")
    with pytest.raises(Faults, match="race"):
        execute(lowered(tuple(passes)), PROGRAM, "sim")


def test_inputs_are_the_same_in_every_call() -> None:
    first, second = (arguments_of(PROGRAM, parse(PROGRAM)) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])


def test_a_module_of_two_functions_is_no_program() -> None:
    twice = Program(TEXT + TEXT.split("sym.symbol @N\n")[1].replace("@f", "@g"), PROGRAM.sizes)
    with pytest.raises(TilewrightError, match="expected a program of one function, got 2"):
        execute(parse(twice), twice, "reference")


CHOICE = """
sym.symbol @M
tile.kernel @k(%x: !tile.buf<[M], f32, global, #tile.strided<[1]>>) grid (%i) = [M] {
  %f = tile.alloc : !tile.buf<[1], f32, fragment>
  tile.fill %f with 1.0 : f32
  tile.copy %f to %x[%i] bounds [clip]
}
host.func @main(%a : tensor<?xf32, #sym.dims<M>>) -> (tensor<?xf32, #sym.dims<M>>) {
  %y = host.output 0 : tensor<?xf32, #sym.dims<M>>
  %d = host.dispatch -> tensor<?xf32, #sym.dims<M>> {
    case "result" when [M >= 3] { host.yield %y }
    case "scratch" { %q = host.alloc : tensor<?xf32, #sym.dims<M>>
      host.yield %q }
  }
  host.launch @k(%d)
}
"""


def test_a_launch_on_what_a_dispatch_chose() -> None:
    for size in (2, 4):
        program = Program(CHOICE, {"M": size})
        (result,) = execute(parse(program), program, "sim")
        np.testing.assert_array_equal(result, np.ones(size) if size == 4 else np.full(size, np.nan))


@pytest.mark.parametrize("backend", ["tile", "sim"])
@pytest.mark.parametrize(
    ("scratch", "message"),
    [
        ("pitch 9223372036854775807 : tensor<?xf32, #sym.dims<M>>", "out of memory: a tensor of shape"),
        (": tensor<?xf32, #sym.dims<M - 9>>", "size of an intermediate tensor|expected sizes of at least 0"),
    ],
)
def test_scratch_that_no_memory_holds(scratch: str, message: str, backend: str) -> None:
    text = CHOICE.replace("%d = host.dispatch", f"%s = host.alloc {scratch}\n  %d = host.dispatch")
    program = Program(text, {"M": 4})
    with pytest.raises(TilewrightError, match=message):
        execute(parse(program), program, backend)  # pyright: ignore[reportArgumentType]  # one of its literals
