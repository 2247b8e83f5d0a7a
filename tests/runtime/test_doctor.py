"""The doctor: a line for everything, a remedy for what is missing or does not match, and no exception ever."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from tilewright.runtime import doctor, libcuda, nvrtc
from tilewright.runtime.doctor import Check, examine, format_report


def by_name() -> dict[str, Check]:
    return {check.name: check for check in examine()}


def pretend(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str | None]) -> None:
    """Make the named distributions look installed in these versions, or not at all."""
    real = metadata.version

    def version(name: str) -> str:
        if name not in versions:
            return real(name)
        if (found := versions[name]) is None:
            raise metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(metadata, "version", version)


def test_every_line_is_there_and_every_fault_has_a_remedy() -> None:
    checks = examine()
    assert [check.name for check in checks] == [
        "python", "tilewright", "xdsl", "numpy", "nvrtc", "cuda headers", "cuda driver", "gpu", "pycuda", "nvcc",
        "c++ compiler", "nvdisasm",
    ]  # fmt: skip
    assert all(bool(check.remedy) == (check.status != "ok") for check in checks)
    assert all(check.found and "\n" not in check.found for check in checks)
    found = {check.name: check for check in checks}
    assert (found["python"].status, found["numpy"].status) == ("ok", "ok")
    assert found["python"].found.startswith(sys.version.split()[0])
    assert found["xdsl"].found == metadata.version("xdsl")


def test_versions_that_do_not_match(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"xdsl": "0.80.1", "numpy": "2.4", "ml_dtypes": None, "cuda-bindings": "12.8.0"})
    monkeypatch.setattr(nvrtc, "nvrtc_unavailable_reason", lambda: None)
    monkeypatch.setattr(nvrtc, "nvrtc_version", lambda: "13.0")
    found = by_name()
    assert (found["xdsl"].status, found["xdsl"].found) == ("warning", "0.80.1, expected 0.75.*")
    assert (found["numpy"].status, found["numpy"].remedy) == ("warning", "pip install ml_dtypes")
    assert (found["nvrtc"].status, found["nvrtc"].found) == ("warning", "13.0, but cuda-bindings is 12.8.0")
    assert "nvidia-cuda-nvrtc==12.*" in found["nvrtc"].remedy


def test_a_driver_older_than_the_toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"cuda-bindings": "13.0.3"})
    monkeypatch.setattr(nvrtc, "nvrtc_unavailable_reason", lambda: None)
    monkeypatch.setattr(nvrtc, "nvrtc_version", lambda: "13.0")
    monkeypatch.setattr(libcuda, "driver_version", lambda: (12, 4))
    found = by_name()
    assert (found["nvrtc"].status, found["nvrtc"].found) == ("warning", "13.0, but the driver supports CUDA 12.4")
    assert found["nvrtc"].remedy.startswith("update the NVIDIA driver")
    assert found["cuda driver"] == Check("cuda driver", "ok", "supports CUDA 12.4")


def test_nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, dict.fromkeys(("xdsl", "numpy", "pycuda")))
    monkeypatch.setattr(doctor.shutil, "which", lambda name, path=None: None)
    monkeypatch.setattr(doctor, "_wheel_tool", lambda name: None)
    monkeypatch.setattr(libcuda, "driver_version", lambda: None)
    monkeypatch.setattr(nvrtc, "nvrtc_unavailable_reason", lambda: "NVRTC: cuda-bindings is not installed")
    monkeypatch.setattr(nvrtc, "header_directory", lambda: None)
    found = by_name()
    assert {name for name, check in found.items() if check.status == "missing"} == set(found) - {"python", "tilewright"}


def test_a_check_that_breaks_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("the wheel\nis damaged")

    monkeypatch.setattr(nvrtc, "header_directory", broken)
    check = by_name()["cuda headers"]
    assert (check.status, check.found) == ("warning", "RuntimeError: the wheel is damaged")


def test_the_report_is_aligned() -> None:
    checks = [Check("a", "ok", "1.0"), Check("longer", "missing", "not there", "install it")]
    assert format_report(checks) == (
        "ok       a       1.0\n"
        "missing  longer  not there\n"
        "                 -> install it\n"
    )  # fmt: skip
    assert format_report([]) == "\n"


def test_importing_the_doctor_is_light() -> None:
    program = (
        "import sys, tilewright.runtime.doctor\n"
        "print([name for name in ('numpy', 'xdsl', 'cuda', 'pycuda', 'ml_dtypes') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"
