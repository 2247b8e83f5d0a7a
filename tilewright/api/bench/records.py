"""Results on disk: one JSON file a part, written after each measurement, enough to make the report again."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from tilewright.api.bench.measure import Timing
from tilewright.api.bench.shapes import Item, Shape
from tilewright.diagnostics import TilewrightError

FORMAT: Final = "tilewright-bench-gemm/1"
OURS: Final = "tilewright"


@dataclass(frozen=True, slots=True)
class Record:
    """What came of one item."""

    item: Item
    bound: float
    """The largest relative error (Frobenius) that a result may have."""
    timings: dict[str, dict[str, Timing]] = field(default_factory=dict[str, dict[str, Timing]])
    """Mode -> system -> timing."""
    errors: dict[str, float] = field(default_factory=dict[str, float])
    """System -> relative error of its result."""
    notes: dict[str, str] = field(default_factory=dict[str, str])
    """System -> why it has no timing, or what else there is to say (Triton: the configuration)."""
    compile_seconds: float = 0.0
    """What this item's first call of ours spent on compiling; 0 where its variant was there already."""
    new_kernels: list[str] = field(default_factory=list[str])
    """Variants of ours that no call of the process had wanted before: `program: kernel/variant`."""

    @property
    def wrong(self) -> list[str]:
        """Systems whose result is beyond the bound, or not finite."""
        return [name for name, error in self.errors.items() if not error <= self.bound]

    def tflops(self, mode: str, system: str) -> float | None:
        """TFLOP/s of the median; None where the system has no timing."""
        timing = self.timings.get(mode, {}).get(system)
        return None if timing is None else self.item.shape.flops / timing.median / 1e12

    def ratio(self, mode: str, system: str) -> float | None:
        """Our speed over that of `system`; above 1 we are faster."""
        ours, theirs = self.tflops(mode, OURS), self.tflops(mode, system)
        return None if ours is None or theirs is None else ours / theirs

    def as_json(self) -> dict[str, Any]:
        """The record as JSON: seconds with 5 digits, TFLOP/s and spreads beside them for readers."""
        return {
            "set": self.item.set,
            "dtype": self.item.dtype,
            "m": self.item.shape.m,
            "n": self.item.shape.n,
            "k": self.item.shape.k,
            "bound": self.bound,
            "errors": {name: _short(error) for name, error in self.errors.items()},
            "notes": self.notes,
            "compile_seconds": round(self.compile_seconds, 3),
            "new_kernels": self.new_kernels,
            "timings": {
                mode: {
                    system: {
                        "tflops": _short(self.tflops(mode, system) or 0.0),
                        "median_s": _short(t.median),
                        "spread": round(t.spread, 4),
                        "calls": t.calls,
                        "how": t.how,
                        "samples_s": [_short(s) for s in t.samples],
                    }
                    for system, t in systems.items()
                }
                for mode, systems in self.timings.items()
            },
        }


@dataclass(slots=True)
class Results:
    """One part: what it was measured on and with, and its records so far."""

    machine: dict[str, str]
    part: tuple[int, int]
    items: int
    """How many items the part has when it is complete."""
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    """Peer -> why it is not there."""
    settings: dict[str, float] = field(default_factory=dict[str, float])
    kernels: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Program -> what `Kernel.stats()` said of it at the end: variants compiled, pipeline runs."""
    records: dict[str, Record] = field(default_factory=dict[str, Record])
    """Key of the item -> record."""

    @property
    def complete(self) -> bool:
        """Whether every item of the part has its record."""
        return len(self.records) >= self.items

    def save(self, path: Path) -> None:
        """Write the file whole or not at all. Raises TilewrightError where the folder cannot be written."""
        data = {
            "format": FORMAT,
            "machine": self.machine,
            "part": list(self.part),
            "items": self.items,
            "complete": self.complete,
            "skipped": self.skipped,
            "settings": self.settings,
            "kernels": self.kernels,
            "records": [record.as_json() for record in self.records.values()],
        }
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps(data, indent=1, allow_nan=True) + "\n", encoding="utf-8")
            beside.replace(path)
        except OSError as problem:
            raise TilewrightError(f"cannot write '{path}': {problem.strerror or problem}") from None


def load(path: Path) -> Results:
    """The results of a file. Raises TilewrightError where it is not one of ours, or damaged."""
    data = _read(path)
    if data is None:
        raise TilewrightError(f"'{path}': expected results of tilewright bench gemm ({FORMAT})")
    try:
        records = [_record(each) for each in data["records"]]
        number, count = data["part"]
        return Results(
            machine={str(k): str(v) for k, v in data["machine"].items()},
            part=(int(number), int(count)),
            items=int(data["items"]),
            skipped=data["skipped"],
            settings=data["settings"],
            kernels=data["kernels"],
            records={record.item.key: record for record in records},
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise TilewrightError(f"'{path}': damaged results: {type(problem).__name__}: {problem}") from None


def load_folder(folder: Path) -> list[Results]:
    """The results of every file of ours in a folder, by name; JSON of others is passed over.

    Raises TilewrightError at the first file that is no JSON: it may be one of ours that was cut short.
    """
    try:
        paths = sorted(folder.glob("*.json")) if folder.is_dir() else None
    except OSError as problem:
        raise TilewrightError(f"cannot read '{folder}': {problem.strerror or problem}") from None
    if paths is None:
        raise TilewrightError(f"expected a folder of results, got '{folder}'")
    return [load(path) for path in paths if _read(path) is not None]


def merged(results: Sequence[Results]) -> list[Record]:
    """The records of several parts. Of two for one item the later file's counts."""
    return list({record.item.key: record for each in results for record in each.records.values()}.values())


def _read(path: Path) -> dict[str, Any] | None:
    """The file as JSON if it is one of ours. Raises TilewrightError where it is no JSON."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise TilewrightError(f"cannot read '{path}': {problem.strerror or problem}") from None
    except ValueError as problem:
        raise TilewrightError(f"'{path}': damaged results: {problem}") from None
    if not isinstance(data, dict):
        return None
    found = cast("dict[str, Any]", data)
    return found if found.get("format") == FORMAT else None


def _record(data: dict[str, Any]) -> Record:
    item = Item(str(data["set"]), str(data["dtype"]), Shape(*(_size(data[size]) for size in "mnk")))
    timings = {
        str(mode): {
            str(system): Timing(tuple(float(s) for s in t["samples_s"]), int(t["calls"]), str(t["how"]))
            for system, t in systems.items()
        }
        for mode, systems in data["timings"].items()
    }
    errors = {str(name): float(error) for name, error in data["errors"].items()}
    return Record(
        item, float(data["bound"]), timings, errors, dict(data["notes"]), float(data["compile_seconds"]),
        list(data["new_kernels"]),
    )  # fmt: skip


def _size(value: Any) -> int:
    size = int(value)
    if not 0 <= size < 1 << 63:
        raise ValueError("expected a size below 2^63 that is not negative")
    return size


def _short(value: float) -> float:
    return float(f"{value:.5g}")
