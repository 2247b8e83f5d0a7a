"""`docs/performance.md` from the files of `bench gemm`: how it was measured, tables, and plots beside the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tilewright.api.bench.records import OURS, Record, Results, merged
from tilewright.api.bench.shapes import DTYPES
from tilewright.api.bench.summary import Group, counted, geometric_mean, groups, header, row, totals
from tilewright.api.bench.svg import Panel, plot

MANY: Final = 60
"""A group with more shapes than this shows its slowest ones and the distribution, not every shape."""
WORST_SHOWN: Final = 10

_METHOD: Final = """# Performance of matrix products

Made by `tilewright bench report`; every figure below is from files of `tilewright bench gemm`. Where something was
taken out of a file afterwards, that stands below its command, with the reason.

## How it is measured

```
tilewright bench gemm --peers cublas,triton --shapes table,odd,fused
tilewright bench gemm --peers cublas,triton --shapes curve
tilewright bench gemm --peers cublas,triton --shapes random
tilewright bench report benchmarks/results -o docs/performance.md
```

- One kernel from `tw.matmul` with three symbolic sizes a dtype; operands and result row-major, shapes as MxNxK.
- All systems run in one process, in rounds; each round has them in a new order (seeded). Figures are medians over
  rounds. "spread" is the width of the middle half of our rounds over the median.
- *sustained*: turns of about 10 ms, back to back, so that clocks are those of a busy GPU. *burst*: turns of about 1 ms,
  each after 20 ms of idling and a fill of 512 MiB. A turn is one replay of a CUDA graph of many calls, on all sides;
  a turn that could not be captured is marked `launches`. Within a turn operands stay in the L2 cache if they fit.
- *cold*: graphs of one call with the L2 cache flushed, queued while the flush runs. Such a figure holds a few
  microseconds between two events for every system alike, which draws the ratios of tiny products towards 1.
- cuBLAS is `torch.mm(a, b, out=c)` with TF32 on for tf32 alone, torch's other settings as they come. Triton is the
  kernel of its tutorial with six fixed configurations, of which the quickest for each shape counts.
- Of the set *fused*, `tilewright` is `cast(gelu(float(a @ b) + float(bias)))` in one kernel, `tilewright-plain` is the
  product alone, and `torch-eager` is `gelu(addmm(bias, a, b))`.
- Each result is compared once a shape, in the relative Frobenius norm: bf16 and f16 with torch in float32 (bounds 2e-3
  and 3e-4, twice that for fused ones), f32 with float64 (1e-6 up to K = 1024, growing with the root of K from there; in
  tf32 1e-3). Rounding a bf16 result alone makes about 1.7e-3, and more where a result has few elements. torch's
  settings let cuBLAS add partial sums in bf16 (`allow_bf16_reduced_precision_reduction`).
  "vs" is our speed over the other's: above 1 we are faster.
"""


def make_report(results: Sequence[Results], stem: str) -> tuple[str, dict[str, str]]:
    """(the page, its pictures by file name); `stem` is the page's name without `.md`. No results, no figures."""
    records = merged(results)
    lines = [_METHOD]
    if not records:
        lines.append("## Results\n\nNone are recorded yet.\n")
        return "\n".join(lines), {}
    lines += _machines(results)
    every = groups(records)
    lines += _overview(every)
    pictures: dict[str, str] = {}
    for dtype in dict.fromkeys(record.item.dtype for record in records):
        panels = curve_panels(records, dtype)
        if panels:
            name = f"{stem}-{dtype}.svg"
            pictures[name] = plot(f"Square products, {dtype}, sustained", "M = N = K", "TFLOP/s", panels)
            lines.append(f"![TFLOP/s against size, {dtype}]({name})\n")
    for group in every:
        lines += _group(group)
    lines += _kernels(records)
    return "\n".join(lines), pictures


def curve_panels(records: Sequence[Record], dtype: str) -> list[Panel]:
    """Speed of square products against size: those of the table, then each range of the curve."""
    ranges = {"table": (1, 1 << 30), "curve 1000-1100": (1000, 1100), "curve 4064-4128": (4064, 4128)}
    panels: list[Panel] = []
    for title, (low, high) in ranges.items():
        series: dict[str, list[tuple[float, float]]] = {}
        for record in sorted(records, key=lambda r: r.item.shape.m):
            shape = record.item.shape
            if record.item.set != title.split()[0] or record.item.dtype != dtype:
                continue
            if not shape.m == shape.n == shape.k or not low <= shape.m <= high:
                continue
            for system in record.timings.get("sustained", {}):
                series.setdefault(system, []).append((shape.m, record.tflops("sustained", system) or 0.0))
        if any(len(points) > 1 for points in series.values()):
            ordered = {name: series[name] for name in sorted(series, key=lambda name: name != OURS)}
            panels.append(Panel(title, ordered, log_x=title == "table"))
    return panels


