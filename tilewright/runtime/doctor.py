"""What this machine has of all that Tilewright can use, and what to do about the rest.

Each check looks for one thing and runs on its own: what is broken in an unexpected way becomes that check's line and
does not stop the others. Nothing heavy is imported before a check asks for it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Literal

Status = Literal["ok", "warning", "missing"]

COMMAND_SECONDS = 20.0
"""How long a tool may take to say its version."""

OLDEST_PYTHON = (3, 11)
XDSL_SERIES = "0.75"
CUDA_REMEDY = "pip install 'tilewright[cuda]'"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report: `missing` is something that is not there, `warning` something that will not do."""

    name: str
    status: Status
    found: str
    remedy: str = ""
    """What to do about it; empty when all is well."""


def examine() -> list[Check]:
    """Look for everything, in the order of the report. Never raises."""
    return [_guarded(name, check) for name, check in _CHECKS.items()]


def format_report(checks: list[Check]) -> str:
    """The checks as aligned lines, each remedy under its line."""
    width = max((len(check.name) for check in checks), default=0)
    lines: list[str] = []
    for check in checks:
        lines.append(f"{check.status:<7}  {check.name:<{width}}  {check.found}")
        if check.remedy:
            lines.append(f"{'':<7}  {'':<{width}}  -> {check.remedy}")
    return "\n".join(lines) + "\n"


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except Exception as problem:  # a check has to survive whatever a broken installation raises
        text = " ".join(str(problem).split())
        return Check(name, "warning", f"{type(problem).__name__}: {text}"[:200], "reinstall it, or report this line")


def _python() -> Check:
    found = f"{sys.version.split()[0]} at {sys.executable}"
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Check("python", "warning", found, f"use Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or later")
    return Check("python", "ok", found)


def _tilewright() -> Check:
    module = import_module("tilewright")
    return Check("tilewright", "ok", f"{module.__version__} at {Path(str(module.__file__)).parent}")


def _xdsl() -> Check:
    version = _installed("xdsl")
    remedy = f"pip install 'xdsl=={XDSL_SERIES}.*'"
    if version is None:
        return Check("xdsl", "missing", "not installed", remedy)
    if not f"{version}.".startswith(f"{XDSL_SERIES}."):
        return Check("xdsl", "warning", f"{version}, expected {XDSL_SERIES}.*", remedy)
    return Check("xdsl", "ok", version)


def _numpy() -> Check:
    version = _installed("numpy")
    if version is None:
        return Check("numpy", "missing", "not installed", "pip install numpy")
    if _installed("ml_dtypes") is None:
        return Check("numpy", "warning", f"{version}, without ml_dtypes (bf16)", "pip install ml_dtypes")
    return Check("numpy", "ok", version)


def _nvrtc() -> Check:
    nvrtc = import_module("tilewright.runtime.nvrtc")
    reason: str | None = nvrtc.nvrtc_unavailable_reason()
    if reason is not None:
        return Check("nvrtc", "missing", reason, CUDA_REMEDY)
    version: str = nvrtc.nvrtc_version()
    bindings = _installed("cuda-bindings")
    if bindings is not None and bindings.split(".")[0] != version.split(".")[0]:
        major = bindings.split(".")[0]
        return Check(
            "nvrtc",
            "warning",
            f"{version}, but cuda-bindings is {bindings}",
            f"pip install 'nvidia-cuda-nvrtc=={major}.*', or the cuda-bindings of {version}",
        )
    driver = _driver_version()
    if driver is not None and driver[0] < int(version.split(".")[0]):
        return Check(
            "nvrtc",
            "warning",
            f"{version}, but the driver supports CUDA {driver[0]}.{driver[1]}",
            "update the NVIDIA driver, or "
            f"pip install 'nvidia-cuda-nvrtc=={driver[0]}.*' 'cuda-bindings=={driver[0]}.*'",
        )
    return Check("nvrtc", "ok", f"{version}, cuda-bindings {bindings or 'of unknown version'}")


def _headers() -> Check:
    folder: str | None = import_module("tilewright.runtime.nvrtc").header_directory()
    if folder is None:
        return Check("cuda headers", "missing", "no cuda_fp16.h, cuda_bf16.h, cuda_fp8.h", CUDA_REMEDY)
    return Check("cuda headers", "ok", folder)


def _driver() -> Check:
    version = _driver_version()
    if version is None:
        return Check(
            "cuda driver", "missing", "no libcuda.so.1", "install an NVIDIA driver; the other backends need none"
        )
    return Check("cuda driver", "ok", f"supports CUDA {version[0]}.{version[1]}")


