"""Line plots as SVG text, without any library: panels side by side, one polyline a series, linear axes from 0 up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

COLOURS: Final = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")
WIDTH, HEIGHT = 420, 300
"""Of a panel, in pixels, with its margins."""
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 34, 44

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes. `series` are (x, y) in ascending x; `log_x` spaces x by its logarithm."""

    title: str
    series: Mapping[str, Points]
    log_x: bool = False


def plot(title: str, x_label: str, y_label: str, panels: Sequence[Panel]) -> str:
    """The picture. All panels have one scale of y, and a system one colour in all of them."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    most = max((y for panel in panels for points in panel.series.values() for _, y in points), default=1.0)
    step = nice_step(most)
    top = step * max(1, math.ceil(most / step))
    width, height = WIDTH * max(1, len(panels)), HEIGHT + 46
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="16" font-size="14">{escape(title)}</text>',
    ]
    x = float(LEFT)
    for name in names:
        parts.append(f'<rect x="{x:.0f}" y="24" width="14" height="4" fill="{colours[name]}"/>')
        parts.append(f'<text x="{x + 18:.0f}" y="30">{escape(name)}</text>')
        x += 34 + 7 * len(name)
    for number, panel in enumerate(panels):
        parts.append(f'<g transform="translate({number * WIDTH},46)">')
        parts += _panel(panel, colours, top, step, x_label, y_label if number == 0 else "")
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def nice_step(most: float) -> float:
    """The distance between ticks: 1, 2 or 5 times a power of ten, such that at most 10 reach `most`."""
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most / 5))
    return next(factor * power for factor in (1, 2, 5, 10) if most / (factor * power) <= 10)


def _panel(panel: Panel, colours: Mapping[str, str], top: float, step: float, x_label: str, y_label: str) -> list[str]:
    xs = sorted({x for points in panel.series.values() for x, _ in points})
    scale = math.log2 if panel.log_x else float
    low, high = (scale(xs[0]), scale(xs[-1])) if xs else (0.0, 1.0)
    span = (high - low) or 1.0
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def px(x: float) -> float:
        return LEFT + (scale(x) - low) / span * (right - LEFT)

    def py(y: float) -> float:
        return bottom - y / top * (bottom - TOP)

    parts = [f'<text x="{(LEFT + right) / 2:.0f}" y="{TOP - 10}" text-anchor="middle">{escape(panel.title)}</text>']
    for tick in range(round(top / step) + 1):
        y = py(tick * step)
        parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick * step:g}</text>')
    marks = xs if len(xs) <= 7 else [xs[round(i * (len(xs) - 1) / 5)] for i in range(6)]
    for x in marks:
        parts.append(f'<text x="{px(x):.1f}" y="{bottom + 16}" text-anchor="middle">{x:g}</text>')
    parts.append(f'<text x="{(LEFT + right) / 2:.0f}" y="{bottom + 34}" text-anchor="middle">{escape(x_label)}</text>')
    if y_label:
        middle = (TOP + bottom) / 2
        parts.append(
            f'<text x="14" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 14 {middle:.0f})">'
            f"{escape(y_label)}</text>"
        )
    for name, points in panel.series.items():
        line = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colours[name]}" stroke-width="1.6"/>')
        parts += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="2" fill="{colours[name]}"/>' for x, y in points]
    return parts
