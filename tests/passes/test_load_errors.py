"""Files of passes that cannot be loaded at all, and an interrupt while one is."""

from __future__ import annotations

import sys
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


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="from Python 3.14 on there is just no such file")
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
