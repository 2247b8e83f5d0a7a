"""Files of passes that cannot be loaded at all, and an interrupt while one is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.diagnostics import TilewrightError
from tilewright.passes.registry import load_passes_from


def test_a_folder_is_no_file_of_passes(tmp_path: Path) -> None:
    folder = tmp_path / "passes.py"
    folder.mkdir()
    with pytest.raises(TilewrightError) as caught:
        load_passes_from(folder)
    assert caught.value.message == f"cannot load passes: there is no file {folder}"


@pytest.mark.parametrize("name", ["no\0file.py", "passes.py/inside.py"])
def test_what_cannot_be_a_file_is_none(name: str, tmp_path: Path) -> None:
    (tmp_path / "passes.py").write_text("", encoding="utf-8")
    with pytest.raises(TilewrightError, match="cannot load passes: there is no file"):
        load_passes_from(tmp_path / name)


def test_a_name_that_no_file_can_have_is_one_short_line(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 5000)
    with pytest.raises(TilewrightError) as caught:
        load_passes_from(path)
    assert caught.value.message == f"cannot load passes: File name too long: {str(path)[:80]}"


def test_an_interrupt_is_no_fault_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "slow.py"
    path.write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        load_passes_from(path)
