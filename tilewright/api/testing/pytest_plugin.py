"""The pytest plugin that comes with Tilewright: options, a fixture, and how to run a failure again.

    pytest --tilewright-profile medium      more programs for each pass: quick (default), medium, deep
    pytest --tilewright-seed 7              other programs
    pytest --tilewright-failures DIR        where failing programs are written

pytest imports this module in every project that has Tilewright installed, so it imports nothing that takes time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tilewright.api.testing.profiles import EXAMPLES, set_settings


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, in a group of their own."""
    group = parser.getgroup("tilewright", "Tilewright: passes on random programs")
    group.addoption(
        "--tilewright-profile", choices=tuple(EXAMPLES), help="how many programs for each pass (default: quick)"
    )
    group.addoption("--tilewright-seed", type=int, metavar="S", help="which programs (default: 0)")
    group.addoption(
        "--tilewright-failures", metavar="DIR", help="where failing programs are written (.tilewright/failures)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Hand the options to `assert_pass_preserves`."""
    folder: str | None = config.getoption("--tilewright-failures")
    set_settings(
        profile=config.getoption("--tilewright-profile"),
        seed=config.getoption("--tilewright-seed"),
        failures=None if folder is None else Path(folder),
    )


@pytest.fixture(name="assert_pass_preserves")
def assert_pass_preserves_fixture() -> Callable[..., Any]:
    """`tilewright.testing.assert_pass_preserves`, under the options of this run."""
    from tilewright.api.testing.preserve import assert_pass_preserves

    return assert_pass_preserves


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failure how to run its program again."""
    report = yield
    # Not imported here: a test that raises it has.
    module: Any = sys.modules.get("tilewright.api.testing.preserve")
    error: Any = None if call.excinfo is None else call.excinfo.value
    if module is not None and isinstance(error, module.NotPreserved) and error.path is not None:
        run, replay = error.failure.commands(error.path)
        report.sections.append(("tilewright: run it again", f"{replay}\n{run}"))
    return report
