"""verify-level follows a program down: each level's program passes at its level and at no other."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.passes.support import CONTEXT, make_pass, parse
from tilewright.diagnostics import TilewrightError
from tilewright.lowering.registry import all_lowerings
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.verify_level import LEVELS, schedule_gaps

TEXT = """sym.symbol @M
sym.symbol @N
func.func @f(%x: tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?x?xf32, #sym.dims<M, N>> {
  %y = lin.softmax %x axis 1 : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?x?xf32, #sym.dims<M, N>>
  func.return %y : tensor<?x?xf32, #sym.dims<M, N>>
}
"""


def lowered(*names: str) -> ModuleOp:
    module = parse(TEXT)
    tensor = ("infer-shapes", "canonicalize", "decompose", "fuse-elementwise", "fuse-groups")
    lowerings = all_lowerings()
    passes = [make_pass(name) if name not in lowerings else lowerings[name]()() for name in (*tensor, *names)]
    run_pipeline(module, CONTEXT, passes)
    return module


PROGRAMS = {"tensor": (), "tile": ("lin-to-tile",)}


@pytest.mark.parametrize("level", list(PROGRAMS))
def test_a_program_is_of_its_own_level_alone(level: str) -> None:
    module = lowered(*PROGRAMS[level])
    before = str(module)
    refused: dict[str, TilewrightError] = {}
    for candidate in LEVELS:
        try:
            make_pass("verify-level", level=candidate).apply(CONTEXT, module)
        except TilewrightError as error:
            refused[candidate] = error
    for candidate, error in refused.items():
        assert f"level {candidate}: expected" in error.message
        assert error.location is not None
    accepted = [candidate for candidate in LEVELS if candidate not in refused]
    # A launch plan stands beside kernels from the tile level on, so the tile program is one of the host level too.
    assert accepted == ([level, "host"] if level == "tile" else [level])
    assert str(module) == before


def test_gaps_are_named_and_counted() -> None:
    module = lowered("lin-to-tile")
    gaps = list(schedule_gaps(module))
    assert gaps
    with pytest.raises(TilewrightError) as caught:
        make_pass("verify-level", level="tile", stage="scheduled").apply(CONTEXT, module)
    assert caught.value.message.endswith(f"{gaps[0][1]} (and {len(gaps) - 1} more)")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "linalg"}, "expected level to be one of tensor, tile, simt, host, got 'linalg'"),
        ({"level": "tile", "stage": "done"}, "expected stage to be one of free, scheduled, got 'done'"),
        ({"level": "host", "stage": "scheduled"}, "stage scheduled is a stage of level tile, got level host"),
    ],
)
def test_options_are_checked(options: dict[str, str], message: str) -> None:
    with pytest.raises(TilewrightError) as caught:
        make_pass("verify-level", **options)
    assert message in caught.value.message
