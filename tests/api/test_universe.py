"""Plain `xdsl-opt` knows our dialects, passes and targets."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from xdsl.universe import XDSL_UNIVERSE

from tilewright.api.universe import TILEWRIGHT_UNIVERSE
from tilewright.dialects.registry import all_dialects
from tilewright.passes.registry import all_passes

ROOT = Path(__file__).parents[2]
PROGRAM = """sym.symbol @M {min = 1}
func.func @f(%x: tensor<?x4xf32, #sym.dims<M, 4>>) -> tensor<4x?xf32, #sym.dims<4, M>> {
  %t = lin.transpose %x perm [1, 0] : tensor<?x4xf32, #sym.dims<M, 4>> -> tensor<4x?xf32, #sym.dims<4, M>>
  %u = lin.transpose %t perm [1, 0] : tensor<4x?xf32, #sym.dims<4, M>> -> tensor<?x4xf32, #sym.dims<M, 4>>
  %v = lin.transpose %u perm [1, 0] : tensor<?x4xf32, #sym.dims<M, 4>> -> tensor<4x?xf32, #sym.dims<4, M>>
  func.return %v : tensor<4x?xf32, #sym.dims<4, M>>
}
"""


def xdsl_opt(text: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "xdsl.tools.xdsl_opt", *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


LIST_PASSES = """
from tilewright.api.universe import TILEWRIGHT_UNIVERSE
from tilewright.lowering.registry import all_lowerings
from tilewright.passes.registry import all_passes
names = {name.removeprefix("tilewright-") for name in TILEWRIGHT_UNIVERSE.all_passes}
assert names == {*all_passes(), *all_lowerings()}
print(*names)
"""


def test_every_pass_is_there() -> None:
    """In a process of its own: other tests of this one may have registered passes since the universe was made."""
    done = subprocess.run([sys.executable, "-c", LIST_PASSES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"cse", "lin-to-tile"} <= set(done.stdout.split())


def test_no_name_is_taken_twice() -> None:
    assert set(TILEWRIGHT_UNIVERSE.all_passes) & set(XDSL_UNIVERSE.all_passes) == set()
    assert set(TILEWRIGHT_UNIVERSE.all_dialects) == set(all_dialects()) - set(XDSL_UNIVERSE.all_dialects)
    assert "cuda" in TILEWRIGHT_UNIVERSE.all_targets


def test_a_renamed_pass_is_the_pass() -> None:
    made = TILEWRIGHT_UNIVERSE.all_passes["tilewright-cse"]()
    assert made.name == "tilewright-cse"
    assert issubclass(made, all_passes()["cse"]())


def test_the_entry_point_is_declared() -> None:
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert (
        '[project.entry-points."xdsl.universe"]\ntilewright = "tilewright.api.universe:TILEWRIGHT_UNIVERSE"' in declared
    )


@pytest.mark.skipif(
    not any(point.name == "tilewright" for point in entry_points(group="xdsl.universe")),
    reason="the package is not installed with its entry points",
)
def test_xdsl_opt_runs_our_passes_on_our_dialects(tmp_path: Path) -> None:
    out = xdsl_opt(PROGRAM, "-p", "cancel-movement,tilewright-canonicalize,tilewright-cse,verify-level{level=tensor}")
    assert out.count("lin.transpose") == 1
    kernels = xdsl_opt(out, "-p", "infer-shapes,decompose,lin-to-tile{tile-sizes=8,8}")
    assert "tile.kernel" in kernels
    assert "lin." not in kernels
    threads = (ROOT / "tests" / "lowering" / "kernels" / "scale.mlir").read_text(encoding="utf-8")
    source = xdsl_opt(threads, "-p", "tile-to-simt,tilewright-canonicalize", "-t", 'cuda{arch="sm_90a"}')
    assert 'extern "C" __global__ void' in source
