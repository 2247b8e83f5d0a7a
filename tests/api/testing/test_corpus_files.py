"""Which files a corpus has, and what is said where its folder cannot be listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tilewright.api.testing.replay import corpus_files
from tilewright.diagnostics import TilewrightError


def test_all_below_a_folder_in_order(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("b.mlir", "a.mlir", "c.txt", "in/a.mlir"):
        (tmp_path / name).touch()
    assert [str(path.relative_to(tmp_path)) for path in corpus_files(tmp_path)] == ["a.mlir", "b.mlir", "in/a.mlir"]


def test_a_folder_that_cannot_be_listed_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(Path, "rglob", refuse)
    with pytest.raises(TilewrightError) as error:
        corpus_files(tmp_path)
    assert error.value.message == f"--corpus: cannot list {tmp_path}: Invalid argument"
