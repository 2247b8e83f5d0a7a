"""One program, one subject, one place: execute before and after, and say what differs.

`check` raises a `CheckFailed` when something does, and returns whether the passes changed the program, the erasure of
dead ops aside. Every comparison is with the meaning of the program: the reference's results and their bounds for
programs of the tensor level, or of the one that states what a tile program means; for tile programs without such a
statement, what the tile interpreter makes of them as they are written.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tilewright.api.testing.execute import (
    PLAN,
    Array,
    Faults,
    PlannedCall,
    arguments_of,
    context,
    kernel_of,
    level_of,
    oracle,
    parse,
    planned,
)
from tilewright.api.testing.oracle import differs, zero_signs
from tilewright.api.testing.places import Place
from tilewright.api.testing.program import Program
from tilewright.api.testing.subject import Subject
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import FuncOp
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.simt.structure import KernelOp as SimtKernelOp
from tilewright.dialects.source_text import one_line
from tilewright.dialects.sym import RequireOp, SymbolOp
from tilewright.dialects.tile.structure import KernelOp as TileKernelOp
from tilewright.dialects.verify import verify_module
from tilewright.lowering import pipelines
from tilewright.passes.rewriting import apply_patterns
from tilewright.passes.verify_dims import VerifyDimsPass
from tilewright.passes.verify_facts import VerifyFactsPass
from tilewright.runtime.reference import ReferenceValue
from tilewright.runtime.sim.async_copies import Landing
from tilewright.runtime.tile_interpreter.host import interpret_host

Kernels = Mapping[str, TileKernelOp | SimtKernelOp]
TILE_TOLERANCE = 2.0**-12
"""Of the largest value: what the orders of sums and the libraries' exponentials may do to a kernel of f32."""
TILE_TOLERANCE_NARROW = 2.0**-5
"""The same where a result or an intermediate value has 8 or 11 bits."""


class CheckFailed(Exception):
    """Something differs; the message is one line: after what, where it was seen, expected and got."""


class SetupFailed(CheckFailed):
    """The pipeline in front of the passes fails by itself: no fault of theirs."""


class Raised(CheckFailed):
    """A pass, or what follows it, raised."""


class Invalid(CheckFailed):
    """A pass left IR that does not verify, or facts that do not follow."""


class Faulty(CheckFailed):
    """The simulator saw a race, an access out of bounds or the like."""


class Wrong(CheckFailed):
    """The results differ."""


@dataclass(frozen=True)
class Meaning:
    """What a program computes, and the inputs that it was asked about."""

    program: Program
    module: ModuleOp
    inputs: list[Any]
    expected: list[ReferenceValue]
    signs: tuple[bool, ...] = ()
    """For each result whether the sign of its zeros is promised; empty where none is."""


def meaning_of(program: Program) -> Meaning:
    """Parse a program and evaluate it; SetupFailed if that cannot be done."""
    with _during(SetupFailed, "the program as it is written"):
        module = parse(program)
        inputs = arguments_of(program, module)
        if level_of(module) == "tensor":
            return Meaning(program, module, inputs, oracle(module, inputs, program.sizes), _signs(module))
        if program.meaning:
            stated = parse_module(program.meaning, "meaning.mlir", context())
            return Meaning(program, module, inputs, oracle(stated, inputs, program.sizes), _signs(stated))
        return Meaning(program, module, inputs, [_tolerant(module, r) for r in interpret_host(module, None, inputs)])


def _signs(module: ModuleOp) -> tuple[bool, ...]:
    return next((zero_signs(op) for op in module.ops if isinstance(op, func.FuncOp)), ())


def check(subject: Subject, place: Place | None, program: Program, *, to_sim: bool = True) -> bool:
    """Hold one program to its meaning around the passes of a subject; whether they changed more than erase dead ops.

    `place` is None for subjects that compare executors. `to_sim` also takes what a pass of the tensor level made
    through the rest of the pipelines into the simulator; passes below it always go there.
    """
    if subject.kind == "reference-sim":
        _reference_against_sim(meaning_of(program))
        return True
    if subject.kind == "sim-cpu":
        _sim_against_cpu(meaning_of(program))
        return True
    if place is None:
        raise TilewrightError(f"{subject.name}: expected a place in the pipelines, got none")
    if place.pipeline == "TENSOR":
        return _in_tensor(subject, place, meaning_of(program), to_sim)
    return _in_tile(subject, place, meaning_of(program))


def fits(place: Place | None, program: Program) -> bool:
    """Whether a program can be taken to a place: kernels of the tile level start behind lin-to-tile."""
    if place is None or program.level == "tensor" or place.pipeline == "TILE":
        return True
    return place.index >= pipelines.TENSOR.index(PLAN[0])


