"""`tile_kernels()`: what is drawn is legal, varied and small, and means what its `lin` program means."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from xdsl.ir import Operation

from tilewright.api.testing.execute import SCHEDULE, Backend, PlannedCall, arguments_of, execute, parse, planned
from tilewright.api.testing.program import Program
from tilewright.api.testing.tile_kernels import TileProgram, tile_kernels
from tilewright.api.testing.tile_kernels_layouts import spread_tile_kernels
from tilewright.dialects.tile.dialect import Tile
from tilewright.dialects.tile.structure import AllocOp, KernelOp
from tilewright.passes.tile_analysis import copies, gathers
from tilewright.runtime.reference import compare, run_reference

DRAWS = 200
EVERY_CHECK = (
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
)
CHANNELS = "kernels with channels are made by passes, for matrix instructions"
NEVER: dict[str, str] = {
    **dict.fromkeys(("tile.channel", "tile.acquire", "tile.publish", "tile.receive", "tile.release"), CHANNELS),
    **dict.fromkeys(("tile.roles", "tile.block_count", "tile.raster", "tile.slice"), CHANNELS),
}
"""Ops of the dialect that the strategy leaves out, each with the reason."""


@cache
def drawn() -> tuple[TileProgram, ...]:
    """The same programs in every run."""
    found: list[TileProgram] = []

    @seed(27)
    @settings(max_examples=DRAWS, database=None, phases=[Phase.generate], suppress_health_check=EVERY_CHECK)
    @given(tile_kernels())
    def collect(program: TileProgram) -> None:
        found.append(program)

    collect()
    return tuple(found)


def check(program: TileProgram, *backends: Backend) -> None:
    """The tile module runs as its meaning says."""
    module, meaning = parse(program), parse(Program(program.meaning))
    wanted = run_reference(meaning, "main", arguments_of(program, meaning), program.sizes)
    for backend in backends:
        for number, (got, want) in enumerate(zip(execute(module, program, backend), wanted, strict=True)):
            mismatch = compare(got, want)
            assert mismatch is None, f"{backend}, result {number}: {mismatch}\n{dict(program.sizes)}\n{program.text}"


@pytest.mark.parametrize("part", range(4))
def test_draws_mean_what_their_lin_programs_mean(part: int) -> None:
    """Each verifies and runs in the interpreter; every fifth also through the tile pipeline, in the simulator."""
    for number, program in enumerate(drawn()[part::4]):
        check(program, "tile", *(("sim",) if number % 5 == part else ()))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all_draws_run_through_the_tile_pipeline(part: int) -> None:
    for program in drawn()[part::4]:
        check(program, "sim")


@pytest.mark.slow
@given(tile_kernels())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_draw_runs_through_the_tile_pipeline(program: TileProgram) -> None:
    check(program, "tile", "sim")


@given(spread_tile_kernels())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_layouts_by_hand_are_kept(program: TileProgram) -> None:
    """Through the whole tile pipeline, into the simulator."""
    module = parse(program)
    check(program, "sim")
    call = PlannedCall(planned(module), arguments_of(program, module))
    for name in call.sites:
        assert decided(call.lowered(name, SCHEDULE)) == decided(call.lowered(name, ()))


@given(spread_tile_kernels())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_layouts_of_a_kernel_that_is_not_mapped_are_chosen_anew(program: TileProgram) -> None:
    """Whatever was written for other layouts, such as widths, goes with them."""
    free = replace(program, text=re.sub(r" threads \d+ mapped", "", program.text))
    assert free.text != program.text
    check(free, "sim")


def decided(kernel: Operation) -> list[object]:
    """The block size, the layout of each fragment, and of each copy between global and shared memory."""
    assert isinstance(kernel, KernelOp)
    assert kernel.mapped is not None
    fragments = [op.type for op in kernel.walk() if isinstance(op, AllocOp) and op.type.space.data == "fragment"]
    return [kernel.threads, *fragments, *(op.dist for op in (*copies(kernel), *gathers(kernel)))]


def test_both_texts_are_one_function() -> None:
    for program in drawn():
        signatures = [
            re.search(r"func(?:\.func)? @main\((.*)\) -> \((.*)\) \{", text) for text in (program.text, program.meaning)
        ]
        assert signatures[0] is not None
        assert signatures[1] is not None
        assert signatures[0].groups() == signatures[1].groups()
        assert program.level == "tile"


def test_every_op_of_the_dialect_is_drawn() -> None:
    names = {op.name for op in Tile.operations}
    assert names >= NEVER.keys(), "an op that is left out must exist"
    found: set[str] = set()
    for program in drawn():
        found |= names.intersection(re.findall(r"(?<![#!])\btile\.\w+", program.text))
    assert found == names - NEVER.keys()


VARIETY: dict[str, str] = {
    "no grid": r"grid \(\) = ",
    "three grid dims": r"grid \(%g0, %g1, %g2\) = ",
    "two kernels": r"(?s)tile\.kernel.*tile\.kernel",
    "scratch between them": r"host\.alloc",
    "several results": r"host\.output 1",
    "contiguous inside": r"strided<\[\w+_s0, 1\]>",
    "contiguous": r"global, #tile\.strided<\[[A-Z0-9][^\]]*\*[^\]]*, \w+, 1\]>",
    "declared divisor": r"multiple_of",
    "declared greatest value": r"max = ",
    "size plus a constant": r"dims<[^>]*[A-Z] \+ \d",
    "multiple of a symbol": r"dims<[^>]*2\*[A-Z]",
    "loop over a symbolic extent": r"tile\.for %k\d+ = 0 to [A-Z]",
    "nested loops": r"(?m)^    tile\.for .*\n(?:.*\n)?      tile\.for ",
    "loop unrolled by hand": r"unroll \d",
    "fragment carried through a loop": r"tile\.for %r",
    "tile of odd size": r"fragment.*\[(\d+, )*[357](, \d+)*\], \w+, fragment|\[[357]\], \w+, fragment",
    "proved bound": r"bounds \[.*proved",
    "identity that fills": r"other 0xff800000|other -2147483648|other 0x7f800000",
    "mask on a map": r"outs\(.*\) valid\(",
    "mask on a reduction": r"tile\.reduce .*valid\(",
    "mask on a gather": r"tile\.gather .*valid\(",
    "ids": r"tile\.gather .* with v0 = ",
    "gather into shared memory": r"tile\.gather .* to %s\d",
    "shared layout by hand": r"shared, #tile\.strided<\[",
    "shared layout left open": r"\], \w+, shared>",
    "turned or padded": r"shared, #tile\.strided<\[1, \d",
    "shared buffer used twice": r"(?s)to (%s\d+)\b.*to \1\b",
    "part of a shared buffer": r"tile\.copy %s\d+\[",
    "tile put together in shared memory": r"tile\.copy %f\d+ to %s\d+\[",
    "result by way of shared memory": r"tile\.copy %(?:f|t|acc)\d+ to %s\d",
    "barrier by hand": r"tile\.sync",
    "distribution by hand": r" dist #tile",
    "instruction by hand": r" inst fma",
    "access by hand": r" via thread width 1",
    "fragment made once for all turns": r"(?m)^  %f\d+ = .*\n(?:.*\n)*?  tile\.for(?:.*\n)*?.*to %f",
    "scalar argument": r"%c0: ",
    "broadcast dim": r"%f\d+\[.*\b0\b.*\]",
    "index of an element": r"tile\.index",
    **{f"reduction by {word}": rf"tile\.reduce {word} " for word in ("sum", "max", "min", "prod")},
    **{f"multiplication in {word}": rf"(?s)acc\d+ = .*\], {word}, frag.*tile\.mma" for word in ("f32", "i32")},
    **{f"elements of {word}": rf"\], {word}, global" for word in ("f32", "bf16", "f16", "i32")},
}


def test_draws_are_varied() -> None:
    texts = [program.text for program in drawn()]
    assert [what for what, pattern in VARIETY.items() if not any(re.search(pattern, t) for t in texts)] == []
    sizes = {size for program in drawn() for size in program.sizes.values()}
    assert {0, 1} <= sizes


@pytest.mark.parametrize("word", ["tile.mma", "tile.reduce", "tile.kernel @main_1"])
def test_shrinks_to_a_small_kernel(word: str) -> None:
    quick = settings(max_examples=2000, database=None, derandomize=True, suppress_health_check=EVERY_CHECK)
    program = find(tile_kernels(), lambda p: word in p.text, settings=quick)
    kernels = 2 if "main_1" in word else 1
    assert program.text.count("tile.kernel") == kernels
    assert len(re.findall(r"tile\.(?!kernel|buf|strided)\w+", program.text)) <= 12 * kernels
    assert max(program.sizes.values(), default=0) < 33
