"""Variants that the passes make for matrix instructions: tiles, epilogues, layouts, stages, with and without roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.wgmma import WgmmaOp
from tilewright.lowering import pipelines
from tilewright.runtime.backends.host import HostLaunch
from tilewright.runtime.backends.sim import SimBackend, buffer_of
from tilewright.runtime.plan import Site
from tilewright.runtime.reference import run_reference
from tilewright.runtime.sim.launch import compile_kernel
from tilewright.runtime.variants import CompiledEntry, Lowered

BF16 = ml_dtypes.bfloat16
HEAD = """
!A = tensor<?x?xbf16, #sym.dims<M, K>>
!At = tensor<?x?xbf16, #sym.dims<K, M>>
!B = tensor<?x?xbf16, #sym.dims<K, N>>
!Bt = tensor<?x?xbf16, #sym.dims<N, K>>
!C = tensor<?x?xbf16, #sym.dims<M, N>>
!Ct = tensor<?x?xbf16, #sym.dims<N, M>>
!F = tensor<?x?xf32, #sym.dims<M, N>>
!V = tensor<?xbf16, #sym.dims<N>>
!HA = tensor<?x?xf16, #sym.dims<M, K>>
!HB = tensor<?x?xf16, #sym.dims<K, N>>
!HC = tensor<?x?xf16, #sym.dims<M, N>>
sym.symbol @M {min = 0, multiple_of = 8}
sym.symbol @N {min = 0, multiple_of = 8}
sym.symbol @K {min = 0, multiple_of = 8}
"""
PLAIN = """func.func @f(%a: !A, %b: !B) -> !C {
  %c = lin.matmul %a, %b : !A, !B -> !C
  func.return %c : !C
}"""
PROGRAMS: dict[str, tuple[str, tuple[str, ...], Any]] = {
    # name: (function, dims of the arguments, dtype of the arguments)
    "plain": (PLAIN, ("MK", "KN"), BF16),
    "f16": (PLAIN.replace("!A", "!HA").replace("!B", "!HB").replace("!C", "!HC"), ("MK", "KN"), np.float16),
    "f32 result": (PLAIN.replace("!C", "!F"), ("MK", "KN"), BF16),
    "transposed": (
        """func.func @f(%a: !At, %b: !Bt) -> !C {
  %s = lin.transpose %a perm [1, 0] : !At -> !A
  %t = lin.transpose %b perm [1, 0] : !Bt -> !B
  %c = lin.matmul %s, %t : !A, !B -> !C
  func.return %c : !C
}""",
        ("KM", "NK"),
        BF16,
    ),
    "transposed result": (
        """func.func @f(%a: !A, %b: !B) -> !Ct {
  %c = lin.matmul %a, %b : !A, !B -> !C
  %t = lin.transpose %c perm [1, 0] : !C -> !Ct
  func.return %t : !Ct
}""",
        ("MK", "KN"),
        BF16,
    ),
    "bias and relu": (
        """func.func @f(%a: !A, %b: !B, %v: !V) -> !C {
  %c = lin.matmul %a, %b : !A, !B -> !F
  %d = lin.map ins(%c, %v : !F, !V) -> !C {
  ^bb0(%x: f32, %y: bf16):
    %w = arith.extf %y : bf16 to f32
    %s = arith.addf %x, %w : f32
    %z = arith.constant 0.0 : f32
    %r = arith.maximumf %s, %z : f32
    %q = arith.truncf %r : f32 to bf16
    lin.yield %q : bf16
  }
  func.return %d : !C
}""",
        ("MK", "KN", "N"),
        BF16,
    ),
}
SIZES = {"M": 136, "N": 264, "K": 136}
TILES = ("64x64", "64x128", "128x256")


class Forced(CompiledEntry):
    """An entry whose launches all take the kernel of one tile shape."""

    tile = ""

    def lower(self, site: Site) -> Lowered:
        """The same variant of that kernel."""
        (wanted,) = [name for name in self.sites if name.split("/") == [f"f_0_tile{self.tile}", site.variant]]
        return super().lower(self.sites[wanted])


class Checked(SimBackend):
    """Runs each launch at level `check` in both landings; they must agree in all bits."""

    def run(self, launches: Sequence[HostLaunch], force: bool) -> None:
        for launch in launches:
            kernel = launch.lowered.kernel
            assert any(isinstance(op, WgmmaOp) for op in kernel.walk())
            blocks = int(kernel.grid.data.evaluate(SIZES))
            each = replace(launch, grid=min(blocks, 2) if kernel.persistent is not None else blocks)
            program = compile_kernel(kernel, "check", aliased=False)
            buffers = [buffer_of(tensor) for tensor in each.tensors]
            results: list[bytes] = []
            for landing in ("latest", "earliest"):
                report = program.run(
                    buffers, each.scalars, grid=each.grid, map_sizes=each.map_sizes, landing=landing, seed=5
                )
                assert not report.diagnostics, [str(d) for d in report.diagnostics]
                results.append(np.asarray(buffers[-1].data).tobytes())
            assert results[0] == results[1]


def check(program: str, tile: str) -> None:
    function, dims, dtype = PROGRAMS[program]
    module = parse_module(HEAD + function, "variant.mlir", make_context())
    random = np.random.default_rng(11)
    arguments = [random.standard_normal([SIZES[d] for d in each]).astype(dtype) for each in dims]
    entry = Forced(module, "f", "sm_90a")
    entry.tile = tile
    (found,) = Checked(entry).call(arguments, None, None, False)
    (reference,) = run_reference(module, "f", arguments, SIZES)
    assert (np.abs(found.astype(np.float64) - reference.value) <= reference.bound).all()


@pytest.mark.parametrize(
    ("program", "tile"), [("plain", t) for t in TILES] + [(p, t) for p in PROGRAMS for t in TILES[::2] if p != "plain"]
)
def test_tiles_and_epilogues(program: str, tile: str) -> None:
    check(program, tile)


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize(
    "without", [(), ("specialise-warps",), ("make-persistent",), ("specialise-warps", "make-persistent")]
)
def test_stages_with_and_without_roles(monkeypatch: pytest.MonkeyPatch, without: tuple[str, ...], stages: int) -> None:
    make = pipelines.make_passes

    def some(names: Sequence[str], options: Mapping[str, Mapping[str, Any]] | None = None) -> list[Any]:
        given = {**(options or {}), "pipeline-copies": {"stages": stages}}
        return make([name for name in names if name not in without], given)

    monkeypatch.setattr(pipelines, "make_passes", some)
    check("plain", "64x64")
