"""CUDA C++ text to a cubin, in this process, by NVRTC; no GPU and no nvcc needed.

NVRTC compiles straight to SASS for a real architecture (`sm_90a`), so there is no PTX step and nothing is left for
the driver to compile at load time. The library comes from the wheel nvidia-cuda-nvrtc or from a CUDA toolkit,
wherever cuda-bindings finds it.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.ptxas_log import Resources, parse_ptxas_log

INSTALL_REMEDY = "pip install 'tilewright[nvrtc]' (or --source-only)"

FIXED_OPTIONS = ("--std=c++17", "--fmad=false", "-default-device", "--ptxas-options=-v")
"""Options of every compilation. No contraction to FMA: the IR says where a product and a sum round once."""

_HEADERS = ("cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h")


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A cubin with what the assembler said about it."""

    cubin: bytes
    log: str
    resources: Mapping[str, Resources] = field(default_factory=dict[str, Resources])
    """Kernel name to its resources."""


class CompileError(TilewrightError):
    """NVRTC or ptxas refused the source. `log` is all they said, `source` the text they were given."""

    def __init__(self, message: str, log: str, source: str) -> None:
        super().__init__(message)
        self.log = log
        self.source = source


def compile_cubin(source: str, arch: str, options: tuple[str, ...] = ()) -> CompiledKernel:
    """Compile CUDA C++ for `arch` (`sm_80`, `sm_90a`, ...) to a cubin. `options` follow the fixed ones and replace
    those of the same name. Raises `CompileError` with the first error of the log and the line of source it is at;
    `TilewrightError` when NVRTC or its headers are missing. May be called from several threads at once.

    Launch bounds that name threads alone leave the number of blocks at a time to ptxas, which now and then spills a few
    bytes to make room for one more block. What spills is compiled once more for one block at a time, with all registers
    that it can have, and that is kept if it spills less."""
    if not re.fullmatch(r"sm_[0-9]{2,3}[af]?", arch):
        raise TilewrightError(f"architecture: expected sm_<number> such as sm_80 or sm_90a, got {arch!r}")
    reason = nvrtc_unavailable_reason()
    if reason is not None:
        raise TilewrightError(reason)
    compiled = _compile(source, arch, options)
    if _spilled(compiled):
        roomy = _THREADS_ALONE.sub(r"__launch_bounds__(\1, 1)", source)
        if roomy != source:
            compiled = min(compiled, _compile(roomy, arch, options), key=_spilled)
    return compiled


_THREADS_ALONE = re.compile(r"\b__launch_bounds__\((\d+)\)")


def _spilled(compiled: CompiledKernel) -> int:
    """Bytes a thread that the kernels of a cubin store and load for want of registers."""
    return sum(each.spill_store_bytes + each.spill_load_bytes for each in compiled.resources.values())


def _compile(source: str, arch: str, options: tuple[str, ...]) -> CompiledKernel:
    """One run of NVRTC."""
    api = _load()
    arguments = [option.encode() for option in command_line(arch, options)]
    program: Any = _checked(api.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []), "create a program")
    try:
        (status,) = api.nvrtcCompileProgram(program, len(arguments), arguments)
        log = bytearray(_checked(api.nvrtcGetProgramLogSize(program), "read the log"))
        _checked(api.nvrtcGetProgramLog(program, log), "read the log")
        text = _text(bytes(log))
        if int(status) != 0:
            raise CompileError(_first_error(text, source, arch, str(status)), text, source)
        cubin = bytearray(_checked(api.nvrtcGetCUBINSize(program), "read the cubin"))
        _checked(api.nvrtcGetCUBIN(program, cubin), "read the cubin")
    finally:
        api.nvrtcDestroyProgram(program)
    return CompiledKernel(bytes(cubin), text, parse_ptxas_log(text))


