"""`assert_pass_preserves` finds planted faults, as small programs in files that run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.testing.planted import ProveEverythingPass, SwapSubtractionPass
from tilewright.testing import NotPreserved, assert_pass_preserves


def test_swapped_operands(tmp_path: Path) -> None:
    with pytest.raises(NotPreserved) as raised:
        assert_pass_preserves(SwapSubtractionPass, examples=100, failures=tmp_path)
    print(raised.value)


def test_masks(tmp_path: Path) -> None:
    with pytest.raises(NotPreserved) as raised:
        assert_pass_preserves(ProveEverythingPass, examples=100, failures=tmp_path)
    print(raised.value)