def _in_tensor(subject: Subject, place: Place, meaning: Meaning, to_sim: bool) -> bool:
    """A subject somewhere in TENSOR: held to the reference there, or to the tile interpreter from lin-to-tile on."""
    before = meaning.module.clone()
    with _during(SetupFailed, f"before {subject.name}"):
        start = pipelines.TENSOR.index(PLAN[0]) if level_of(before) == "tile" else 0
        pipelines.run(before, context(), place.before[start:])
    after = before.clone()
    _apply(subject, after)
    if not _changed(subject, before, after):
        return False
    fired = not _only_erased(before, after)
    if not any(isinstance(op, FuncOp) for op in after.ops) and level_of(after) == "tile":
        _instances(subject, before, after, meaning)
        return fired
    what = f"after {subject.name}"
    if level_of(after) == "tensor":
        with _during(Raised, f"{what}, in the reference"):
            results = [r.rounded for r in oracle(after, meaning.inputs, meaning.program.sizes)]
        compare_results(results, meaning, f"{what}, in the reference")
        if not to_sim:
            return fired
    else:
        with _during(Raised, f"{what}, in the tile interpreter"):
            results = interpret_host(after, None, meaning.inputs)
        compare_results(results, meaning, f"{what}, in the tile interpreter")
    with _during(Raised, f"{what}, in the rest of the pipeline"):
        rest = place.following(subject.pass_names)
        if level_of(after) == "tile":
            rest = tuple(n for n in rest if n in PLAN)
        pipelines.run(after, context(), rest)
        call = PlannedCall(planned(after), meaning.inputs)
        kernels = {site: call.simt(site) for site in call.sites}
    _simulated(call, kernels, meaning, f"{what} and the rest of the pipeline, in the simulator")
    return fired


def _in_tile(subject: Subject, place: Place, meaning: Meaning) -> bool:
    """A subject in TILE, on each variant that the call launches: the tile interpreter, then the simulator."""
    before: dict[str, ModuleOp] = {}
    with _during(SetupFailed, f"before {subject.name}"):
        call = PlannedCall(planned(meaning.module), meaning.inputs)
        for site in call.sites:
            before[site] = call.instantiated(site)
            pipelines.run(before[site], context(), place.before)
    after = {site: module.clone() for site, module in before.items()}
    changed = fired = False
    for site, module in after.items():
        _apply(subject, module)
        if _changed(subject, before[site], module):
            changed = True
            fired = fired or not _only_erased(before[site], module)
    if not changed:
        return False
    what = f"after {subject.name}"
    if all(level_of(module) == "tile" for module in after.values()):
        with _during(Raised, f"{what}, in the tile interpreter"):
            results = call.interpret({site: kernel_of(module) for site, module in after.items()})
        compare_results(results, meaning, f"{what}, in the tile interpreter")
    with _during(Raised, f"{what}, in the rest of the pipeline"):
        for module in after.values():
            pipelines.run(module, context(), place.following(subject.pass_names))
        kernels = {site: kernel_of(module) for site, module in after.items()}
    _simulated(call, kernels, meaning, f"{what} and the rest of the pipeline, in the simulator")
    return fired


def _instances(subject: Subject, before: ModuleOp, after: ModuleOp, meaning: Meaning) -> None:
    """Kernels for all variants, without the plan that launches them: those that the call wants, by name."""
    what = f"after {subject.name}"
    with _during(Raised, what):
        call = PlannedCall(planned(before), meaning.inputs)
        kernels: dict[str, TileKernelOp | SimtKernelOp] = {}
        for site in call.sites:
            found = [k for k in after.ops if isinstance(k, TileKernelOp) and k.sym_name.data == site]
            if len(found) != 1:
                raise TilewrightError(f"expected a kernel @{site}, got {len(found)}")
            kernels[site] = found[0]
        results = call.interpret(kernels)
    compare_results(results, meaning, f"{what}, in the tile interpreter")
    with _during(Raised, f"{what}, in the rest of the pipeline"):
        for site, kernel in kernels.items():
            facts = [op.clone() for op in after.ops if isinstance(op, SymbolOp | RequireOp)]
            module = ModuleOp([*facts, kernel.clone()])
            pipelines.run(module, context(), pipelines.TILE)
            kernels[site] = kernel_of(module)
    _simulated(call, kernels, meaning, f"{what} and the rest of the pipeline, in the simulator")


def _reference_against_sim(meaning: Meaning) -> None:
    with _during(Raised, "in the pipeline"):
        call = PlannedCall(planned(meaning.module), meaning.inputs)
        kernels = {site: call.simt(site) for site in call.sites}
    _simulated(call, kernels, meaning, "in the simulator")