def command_line(arch: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """All options NVRTC is given: architecture, fixed ones that `options` do not replace, `options`, include path."""
    replaced = {_option_name(option) for option in options}
    fixed = tuple(option for option in FIXED_OPTIONS if _option_name(option) not in replaced)
    headers = header_directory()
    include = () if headers is None else (f"--include-path={headers}",)
    return (f"--gpu-architecture={arch}", *fixed, *options, *include)


def nvrtc_version() -> str | None:
    """`major.minor` of the library that is loaded; None when there is none."""
    return None if nvrtc_unavailable_reason() is not None else _probe()[0]


def nvrtc_unavailable_reason() -> str | None:
    """One line saying why NVRTC cannot be used here and what to do about it; None when it can."""
    return _probe()[1]


@cache
def header_directory() -> str | None:
    """Folder with cuda_fp16.h and its siblings: from the wheel nvidia-cuda-runtime, else a CUDA toolkit; or None."""
    candidates: list[Path] = []
    namespace = find_spec("nvidia")
    for root in (namespace.submodule_search_locations or ()) if namespace is not None else ():
        candidates += sorted(Path(root).glob("cu[0-9]*/include"), reverse=True)
        candidates.append(Path(root) / "cuda_runtime" / "include")
    candidates += [Path(home) / "include" for key in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(key))]
    candidates.append(Path("/usr/local/cuda/include"))
    return next((str(path) for path in candidates if all((path / name).is_file() for name in _HEADERS)), None)


@cache
def _load() -> ModuleType:
    """The bindings, with the builtins library in the process: NVRTC opens it by bare name when it compiles, which
    fails where its folder is not on the loader's path."""
    # By name, since the bindings come without complete type information.
    nvrtc = import_module("cuda.bindings.nvrtc")
    nvrtc.nvrtcVersion()
    folder: str | None = import_module("cuda.pathfinder").load_nvidia_dynamic_lib("nvrtc").abs_path
    for path in sorted(Path(folder).parent.glob("libnvrtc-builtins.so*")) if folder else ():
        try:
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            break
        except OSError:
            continue
    return nvrtc


@cache
def _probe() -> tuple[str | None, str | None]:
    """(version, reason why not); exactly one is None. Kept for the life of the process."""
    try:
        api = _load()
        status, major, minor = api.nvrtcVersion()
    except ImportError:
        return None, f"NVRTC: cuda-bindings is not installed: {INSTALL_REMEDY}"
    except Exception as problem:  # the loader raises its own types, RuntimeError, or OSError, by version
        return None, f"NVRTC: the library does not load ({_one_line(problem)}): {INSTALL_REMEDY}"
    if int(status) != 0:
        return None, f"NVRTC: the library does not answer ({status}): {INSTALL_REMEDY}"
    return f"{major}.{minor}", None


def _checked(answer: tuple[Any, ...], action: str) -> Any:
    """The value of a binding's (status, value) answer; a status other than success is an error."""
    if int(answer[0]) != 0:
        raise TilewrightError(f"NVRTC could not {action}: {answer[0]}")
    return answer[1] if len(answer) > 1 else None


def _option_name(option: str) -> str:
    return option.lstrip("-").split("=", 1)[0]


def _text(log: bytes) -> str:
    return log.rstrip(b"\0 \n").decode("utf-8", "replace")


def _one_line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:200] or type(problem).__name__


_SOURCE_ERROR = re.compile(r"^[^\s(]+\((\d+)\)\s*:\s*(?:catastrophic )?error\s*(?:#[\w-]+)?\s*:\s*(.*)$", re.MULTILINE)
_OTHER_ERROR = re.compile(r"^.*\b(?:error|fatal)\b.*$", re.MULTILINE | re.IGNORECASE)


def _first_error(log: str, source: str, arch: str, status: str) -> str:
    """One line with the first error of a log; `kernel.cu(3): error: ...` is shown with line 3 of the source."""
    head = f"NVRTC cannot compile the source for {arch}"
    if match := _SOURCE_ERROR.search(log):
        lines = source.splitlines()
        number = int(match[1])
        shown = f": {lines[number - 1].strip()}" if 0 < number <= len(lines) else ""
        return f"{head}: line {number}: {match[2].strip()}{shown}"
    if match := _OTHER_ERROR.search(log):
        if "libnvrtc-builtins" in log:
            return f"{head}: {match[0].strip()}: {INSTALL_REMEDY}"
        return f"{head}: {' '.join(match[0].split())}"
    return f"{head}: {status}"
