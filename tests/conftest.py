"""What every test may rely on: markers that skip with a reason, and Hypothesis profiles.

pytest --slow                    also what takes more than ten seconds
pytest --require=nvrtc           a skip for want of NVRTC is a failure: for machines that must have it (cxx, gpu alike)
pytest --profile=deep            more Hypothesis examples, and more programs for each pass (quick, medium, deep)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import hypothesis
import pytest

from tilewright.api.testing.profiles import set_settings

# The project's own plugin; where Tilewright is installed, pytest has it already, by the same name.
pytest_plugins = ["tilewright.api.testing.pytest_plugin"]

hypothesis.settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
hypothesis.settings.register_profile("medium", max_examples=250, deadline=None)
hypothesis.settings.register_profile("deep", max_examples=5000, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow")
    parser.addoption(
        "--require",
        action="append",
        default=[],
        choices=["cxx", "gpu", "nvrtc"],
        help="fail instead of skipping when this is missing (also TILEWRIGHT_REQUIRE=nvrtc,gpu)",
    )
    parser.addoption("--profile", default="quick", help="Hypothesis profile: quick, medium or deep")


def pytest_configure(config: pytest.Config) -> None:
    profile = str(config.getoption("--profile"))
    hypothesis.settings.load_profile(profile)
    if config.getoption("--tilewright-profile") is None:
        set_settings(profile=profile)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Programs that failed once come first."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/corpus/"))


@cache
def missing_gpu() -> str | None:
    """Return why no test can use a GPU, or None if it can."""
    if find_spec("pycuda") is None:
        return "no pycuda"
    import pycuda.driver as cuda

    try:
        cuda.init()
        return None if cuda.Device.count() else "no GPU"
    except cuda.Error as error:
        return f"no GPU ({error})"


@cache
def missing_nvrtc() -> str | None:
    """Return why no test can compile CUDA, or None if it can."""
    if find_spec("cuda") is None or find_spec("cuda.bindings") is None:
        return "no NVRTC: cuda-bindings is not installed"
    try:
        result = import_module("cuda.bindings.nvrtc").nvrtcVersion()
    except Exception as error:
        # The bindings find the library when they are first called, and raise RuntimeError, ImportError or their own.
        return f"no NVRTC: {error}"
    return None if int(result[0]) == 0 else f"no NVRTC: {result[0]}"


def missing_cxx() -> str | None:
    """Return why no test can compile C++, or None if it can."""
    # At top level it would slow every run of pytest.
    from tilewright.runtime.cxx import cxx_unavailable_reason

    return cxx_unavailable_reason()


_NEEDS: dict[str, Callable[[], str | None]] = {"cxx": missing_cxx, "gpu": missing_gpu, "nvrtc": missing_nvrtc}


def required(config: pytest.Config) -> set[str]:
    """Return the markers whose absence is a failure."""
    from_environment = os.environ.get("TILEWRIGHT_REQUIRE", "")
    chosen: list[str] = config.getoption("--require") or []
    return {*chosen, *filter(None, from_environment.split(","))}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what cannot run here, or fail it where it must run."""
    if item.get_closest_marker("slow") and not item.config.getoption("--slow"):
        pytest.skip("slow: run with --slow")
    for marker, missing in _NEEDS.items():
        if item.get_closest_marker(marker) is None:
            continue
        reason = missing()
        if reason is not None:
            if marker in required(item.config):
                pytest.fail(f"{marker} is required here: {reason}", pytrace=False)
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """Turn a test's own skip into a failure too, if it carries a marker that is required."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and not excused(item):
        for marker in required(item.config):
            if item.get_closest_marker(marker) is not None:
                report.outcome = "failed"
                report.longrepr = f"{marker} is required here, but the test was skipped: {report.longrepr}"
    return report


def excused(item: pytest.Item) -> bool:
    """Return whether `item` may be skipped whatever is required: it is slow, or lacks something else than that."""
    if item.get_closest_marker("slow") is not None and not item.config.getoption("--slow"):
        return True
    optional = _NEEDS.keys() - required(item.config)
    return any(item.get_closest_marker(marker) is not None and _NEEDS[marker]() is not None for marker in optional)
