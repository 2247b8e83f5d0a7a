"""`make sanitize`: the examples on the GPU under each tool of NVIDIA's compute-sanitizer, one line of verdict each.

python -m tests.sanitize [--tool memcheck ...] [--log-dir DIR] [-- COMMAND ...]

COMMAND is what runs under the tools, `python -m examples.demo cuda` if none is given. Ends with 1 when a tool reports
something or the command fails under it, 2 when there is no GPU or no compute-sanitizer.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOOLS: dict[str, tuple[str, ...]] = {
    # Calls of the CUDA API that fail are no faults of kernels: pycuda asks, and goes on where the answer is no.
    "memcheck": ("--report-api-errors", "no"),
    "racecheck": (),
    "initcheck": (),
    "synccheck": (),
}
"""Accesses out of bounds or misaligned; races in shared memory; reads of what nobody wrote; barriers that diverge."""

DEMO = (sys.executable, "-m", "examples.demo", "cuda")
SHOWN = 30
"""Lines of a report that are printed; the whole is in the log."""

# "ERROR SUMMARY: 2 errors" of most tools; "RACECHECK SUMMARY: 3 hazards displayed (1 error, 2 warnings)".
_SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)s?", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """What a tool made of a run."""

    tool: str
    good: bool
    text: str


def find_sanitizer() -> str | None:
    """compute-sanitizer on PATH, else of a CUDA toolkit; None when there is none."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [Path(home) / "bin" / "compute-sanitizer" for home in homes if home]
    return shutil.which("compute-sanitizer") or next((str(path) for path in places if path.is_file()), None)


def judge(tool: str, output: str, code: int) -> Verdict:
    """The verdict on a finished run by what the tool printed and the exit code: both must say that all is well."""
    found = _SUMMARY.findall(output)
    if not found:
        return Verdict(tool, False, f"no summary (exit code {code})")
    faults = sum(map(int, found))
    what = "hazard" if tool == "racecheck" else "error"
    counted = f"{faults} {what}{'' if faults == 1 else 's'}"
    if faults == 0 and code != 0:
        return Verdict(tool, False, f"{counted}, but the command ended with {code}")
    return Verdict(tool, faults == 0, counted)


def main(arguments: Sequence[str] | None = None) -> int:
    """The tool; see the text of the module."""
    parser = argparse.ArgumentParser("sanitize", description="Run a command under compute-sanitizer's tools.")
    parser.add_argument("--tool", nargs="+", choices=list(TOOLS), default=list(TOOLS), help="default: all four")
    parser.add_argument("--log-dir", type=Path, default=Path("build/sanitize"), help="default: build/sanitize")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each tool (default 600)")
    parser.add_argument("command", nargs="*", help="default: python -m examples.demo cuda")
    options = parser.parse_args(arguments)
    from tilewright.runtime.cuda_driver import cuda_unavailable_reason

    sanitizer = find_sanitizer()
    reason = cuda_unavailable_reason()
    if reason is None and sanitizer is None:
        reason = "no compute-sanitizer on PATH or in CUDA_HOME/bin: it comes with the CUDA toolkit"
    if reason is not None or sanitizer is None:
        print(f"sanitize: {reason}", file=sys.stderr)
        return 2
    options.log_dir.mkdir(parents=True, exist_ok=True)
    command = options.command or DEMO
    verdicts = [run(sanitizer, tool, command, options.log_dir, options.timeout) for tool in options.tool]
    return 0 if all(verdict.good for verdict in verdicts) else 1


def run(sanitizer: str, tool: str, command: Sequence[str], logs: Path, timeout: float) -> Verdict:
    """Run a command under a tool, print the verdict and, if it is bad, the beginning of what the tool says."""
    started = time.monotonic()
    line = [sanitizer, "--tool", tool, "--error-exitcode", "1", *TOOLS[tool], *command]
    log = logs / f"{tool}.log"
    print(f"{tool}: {' '.join(command)} ...", flush=True)
    try:
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
        output, verdict = done.stdout, judge(tool, done.stdout, done.returncode)
    except subprocess.TimeoutExpired as problem:
        told: Any = problem.stdout or ""  # bytes, even where text was asked for
        output: str = told if isinstance(told, str) else told.decode("utf-8", "replace")
        verdict = Verdict(tool, False, f"not done after {timeout:.0f} s")
    log.write_text(output, encoding="utf-8")
    state = "ok" if verdict.good else "FAIL"
    print(f"{tool}: {state}: {verdict.text} ({time.monotonic() - started:.0f} s, {log})", flush=True)
    if not verdict.good:
        lines = output.splitlines()
        reported = [each for each in lines if each.startswith("=====")]
        for each in reported[:SHOWN] if len(reported) > 2 else lines[-SHOWN:]:
            print(f"  {each}")
    return verdict


if __name__ == "__main__":
    raise SystemExit(main())