def _sim_against_cpu(meaning: Meaning) -> None:
    with _during(Raised, "in the pipeline"):
        call = PlannedCall(planned(meaning.module), meaning.inputs)
        kernels = {site: call.simt(site) for site in call.sites}
        simulated = call.simulate(kernels)
    with _during(Raised, "on the CPU"):
        computed = call.compute(kernels)
    exact = [ReferenceValue(_wide(r), r, _no_error(r)) for r in simulated]
    same = replace(meaning, expected=exact, signs=(True,) * len(exact))
    compare_results(computed, same, "on the CPU, against the simulator")


def _simulated(
    call: PlannedCall, kernels: Mapping[str, TileKernelOp | SimtKernelOp], meaning: Meaning, what: str
) -> None:
    def run(landing: Landing) -> None:
        try:
            with _during(Raised, what):
                results = call.simulate(kernels, landing)
        except Raised as raised:
            if isinstance(raised.__cause__, Faults):
                raise Faulty(str(raised)) from None
            raise
        compare_results(results, meaning, what)

    run("latest")
    for landing in call.landings(kernels)[1:]:
        run(landing)


def _apply(subject: Subject, module: ModuleOp) -> None:
    """Run the passes in place; what they leave must verify, and every fact on it must follow."""
    for each in subject.passes:
        with _during(Raised, f"in {each.name}"):
            each.apply(context(), module)
        with _during(Invalid, f"after {each.name}"):
            verify_module(module)
            VerifyDimsPass().apply(context(), module)
            if any(isinstance(op, TileKernelOp) for op in module.ops):
                VerifyFactsPass().apply(context(), module)


def _changed(subject: Subject, before: ModuleOp, after: ModuleOp) -> bool:
    same = before.is_structurally_equivalent(after)
    if not same and subject.only_checks:
        raise Invalid(f"after {subject.name}: a check changed the program")
    return not same


def _only_erased(before: ModuleOp, after: ModuleOp) -> bool:
    """Whether modules that differ are the same without their dead ops.

    A driver of patterns may erase those on the way, whether or not a pattern of the pass has matched.
    """
    living = [module.clone() for module in (before, after)]
    for module in living:
        apply_patterns(module, (), erase_dead=True)
    return living[0].is_structurally_equivalent(living[1])


def compare_results(results: Sequence[Array], meaning: Meaning, what: str) -> None:
    """Raise Wrong at the first element that is not what the program means."""
    if len(results) != len(meaning.expected):
        raise Wrong(f"{what}: expected {len(meaning.expected)} results, got {len(results)}")
    signs = meaning.signs or (False,) * len(results)
    for number, (got, want, sign) in enumerate(zip(results, meaning.expected, signs, strict=True)):
        difference = first_difference(got, want, sign)
        if difference is not None:
            raise Wrong(f"{what}: result {number}{difference}")


def first_difference(got: Array, want: ReferenceValue, zero_sign: bool = False) -> str | None:
    """` at [0, 3]: expected 1.5 within 1e-06, got nan (2 of 33 elements differ)`, or None where all is as it should be.

    With `zero_sign` a zero must have the sign of the one that is expected.
    """
    if got.shape != want.rounded.shape or got.dtype != want.rounded.dtype:
        expected = f"{list(want.rounded.shape)} of {want.rounded.dtype}"
        return f": expected shape {expected}, got {list(got.shape)} of {got.dtype}"
    beyond = differs(got, want, zero_signs=zero_sign)
    if not np.any(beyond):
        return None
    index = tuple(int(i) for i in np.argwhere(beyond)[0])
    bound = float(np.broadcast_to(want.bound, got.shape)[index])
    within = f" within {bound:.3g}" if bound else ""
    count = int(np.count_nonzero(beyond))
    return (
        f" at {list(index)}: expected {want.value[index]}{within}, got {got[index]} ({count} of {got.size} elements "
        "differ)"
    )


def _tolerant(module: ModuleOp, result: Array) -> ReferenceValue:
    """What the tile interpreter computed, with a bound for other orders of the same sums; integers are exact."""
    value = _wide(result)
    if result.dtype.kind in "biu":
        return ReferenceValue(value, result, _no_error(result))
    text = str(module)
    narrow = "bf16" in text or "f16" in text
    finite = np.abs(value[np.isfinite(value)])
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    bound = np.where(np.isfinite(value), scale * (TILE_TOLERANCE_NARROW if narrow else TILE_TOLERANCE), 0.0)
    return ReferenceValue(value, result, bound)


def _no_error(array: Array) -> Array:
    return np.zeros(array.shape, np.float64)


def _wide(array: Array) -> Array:
    return array if array.dtype.kind in "biu" else array.astype(np.float64)


@contextmanager
def _during(kind: type[CheckFailed], what: str) -> Generator[None]:
    """Turn whatever is raised into a failure of this kind that says when it was."""
    try:
        yield
    except CheckFailed:
        raise
    except Exception as error:
        message = error.message if isinstance(error, TilewrightError) else f"{type(error).__name__}: {error}"
        raise kind(one_line(f"{what}: {message}")) from error
