"""The IR texts of the design parse, verify, hold what their level promises, and round-trip in both forms."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.verify import verify_module
from tilewright.passes.verify_dims import VerifyDimsPass
from tilewright.passes.verify_facts import VerifyFactsPass

TEXTS = sorted((Path(__file__).parents[2] / "docs" / "design" / "ir").glob("*.mlir"))
SCHEDULED = (
    "tile_transpose",
    "tile_softmax",
    "tile_gemm_scheduled",
    "tile_gemm_hopper_3_specialised",
    "tile_gemm_warps_2_pipelined",
    "simt_gemm_hopper",
)


def read(text: str, name: str) -> ModuleOp:
    module = parse_module(text, name, make_context())
    verify_module(module)
    return module


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_round_trip(path: Path) -> None:
    module = read(path.read_text(), path.name)
    custom = str(module)
    assert str(read(custom, "custom form")) == custom
    generic = StringIO()
    Printer(generic, print_generic_format=True).print_op(module)
    assert str(read(generic.getvalue(), "generic form")) == custom


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_shapes_and_facts_hold(path: Path) -> None:
    context, module = make_context(), read(path.read_text(), path.name)
    VerifyDimsPass().apply(context, module)
    VerifyFactsPass().apply(context, module)


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_scheduled_texts_leave_nothing_open(path: Path) -> None:
    module = read(path.read_text(), path.name)
    gaps = [
        (op.name, gap)
        for kernel in module.ops
        if isinstance(kernel, KernelOp)
        for op in kernel.walk()
        for gap in getattr(op, "schedule_gaps", list)()
    ]
    assert bool(gaps) == (path.stem not in SCHEDULED)


def test_the_texts_are_there() -> None:
    assert {p.stem for p in TEXTS} >= {*SCHEDULED, "tile_gemm_0_plain", "host_plan"}
