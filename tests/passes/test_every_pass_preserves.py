"""Every pass and every lowering keeps what random programs mean; a new one is under test by being registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tilewright.api.testing.profiles import current_settings
from tilewright.api.testing.subject import REFERENCE_SIM, SIM_CPU
from tilewright.lowering.registry import all_lowerings
from tilewright.passes.registry import all_passes

# Other tests of the same process may have registered passes named test-..., which need not preserve anything, or loaded
# those of the examples, which find little to change in programs that are not made for them.
LOADED = {name for name, make in all_passes().items() if not make().__module__.startswith("tilewright.")}
NAMES = {n: n for n in (*all_passes(), *all_lowerings()) if not n.startswith("test-") and n not in LOADED}
NAMES["verify-level"] = "verify-level{level=tensor}"


@pytest.mark.parametrize("name", NAMES)
def test_pass(name: str, assert_pass_preserves: Callable[..., Any]) -> None:
    print(assert_pass_preserves(NAMES[name]))


def test_reference_against_simulator(assert_pass_preserves: Callable[..., Any]) -> None:
    print(assert_pass_preserves(REFERENCE_SIM))


@pytest.mark.cxx
def test_simulator_against_cpu(assert_pass_preserves: Callable[..., Any]) -> None:
    print(assert_pass_preserves(SIM_CPU, examples=current_settings().examples // 5))  # the C++ compiler takes its time
