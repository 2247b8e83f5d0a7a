"""The examples that are IR text run from the command line and agree with the reference."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tilewright.api.cli.command import main

TEXTS = sorted((Path(__file__).parents[2] / "examples").glob("*.mlir"))


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_text_passes_its_check(path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    assert main(["run", str(path), "--check", "--backend", "sim"], stdout=out, stderr=err) == 0, err.getvalue()
    assert out.getvalue().splitlines()[-1].startswith("PASS")


def test_the_texts_are_there() -> None:
    assert {p.stem for p in TEXTS} >= {"matmul_bias_relu", "row_softmax", "transpose"}
