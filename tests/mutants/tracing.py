"""A pytest plugin (`-p tests.mutants.tracing`): which lines each test runs, what it costs, and how it ends.

Coverage was started by `subprocesses/sitecustomize.py`; this tells it which test runs, and in the environment also the
processes that a test starts. At the end each worker writes `tests-<pid>.json`: test id -> [seconds, outcome], where
seconds are of processor time, of the test and the processes that it started: a busy machine changes them little.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import coverage
import pytest

_tests: dict[str, list[Any]] = {}  # filled by the hooks of this process


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    running = coverage.Coverage.current()
    assert running is not None, "coverage was not started: is tests/mutants/subprocesses on PYTHONPATH?"
    os.environ["TILEWRIGHT_MUTANTS_TEST"] = item.nodeid
    running.switch_context(item.nodeid)
    before = _processor_seconds()
    try:
        return (yield)
    finally:
        _tests.setdefault(item.nodeid, [0.0, "passed"])[0] = _processor_seconds() - before
        running.switch_context("")
        os.environ["TILEWRIGHT_MUTANTS_TEST"] = ""


def _processor_seconds() -> float:
    return sum(os.times()[:4])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "PYTEST_XDIST_WORKER_COUNT" in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        return  # the controller hears of what its workers did
    entry = _tests.setdefault(report.nodeid, [0.0, "passed"])
    if report.outcome != "passed":
        entry[1] = "skipped" if report.skipped and entry[1] == "passed" else report.outcome


def pytest_sessionfinish() -> None:
    running = coverage.Coverage.current()
    if running is not None:
        running.save()
    if _tests:
        folder = Path(os.environ["TILEWRIGHT_MUTANTS_TRACE"])
        (folder / f"tests-{os.getpid()}.json").write_text(json.dumps(_tests), encoding="utf-8")
