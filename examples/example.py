"""What the examples share: a program, the sizes to show it at, and a check against the reference."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.runtime.reference import compare, run_reference

Array = np.ndarray[Any, Any]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Example:
    """A program over symbolic sizes with a way to make inputs for any of them."""

    name: str
    title: str
    build: Callable[..., tw.Tensor]
    """The result; takes the element type, float32 by default."""
    inputs: Callable[[np.random.Generator, Sizes], Sequence[Array]]
    sizes: Sequence[Sizes]
    """The sizes that the demo shows: a common one, an odd one, and a small or empty one."""


def normal(rng: np.random.Generator, *shape: int) -> Array:
    """Standard normal f32 values."""
    return rng.standard_normal(shape, dtype=np.float32)


def run(example: Example, target: str = "auto") -> bool:
    """Compile once, run at each of the example's sizes, and print how the results compare with the reference."""
    module = tw.build_module(example.build())
    kernel = tw.compile(module, target=target)
    print(f"{example.name}: {example.title}")
    print(f"  backend {kernel.backend}: {kernel.backend_reason}")
    passed = True
    for sizes in example.sizes:
        inputs = example.inputs(np.random.default_rng(0), sizes)
        started = time.perf_counter()
        result = kernel(*inputs)
        took = time.perf_counter() - started
        expected = run_reference(module, "main", inputs, dict(sizes))[0]
        mismatch = compare(np.asarray(result), expected)
        shapes = " ".join("x".join(map(str, x.shape)) for x in inputs)
        off, bound = worst(np.asarray(result), expected.value, expected.bound)
        verdict = "PASS" if mismatch is None else f"FAIL {mismatch}"
        out = "x".join(map(str, np.shape(result)))
        print(f"  {shapes} -> {out}: error {off:.2g}, bound {bound:.2g}, {took:.3f} s: {verdict}")
        passed = passed and mismatch is None
    return passed


def worst(got: Array, value: Array, bound: Array) -> tuple[float, float]:
    """The error and the bound of the element that uses most of its bound; zeros for an empty result."""
    if got.size == 0:
        return 0.0, 0.0
    error = np.abs(got.astype(np.float64) - value)
    place = np.argmax(error / np.maximum(bound, np.finfo(np.float64).tiny))
    return float(error.flat[place]), float(bound.flat[place])


def main(example: Example) -> int:
    """Runs one example as a program: `python -m examples.<name> [target]`."""
    target = sys.argv[1] if len(sys.argv) > 1 else "auto"
    try:
        return 0 if run(example, target) else 1
    except tw.TilewrightError as error:
        print(error, file=sys.stderr)
        return 1
