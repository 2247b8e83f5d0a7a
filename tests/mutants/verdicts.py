"""A pytest plugin (`-p tests.mutants.verdicts`): runs the tests of a plan in its order, and writes down how it ended.

The plan (a JSON file that TILEWRIGHT_MUTANTS_PLAN names) has `tests` (pytest ids with seconds), `tree`, `seconds` for
all, `patience` for a short one, and `result`, the file to write. A test that takes far more processor time than it
ever did hangs: the process ends at once. What waits without end is ended by the runner. A mutant may ask for any
amount of memory, so there is a limit. Hypothesis finds failures but does not shrink them.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from pathlib import Path
from typing import Any, Final

import hypothesis
import pytest

STARTED: Final = time.monotonic()
PLAN: Final[dict[str, Any]] = json.loads(Path(os.environ["TILEWRIGHT_MUTANTS_PLAN"]).read_text(encoding="utf-8"))
SECONDS: Final[dict[str, float]] = dict(PLAN["tests"])
MEMORY: Final = 6 << 30
PATIENCE: Final = 10.0
"""A test hangs after so many times what it took under coverage, and `patience` seconds at least."""

_state: dict[str, Any] = {"ran": 0, "by": None, "message": "", "ended": "all", "running": "", "until": 0.0}


def _write() -> None:
    _state["seconds"] = round(time.monotonic() - STARTED, 2)
    place = Path(PLAN["result"])
    place.with_suffix(".new").write_text(json.dumps(_state), encoding="utf-8")
    place.with_suffix(".new").replace(place)


def _hang(_signal: int, _frame: object) -> None:
    _state["ended"] = "hang"
    _write()
    os._exit(3)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _hang)
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    slow = (hypothesis.HealthCheck.too_slow,)  # says something of the machine, not of the mutant
    chosen = hypothesis.settings.get_profile(str(config.getoption("--profile", "default")))
    hypothesis.settings.register_profile("mutants", chosen, phases=phases, print_blob=False, suppress_health_check=slow)
    hypothesis.settings.load_profile("mutants")


def pytest_sessionstart() -> None:
    _write()  # with nothing run yet: should the process die, this stands


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    import tilewright

    if not Path(str(tilewright.__file__)).is_relative_to(PLAN["tree"]):
        pytest.exit(f"tilewright comes from {tilewright.__file__}, not from {PLAN['tree']}", returncode=4)
    order = {name: n for n, name in enumerate(SECONDS)}
    chosen = sorted((i for i in items if i.nodeid in order), key=lambda i: order[i.nodeid])
    dropped = [i for i in items if i.nodeid not in order]
    items[:] = chosen
    config.hook.pytest_deselected(items=dropped)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Run nothing more when the time is spent; else watch over the test that comes."""
    if time.monotonic() - STARTED > PLAN["seconds"]:
        _state["ended"] = "budget"
        item.session.shouldstop = "the time for this mutant is spent"
        return True
    patience = max(float(PLAN["patience"]), PATIENCE * SECONDS[item.nodeid])
    _state.update(running=item.nodeid, until=time.time() + 3 * patience)
    _write()
    signal.setitimer(signal.ITIMER_PROF, patience)
    return None


def pytest_runtest_logfinish() -> None:
    signal.setitimer(signal.ITIMER_PROF, 0)
    _state["ran"] += 1


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed and _state["by"] is None:
        _state.update(by=report.nodeid, message=_what_failed(report.longreprtext))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed and _state["by"] is None:
        _state.update(by=f"{report.nodeid} (importing it)", message=_what_failed(report.longreprtext))


def pytest_sessionfinish() -> None:
    _write()


def _what_failed(text: str) -> str:
    """What went wrong, out of a long report: the first line that pytest marks as an error, else the first of all."""
    lines = [line for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith("E ")]
    found = (marked or lines or [""])[0].removeprefix("E ")
    return found.strip()[:200]
