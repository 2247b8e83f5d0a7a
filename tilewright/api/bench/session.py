"""One run of `tilewright bench gemm`: the items of a part, one after the other, each kept on disk when it is done."""

from __future__ import annotations

import datetime
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tilewright.api.bench.lab import Lab, bound_of
from tilewright.api.bench.measure import Settings, measure
from tilewright.api.bench.records import OURS, Record, Results, load
from tilewright.api.bench.shapes import MODES, Item
from tilewright.api.bench.summary import speed
from tilewright.diagnostics import TilewrightError

LONGEST_NAME: Final = 80


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured, and where it goes."""

    items: tuple[Item, ...]
    part: tuple[int, int]
    path: Path
    command: str
    resume: bool = False
    time_limit: float | None = None
    """Seconds after which no other item is begun."""


def file_name(sets: Sequence[str], dtypes: Sequence[str], part: tuple[int, int], backend: str = "cuda") -> str:
    """Name of a part's file, in letters, digits, `-`, `_` and `.`; many shapes are named by a hash, all backends but
    `cuda` by name."""
    what = "_".join(dict.fromkeys(sets)).replace("^3", "cubed")
    if len(what) > LONGEST_NAME:
        what = hashlib.sha256(what.encode()).hexdigest()[:12]
    where = "" if backend in ("auto", "cuda") else f"-{backend}"
    return f"gemm-{what}-{'_'.join(dict.fromkeys(dtypes))}{where}-{part[0]}of{part[1]}.json"


def run(
    plan: Plan,
    make_lab: Callable[[], Lab],
    settings: Settings,
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Results:
    """Measure what the part lacks; `say` gets a line for each item. Raises TilewrightError for a GPU that fails; what
    was measured before is on disk then."""
    started = clock()
    lab = make_lab()
    results = Results(lab.machine() | {"date": _now(), "command": plan.command}, plan.part, len(plan.items))
    results.skipped, results.settings = dict(lab.skipped), {k: float(v) for k, v in asdict(settings).items()}
    for peer, reason in lab.skipped.items():
        say(f"{peer}: skipped: {reason}")
    if plan.resume and plan.path.exists():
        earlier = load(plan.path)
        wanted = {item.key for item in plan.items}
        results.records = {key: record for key, record in earlier.records.items() if key in wanted}
        _check_same_machine(earlier, results, plan.path)
        say(f"resume: {len(results.records)} of {len(plan.items)} are there")
    known = _compiled(lab)
    for number, item in enumerate(plan.items, 1):
        if item.key in results.records:
            continue
        if plan.time_limit is not None and clock() - started > plan.time_limit:
            say(f"time limit: {len(results.records)} of {len(plan.items)} are there; --resume goes on")
            break
        record = measure_item(lab, item, settings)
        now = _compiled(lab)
        record.new_kernels.extend(sorted(now - known))
        known = now
        results.records[item.key] = record
        results.kernels = lab.kernels()
        results.save(plan.path)
        say(f"[{number}/{len(plan.items)} {clock() - started:.0f} s] {_line(record)}")
    results.save(plan.path)
    return results


def measure_item(lab: Lab, item: Item, settings: Settings) -> Record:
    """One item, from operands to timings."""
    try:
        prepared = lab.prepare(item)
        found = measure(lab.timer, prepared.calls, MODES[item.set], settings, item.key) if prepared.calls else {}
    except RuntimeError as problem:  # torch's word for too little memory, and for a GPU that failed
        raise TilewrightError(f"bench gemm: {item.key}: {' '.join(str(problem).split())[:300]}") from problem
    return Record(item, bound_of(item), {**found}, prepared.errors, prepared.notes, prepared.compile_seconds)


def _compiled(lab: Lab) -> set[str]:
    return {
        f"{program}: {kernel['name']}/{kernel['variant']}"
        for program, stats in lab.kernels().items()
        for kernel in stats["compiled"]
    }


def _check_same_machine(earlier: Results, now: Results, path: Path) -> None:
    """Figures of different machines or versions do not belong into one file."""
    for name, value in now.machine.items():
        if name not in ("date", "command") and earlier.machine.get(name) != value:
            there = earlier.machine.get(name)
            raise TilewrightError(f"--resume: '{path}' has {name} {there!r}, this machine has {value!r}")


def _line(record: Record) -> str:
    """An item's first mode in a line."""
    mode = next(iter(record.timings), "")
    systems = record.timings.get(mode, {})
    parts = [f"{record.item.set} {record.item.dtype} {record.item.shape} {mode}"]
    parts += [f"{name} {speed(record.tflops(mode, name))}" for name in systems]
    parts += [f"x{ratio:.3f}" for name in systems if name != OURS and (ratio := record.ratio(mode, name)) is not None]
    parts += [f"WRONG {name} {record.errors[name]:.1e}" for name in record.wrong]
    parts += [f"({name}: {note})" for name, note in record.notes.items() if name not in systems]
    if record.compile_seconds > 0.05:
        parts.append(f"compiled {record.compile_seconds:.1f} s")
    return "  ".join(parts)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
