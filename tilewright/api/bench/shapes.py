"""What is measured: named sets of shapes, in a fixed order, and their division into parts."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tilewright.diagnostics import TilewrightError

Mode = Literal["sustained", "burst", "cold"]
"""Back to back for as long as it takes; a short burst after an idle gap; single calls with the L2 cache flushed."""

DTYPES: Final[dict[str, str]] = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "tf32": "float32"}
"""Name on the command line -> name of the front end (and of torch)."""
TF32: Final = "tf32"
"""The one whose tensors are float32 and whose products may be in tf32."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A product [M, K] x [K, N], both operands row-major."""

    m: int
    n: int
    k: int

    @property
    def flops(self) -> float:
        """Multiplications and additions of the product."""
        return 2.0 * self.m * self.n * self.k

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"


@dataclass(frozen=True, slots=True)
class Item:
    """One measurement: a shape of a set in a dtype."""

    set: str
    dtype: str
    shape: Shape

    @property
    def key(self) -> str:
        """What a part's file knows it by."""
        return f"{self.set}/{self.dtype}/{self.shape}"


_TABLE = (
    "8192x8192x8192 4096x4096x4096 2048x2048x2048 2048x4096x14336 2048x14336x4096 512x4096x4096 128x14336x4096 "
    "8192x128x8192 128x4096x4096 1024x1024x1024 512x512x512 256x256x16384 16x4096x4096 1x4096x4096 1000x1000x1000"
)
_ODD = "4095x4097x4093 3333x777x1111 8191x8193x8191"
_TILELANG = (
    "4096x4096x4096 8192x8192x8192 2048x4096x14336 1024x1024x1024 "
    "4095x4097x4093 8191x8193x8191 3333x777x1111 1023x1025x1031"
)
_FUSED = "8192x8192x8192 4096x4096x4096 2048x14336x4096 1024x1024x1024"

MODES: Final[dict[str, tuple[Mode, ...]]] = {
    "table": ("sustained", "burst"),
    "odd": ("sustained", "burst"),
    "fused": ("sustained", "burst"),
    "tilelang": ("sustained", "burst"),
    "curve": ("sustained",),
    "random": ("cold",),
    "given": ("sustained", "burst"),
}
"""Set -> the modes it is measured in. `given` are shapes named on the command line."""

RANDOM_SHAPES: Final = 200
LARGEST_RANDOM: Final = 8192


def parse_shape(text: str) -> Shape:
    """`MxNxK`, or `M^3`; raises TilewrightError for what is neither, or has a dim below 1."""
    if (cube := re.fullmatch(r"(\d{1,9})\^3", text)) is not None:
        sizes = [int(cube.group(1))] * 3
    elif re.fullmatch(r"\d{1,9}(x\d{1,9}){2}", text):
        sizes = [int(word) for word in text.split("x")]
    else:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise TilewrightError(f"--shapes: expected one of {', '.join(_NAMED)}, or MxNxK, got '{text}'")
    return Shape(*sizes)


def random_shapes(count: int = RANDOM_SHAPES, seed: int = 0) -> list[Shape]:
    """Each dim log-uniform in 1..8192; then a coin makes it odd or a multiple of 8. The same list on every Python."""
    draw = random.Random(seed).random  # the one method whose stream Python promises to keep

    def dim() -> int:
        size = round(math.exp(draw() * math.log(LARGEST_RANDOM)))
        if draw() < 0.5:
            return size if size % 2 else size - 1 if size > 1 else 1
        return min(LARGEST_RANDOM, max(8, round(size / 8) * 8))

    return [Shape(dim(), dim(), dim()) for _ in range(count)]


def _words(text: str) -> list[Shape]:
    return [parse_shape(word) for word in text.split()]


def _curve() -> list[Shape]:
    return [Shape(n, n, n) for n in (*range(1000, 1101, 3), *range(4064, 4129, 3))]


_NAMED = {
    "table": lambda: _words(_TABLE),
    "odd": lambda: _words(_ODD),
    "curve": _curve,
    "random": random_shapes,
    "fused": lambda: _words(_FUSED),
    "tilelang": lambda: _words(_TILELANG),
}


def make_items(words: Sequence[str], dtypes: Sequence[str]) -> list[Item]:
    """The measurements of these sets and shapes, each in every dtype; one that is named twice is measured once."""
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise TilewrightError(f"--dtypes: expected one of {', '.join(DTYPES)}, got '{dtype}'")
    found: dict[str, Item] = {}
    for dtype in dtypes:
        for word in words:
            shapes = _NAMED[word]() if word in _NAMED else [parse_shape(word)]
            for shape in shapes:
                item = Item(word if word in _NAMED else "given", dtype, shape)
                found.setdefault(item.key, item)
    return list(found.values())


def parse_part(text: str) -> tuple[int, int]:
    """`N/M`, the N-th of M parts, counted from 1."""
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
    number, count = (int(match.group(1)), int(match.group(2))) if match is not None else (0, 0)
    if not 1 <= number <= count:
        raise TilewrightError(f"--part: expected N/M with N from 1 to M, got '{text}'")
    return number, count


def part_of(items: Sequence[Item], number: int, count: int) -> list[Item]:
    """Every `count`-th item from the `number`-th on, so that each part has its share of every size."""
    return list(items[number - 1 :: count])