def _gpu() -> Check:
    if _driver_version() is None:
        return Check("gpu", "missing", "no driver to ask", "install an NVIDIA driver; the other backends need none")
    driver = import_module("tilewright.runtime.cuda_driver")
    reason: str | None = driver.cuda_unavailable_reason()
    if reason is not None:
        return Check("gpu", "missing", reason, "see the lines on the driver and pycuda")
    info = driver.device().info
    memory = info.memory_bytes / 2**30
    return Check("gpu", "ok", f"{info.name}, {info.arch}, {info.multiprocessors} multiprocessors, {memory:.0f} GiB")


def _pycuda() -> Check:
    version = _installed("pycuda")
    if version is None:
        return Check("pycuda", "missing", "not installed", f"{CUDA_REMEDY} (it is built with the CUDA headers)")
    try:
        driver = import_module("pycuda.driver")
    except ImportError as problem:
        found = f"{version}, which does not load: {' '.join(str(problem).split())}"
        return Check("pycuda", "warning", found, "pip install --force-reinstall --no-binary pycuda pycuda")
    built: tuple[int, ...] = tuple(driver.get_version())
    newest = _driver_version()
    if newest is not None and built[:1] > newest[:1]:
        found = f"{version}, built for CUDA {built[0]}, but the driver supports {newest[0]}.{newest[1]}"
        return Check("pycuda", "warning", found, "update the NVIDIA driver, or build pycuda with an older toolkit")
    return Check("pycuda", "ok", f"{version}, built for CUDA {'.'.join(map(str, built[:2]))}")


def _nvcc() -> Check:
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    path = shutil.which("nvcc") or shutil.which("nvcc", path=f"{home}/bin")
    if path is None:
        return Check("nvcc", "missing", "not on PATH", "not needed: NVRTC compiles; nvcc is a second opinion in tests")
    release = re.search(r"release ([\d.]+)", _output(path, "--version"))
    if release is None:
        return Check("nvcc", "warning", f"{path} does not say its release", "reinstall the CUDA toolkit, or ignore it")
    return Check("nvcc", "ok", f"{release[1]} at {path}")


def _compiler() -> Check:
    cxx = import_module("tilewright.runtime.cxx")
    compiler = cxx.find_compiler()
    if compiler is None:
        reason: str = cxx.cxx_unavailable_reason()
        return Check("c++ compiler", "missing", reason.split(": ")[1], f"{cxx.REMEDY}, for the cpu backend")
    return Check("c++ compiler", "ok", f"{compiler.identity.rpartition(', ')[0]} at {compiler.path}")


def _nvdisasm() -> Check:
    path = shutil.which("nvdisasm") or _wheel_tool("nvdisasm")
    if path is None:
        remedy = "pip install 'nvidia-cuda-nvdisasm>=13.2.51' to read SASS"
        return Check("nvdisasm", "missing", "neither on PATH nor in a wheel", remedy)
    release = re.search(r"release ([\d.]+)", _output(path, "--version"))
    if release is None:
        return Check("nvdisasm", "warning", f"{path} does not say its release", "pip install -U nvidia-cuda-nvdisasm")
    return Check("nvdisasm", "ok", f"{release[1]} at {path}")


_CHECKS: dict[str, Callable[[], Check]] = {
    "python": _python,
    "tilewright": _tilewright,
    "xdsl": _xdsl,
    "numpy": _numpy,
    "nvrtc": _nvrtc,
    "cuda headers": _headers,
    "cuda driver": _driver,
    "gpu": _gpu,
    "pycuda": _pycuda,
    "nvcc": _nvcc,
    "c++ compiler": _compiler,
    "nvdisasm": _nvdisasm,
}


def _installed(distribution: str) -> str | None:
    """Version of an installed distribution, without importing it."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _driver_version() -> tuple[int, int] | None:
    return import_module("tilewright.runtime.libcuda").driver_version()


def _output(*command: str) -> str:
    """What a tool prints, on either stream; nothing when it fails or takes too long."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout + answer.stderr


def _wheel_tool(name: str) -> str | None:
    """A tool that an NVIDIA wheel put below its package folder, off PATH."""
    spec = import_module("importlib.util").find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        for path in sorted(Path(root).glob(f"*/bin/{name}"), reverse=True):
            if os.access(path, os.X_OK):
                return str(path)
    return None
