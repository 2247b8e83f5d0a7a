"""The public interface names what it loads, and loads what it names."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.api import frontend


@pytest.mark.parametrize("name", [n for n in tw.__all__ if not n.startswith("__")])
def test_every_public_name_loads(name: str) -> None:
    assert getattr(tw, name) is not None


def test_the_front_end_is_public_as_a_whole() -> None:
    assert set(frontend.__all__) <= set(tw.__all__)