def _machines(results: Sequence[Results]) -> list[str]:
    """What was measured on, once for all files that agree, and the command of each."""
    lines = ["## What it was measured on\n"]
    seen: dict[tuple[tuple[str, str], ...], list[Results]] = {}
    for each in results:
        same = tuple((k, v) for k, v in each.machine.items() if k not in ("date", "command"))
        seen.setdefault(same, []).append(each)
    for machine, members in seen.items():
        lines += ["| | |", "|---|---|", *(f"| {key.replace('_', ' ')} | {value} |" for key, value in machine), ""]
        for each in members:
            state = "" if each.complete else f", {len(each.records)} of {counted(each.items)}"
            lines.append(f"- `{each.machine.get('command', '')}` ({each.machine.get('date', 'no date')}{state})")
            lines += [f"  - {peer} skipped: {reason}" for peer, reason in each.skipped.items()]
        lines.append("")
    return lines


def _overview(every: Sequence[Group]) -> list[str]:
    """One line for each group and peer."""
    cells = [["set", "dtype", "mode", "vs", "shapes", "geometric mean", "at least as fast", "below 0.9", "worst"]]
    for group in every:
        for peer in group.peers:
            ratios = group.ratios(peer)
            if ratios:
                values = [ratio for ratio, _ in ratios]
                few = [sum(v >= 1 for v in values), sum(v < 0.9 for v in values)]
                worst = f"{values[0]:.3f} ({ratios[0][1].item.shape})"
                shown = [str(len(values)), f"{geometric_mean(values):.3f}", *map(str, few), worst]
                cells.append([group.set, group.dtype, group.mode, peer, *shown])
    return ["## Overview\n", *_table(cells), "", *_wrong(every), ""]


def _wrong(every: Sequence[Group]) -> list[str]:
    """For each system with results beyond the bounds, how many and which is furthest beyond."""
    records = {record.item.key: record for group in every for record in group.records}
    beyond: dict[str, list[tuple[float, str]]] = {}
    for key, record in records.items():
        for name in record.wrong:
            error = record.errors[name]
            beyond.setdefault(name, []).append((math.inf if math.isnan(error) else error / record.bound, key))
    lines = [
        f"- Wrong results of {name}: {len(found)} of {counted(len(records))}, the worst {max(found)[0]:.3g} times its "
        f"bound at {max(found)[1]}"
        for name, found in sorted(beyond.items())
    ]
    return lines or ["No result was wrong."]


def _group(group: Group) -> list[str]:
    """A section: the table, or of many shapes the worst and the distribution."""
    lines = [f"## {group.set}, {DTYPES.get(group.dtype, group.dtype)}, {group.mode}\n"]
    records = list(group.records)
    if len(records) > MANY and group.peers:
        shares = (0, 5, 25, 50, 75, 95, 100)
        cells = [["vs", *(f"{share}%" for share in shares)]]
        for peer in group.peers:
            values = [ratio for ratio, _ in group.ratios(peer)]
            if values:
                cells.append([peer, *(f"{values[round(share / 100 * (len(values) - 1))]:.3f}" for share in shares)])
        lines += ["Our speed over the other's, by share of shapes that are at most so fast:\n", *_table(cells), ""]
        records = [record for _, record in group.ratios(group.peers[0])][:WORST_SHOWN]
        records += [r for r in group.records if (r.wrong or OURS not in r.timings.get(group.mode, {}))]
        lines.append(f"The {WORST_SHOWN} worst of {len(group.records)} shapes, and any that failed (TFLOP/s):\n")
    else:
        lines.append("TFLOP/s:\n")
    shown = {record.item.key: record for record in records}.values()
    cells = [header(group), *(row(group, record) for record in shown)]
    return [*lines, *_table(cells), "", *(f"- {line}" for line in totals(group)), ""]


def _kernels(records: Sequence[Record]) -> list[str]:
    """How many variants the shapes of each set took."""
    cells = [["set", "dtype", "shapes", "variants first wanted", "compile time (s)"]]
    for key in dict.fromkeys((record.item.set, record.item.dtype) for record in records):
        members = [record for record in records if (record.item.set, record.item.dtype) == key]
        new = {name for record in members for name in record.new_kernels}
        seconds = sum(record.compile_seconds for record in members)
        cells.append([*key, str(len(members)), str(len(new)), f"{seconds:.1f}"])
    return [
        "## Kernels compiled\n",
        "Variants of ours that a set's shapes were the first in their process to want, and what compiling took.\n",
        *_table(cells),
        "",
    ]


def _table(cells: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table; the first row is its head."""
    head, *body = cells
    return [
        f"| {' | '.join(head)} |",
        f"|{'|'.join('---' for _ in head)}|",
        *(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in body),
    ]
