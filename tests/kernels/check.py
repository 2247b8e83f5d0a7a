"""`make check-kernels`: every kernel family compiled for every architecture, and its machine code held to its promises.

python -m tests.kernels.check [--all] [--only NAME ...] [--arch sm_90a ...] [--json FILE] [--jobs 2] [--cache DIR]

Needs NVRTC and nvdisasm (`pip install -e '.[dev]'`), no GPU. Ends with 1 when a promise is not kept, 2 when it cannot
run at all.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from tests.kernels.build import ARCHITECTURES, Row, Workshop
from tests.kernels.checks import LOG_CHECKS, SASS_CHECKS
from tests.kernels.families import FAMILIES
from tests.kernels.sass import REMEDY, nvdisasm_path
from tilewright.diagnostics import TilewrightError
from tilewright.runtime.nvrtc import nvrtc_unavailable_reason, nvrtc_version


def main(arguments: Sequence[str] | None = None) -> int:
    """The tool; see the text of the module."""
    options = _parser().parse_args(arguments)
    reason = nvrtc_unavailable_reason() or (None if nvdisasm_path() else f"nvdisasm is not installed: {REMEDY}")
    if reason is not None:
        print(f"check-kernels: {reason}", file=sys.stderr)
        return 2
    names = [name for name in FAMILIES if not options.only or any(each in name for each in options.only)]
    if not names:
        print(f"check-kernels: no family has {' or '.join(options.only)} in its name", file=sys.stderr)
        return 2
    started = time.perf_counter()
    rows: list[Row] = []
    errors: dict[str, str] = {}
    for number, (name, found) in enumerate(_results(names, options), 1):
        wrong = sum(bool(row.findings) for row in found) if isinstance(found, list) else 1
        state = f"{wrong} WRONG" if wrong else "ok"
        print(f"[{number}/{len(names)}] {name}: {state}, {time.perf_counter() - started:.0f} s", flush=True)
        if isinstance(found, list):
            rows += found
        else:
            errors[name] = found
    order = {name: n for n, name in enumerate(names)}
    rows.sort(key=lambda row: order[row.family])  # stable: a family's rows stay in their order
    print_table(rows)
    findings = [finding for row in rows for finding in row.findings]
    for finding in findings:
        print(finding)
    if not options.only:
        errors |= uncovered(rows)
    for name, message in errors.items():
        print(f"{name}: {message}")
    disassembled = sum(any(check in SASS_CHECKS for check in row.checks) for row in rows)
    print(
        f"check-kernels: {len(names)} families, {len(rows)} kernels compiled by NVRTC {nvrtc_version()}, {disassembled}"
        f" disassembled, {sum(len(row.checks) for row in rows)} checks: {len(findings) + len(errors)} wrong"
        f" ({time.perf_counter() - started:.0f} s)"
    )
    if options.json is not None:
        options.json.write_text(json.dumps({"rows": [asdict(row) for row in rows], "errors": errors}, indent=1) + "\n")
    return 1 if findings or errors else 0


def print_table(rows: Sequence[Row]) -> None:
    """A line for each row: kernel, variant, architecture, registers, shared memory, spills, checks."""
    lines = [("family", "kernel", "variant", "arch", "regs", "smem", "spills", "checks")]
    for row in rows:
        of = len(LOG_CHECKS) + len(SASS_CHECKS)
        failed = {finding.check for finding in row.findings}
        state = f"{len(row.checks) - len(failed)}/{len(row.checks)}" + ("" if len(row.checks) == of else " (log)")
        lines.append(
            (row.family, row.kernel, row.variant, row.arch, str(row.registers), str(row.smem), str(row.spills), state)
        )
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    for line in lines:
        left = [text.ljust(width) for text, width in zip(line[:4], widths[:4], strict=True)]
        right = [text.rjust(width) for text, width in zip(line[4:7], widths[4:7], strict=True)]
        print("  ".join([*left, *right, line[7]]))


SCHEDULES = ("tiled", "large", "small", "on_chip", "looping")
"""The schedules of `tilewright.lowering.lin_to_tile.schedules`; the first names no kernel."""
VARIANTS = ("vector32", "general32", "vector64", "general64")
"""What `tilewright.lowering.host_variants` makes."""


def schedule_of(kernel: str) -> str:
    """`main_0_on_chip` is by the schedule on_chip, `main_0` by tiled."""
    return next((name for name in SCHEDULES[1:] if kernel.endswith(f"_{name}")), SCHEDULES[0])


def uncovered(rows: Sequence[Row]) -> dict[str, str]:
    """The schedules that no family has in some variant, with what to do about it."""
    found = {(schedule_of(row.kernel), row.variant) for row in rows}
    return {
        f"{schedule}/{variant}": "expected a family with this, got none: tests/kernels/families.py"
        for schedule in SCHEDULES
        for variant in VARIANTS
        if (schedule, variant) not in found
    }


def check_family(name: str, architectures: Sequence[str], all_sass: bool, cache: Path | None) -> list[Row] | str:
    """The rows of a family, or why it does not compile: what one process does at a time."""
    try:
        return Workshop(cache).check(FAMILIES[name], architectures, all_sass)
    except TilewrightError as error:
        return " ".join(str(error).split())


def _results(names: Sequence[str], options: argparse.Namespace) -> Iterator[tuple[str, list[Row] | str]]:
    """Each family with its outcome, as they become ready."""
    fixed = (tuple(options.arch or ARCHITECTURES), options.all, options.cache)
    if options.jobs == 1:
        yield from ((name, check_family(name, *fixed)) for name in names)
        return
    # A fresh interpreter each: NVRTC in a forked process shares locks with its parent.
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(check_family, name, *fixed): name for name in names}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BaseException:  # Ctrl-C too: do not wait for what has not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("check-kernels", description="Hold the machine code of every kernel to its IR.")
    parser.add_argument(
        "--all",
        action="store_true",
        help="read the machine code of every variant for every architecture, not for one in turn",
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="families with this in their name")
    parser.add_argument("--arch", nargs="+", choices=ARCHITECTURES, help="default: both")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows and findings there")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where results are kept (default: the kernel cache)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
