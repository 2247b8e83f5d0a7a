"""C++ text to a shared object, by the machine's own compiler: what the `cpu` backend runs.

The compiler is what the variable CXX names, else the first of g++, clang++ and c++ on PATH. Options are fixed, so that
a program gives the same bits everywhere: no contraction of a product and a sum, and no assumption on the type behind a
pointer, which the vector accesses of a kernel do not keep to.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.nvrtc import CompiledKernel, CompileError

REMEDY = "install g++ or clang++, or name a compiler in the variable CXX"
COMPILERS = ("g++", "clang++", "c++")
FIXED_OPTIONS = (
    "-x", "c++", "-std=c++17", "-O1", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing", "-fwrapv",
    "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-fPIC", "-shared", "-pthread",
)  # fmt: skip
"""-O1: more takes longer to compile than a small launch takes to run."""

VERSION_SECONDS = 20.0
COMPILE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler: the program, what it calls itself, and the options it gets."""

    path: str
    identity: str
    """First line of `--version`, and the machine."""
    options: tuple[str, ...]


def find_compiler() -> Compiler | None:
    """The machine's compiler; None when there is none that answers."""
    chosen = os.environ.get("CXX", "").split()
    for name in (chosen[0],) if chosen else COMPILERS:
        path = shutil.which(name)
        if path is not None and (found := _ask(path, tuple(chosen[1:]))) is not None:
            return found
    return None


def cxx_unavailable_reason() -> str | None:
    """One line saying why no C++ can be compiled here and what to do about it; None when it can."""
    if find_compiler() is not None:
        return None
    chosen = os.environ.get("CXX", "")
    found = f"CXX names {chosen!r}, which does not run" if chosen.split() else "no g++ or clang++ on PATH"
    return f"no C++ compiler: {found}: {REMEDY}"


def compile_shared(source: str, options: tuple[str, ...] = ()) -> CompiledKernel:
    """A shared object of C++ text, in the place of the cubin. Raises `CompileError` with the first error of the
    compiler, and `TilewrightError` where there is none."""
    compiler = find_compiler()
    if compiler is None:
        raise TilewrightError(cxx_unavailable_reason() or "no C++ compiler")
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        text, made = Path(folder) / "unit.cpp", Path(folder) / "unit.so"
        text.write_text(source, encoding="utf-8")
        command = [compiler.path, *compiler.options, *options, str(text), "-o", str(made), "-lm"]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise TilewrightError(f"{compiler.path} does not run: {' '.join(str(problem).split())[:200]}") from None
        log = answer.stdout + answer.stderr
        if answer.returncode != 0 or not made.exists():
            raise CompileError(_first_error(log, compiler.path, answer.returncode), log, source)
        return CompiledKernel(made.read_bytes(), log)


@cache
def _ask(path: str, more: tuple[str, ...]) -> Compiler | None:
    """What the program at `path` is; None when it does not say its version."""
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = answer.stdout.splitlines()
    if answer.returncode != 0 or not lines:
        return None
    fused = ("-mfma",) if _has_fma() else ()
    return Compiler(path, f"{lines[0].strip()}, {platform.machine()}", (*more, *FIXED_OPTIONS, *fused))


@cache
def _has_fma() -> bool:
    """Whether an x86-64 processor has fused multiply-adds; without them `fmaf` is a slow, exact function."""
    if platform.machine() != "x86_64":
        return False
    try:
        found = re.search(r"^flags\s*:.*\bfma\b", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return False
    return found is not None


def _first_error(log: str, compiler: str, code: int) -> str:
    """One line with the first error of a log: `<name>:<line>:<column>: error: <text>`."""
    head = f"{Path(compiler).name} cannot compile the source"
    if match := re.search(r"^([^\n:]+):(\d+):(?:\d+:)?\s*(?:fatal )?error:\s*(.*)$", log, re.MULTILINE):
        return f"{head}: {match[1]} line {match[2]}: {match[3].strip()}"
    last = next((line for line in reversed(log.splitlines()) if line.strip()), f"exit code {code}")
    return f"{head}: {' '.join(last.split())[:300]}"
