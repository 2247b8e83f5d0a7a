"""Records as lines of text: one a shape, then geometric means and the worst, by set, dtype and mode."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilewright.api.bench.records import OURS, Record


@dataclass(frozen=True, slots=True)
class Group:
    """The records of one set, dtype and mode."""

    set: str
    dtype: str
    mode: str
    records: tuple[Record, ...]

    @property
    def title(self) -> str:
        """`table bf16 sustained`."""
        return f"{self.set} {self.dtype} {self.mode}"

    @property
    def systems(self) -> list[str]:
        """Every system that has a timing, ours first."""
        found = dict.fromkeys(name for r in self.records for name in r.timings.get(self.mode, {}))
        return sorted(found, key=lambda name: name != OURS)

    @property
    def peers(self) -> list[str]:
        """The systems that are not ours."""
        return [name for name in self.systems if name != OURS]

    def ratios(self, peer: str) -> list[tuple[float, Record]]:
        """(our speed over the peer's, record) where both have a timing, the worst first."""
        found = [(ratio, r) for r in self.records if (ratio := r.ratio(self.mode, peer)) is not None]
        return sorted(found, key=lambda pair: pair[0])


def groups(records: Iterable[Record]) -> list[Group]:
    """The groups in the order in which the records have them."""
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        for mode in record.timings or {"failed": {}}:
            found.setdefault((record.item.set, record.item.dtype, mode), []).append(record)
    return [Group(*key, tuple(members)) for key, members in found.items()]


def counted(shapes: int) -> str:
    """So many shapes in words."""
    return f"{shapes} shape{'' if shapes == 1 else 's'}"


def geometric_mean(values: Sequence[float]) -> float:
    """Of numbers above 0, at least one."""
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


def speed(value: float | None) -> str:
    """TFLOP/s with at least three digits; `-` for none."""
    if value is None:
        return "-"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def row(group: Group, record: Record) -> list[str]:
    """Cells of a record: shape, TFLOP/s of each system, ratio to each peer, spread of ours, remark."""
    ours = record.timings.get(group.mode, {}).get(OURS)
    ratios = [record.ratio(group.mode, peer) for peer in group.peers]
    return [
        str(record.item.shape),
        *(speed(record.tflops(group.mode, name)) for name in group.systems),
        *("-" if ratio is None else f"{ratio:.3f}" for ratio in ratios),
        "-" if ours is None else f"{100 * ours.spread:.1f}%",
        remark(record, group.mode),
    ]


def header(group: Group) -> list[str]:
    """What the cells of `row` are."""
    return ["MxNxK", *group.systems, *(f"vs {peer}" for peer in group.peers), "spread", ""]


def remark(record: Record, mode: str) -> str:
    """Wrong results, what failed, and turns that were no graph."""
    said = [f"WRONG {name}: {record.errors[name]:.1e} > {record.bound:.1e}" for name in record.wrong]
    timings = record.timings.get(mode, {})
    said += [f"{name}: {note}" for name, note in record.notes.items() if name not in timings]
    said += [f"{name}: {t.how}" for name, t in timings.items() if t.how not in ("graph", "loop")]
    return "; ".join(said)


def totals(group: Group) -> list[str]:
    """For each peer a line with the geometric mean, how many are at least as fast, and the worst shape."""
    lines: list[str] = []
    for peer in group.peers:
        ratios = group.ratios(peer)
        if not ratios:
            continue
        worst, record = ratios[0]
        values = [ratio for ratio, _ in ratios]
        lines.append(
            f"vs {peer}: geometric mean {geometric_mean(values):.3f} of {counted(len(values))}, "
            f"{sum(v >= 1 for v in values)} at least as fast, {sum(v < 0.9 for v in values)} below 0.9, "
            f"worst {worst:.3f} at {record.item.shape}"
        )
    return lines


def as_text(records: Sequence[Record]) -> str:
    """All groups as aligned tables, each with its totals."""
    lines: list[str] = []
    for group in groups(records):
        table = [header(group), *(row(group, record) for record in group.records)]
        widths = [max(len(cells[i]) for cells in table) for i in range(len(table[0]) - 1)]
        lines.append(f"{group.title} (TFLOP/s)")
        for cells in table:
            shown = "  ".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=False))
            lines.append(f"  {shown}  {cells[-1]}".rstrip())
        lines += [f"  {line}" for line in totals(group)]
        lines.append("")
    wrong = sum(bool(record.wrong) for record in records)
    lines.append(f"{counted(len(records))} measured, {wrong} with a wrong result")
    return "\n".join(lines) + "\n"
