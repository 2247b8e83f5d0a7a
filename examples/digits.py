"""Handwritten digits: a small network with a symbolic batch classifies real images that it has not seen in training.

The images are scikit-learn's bundled digits (1,797 scans of 8 x 8 pixels, from the UCI repository); the weights in
`data/digits_mlp.npz` come from `examples.train_digits`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from examples.example import Array
from tilewright.runtime.reference import compare, run_reference

WEIGHTS = Path(__file__).parent / "data" / "digits_mlp.npz"
NEEDED_ACCURACY = 0.96
Part = tuple[Array, Array]


def split() -> tuple[Part, Part]:
    """(images, labels) to train on and (images, labels) held out: 80% and 20% of a fixed shuffle.

    Images are f32 [n, 64] from 0 to 1.
    """
    from sklearn.datasets import load_digits  # pyright: ignore[reportUnknownVariableType]  # scikit-learn has no types

    digits: Any = load_digits()
    images = (digits.data / 16).astype(np.float32)
    labels = np.asarray(digits.target)
    order = np.random.default_rng(2026).permutation(len(images))
    cut = len(images) * 4 // 5
    return (images[order[:cut]], labels[order[:cut]]), (images[order[cut:]], labels[order[cut:]])


def build() -> tw.Tensor:
    """softmax(relu(x @ w1 + b1) @ w2 + b2), x [B, 64]."""
    (B,) = tw.symbols("B")
    x = tw.placeholder((B, 64), "float32", name="x")
    w1, b1 = tw.placeholder((64, 48), "float32", name="w1"), tw.placeholder((48,), "float32", name="b1")
    w2, b2 = tw.placeholder((48, 10), "float32", name="w2"), tw.placeholder((10,), "float32", name="b2")
    return tw.softmax(tw.matmul(tw.relu(tw.matmul(x, w1) + b1), w2) + b2, axis=-1)


def run(target: str = "auto") -> bool:
    """Classifies the held-out images in one batch and in batches of odd sizes; True when all promises hold."""
    module = tw.build_module(build())
    kernel = tw.compile(module, target=target)
    _, (images, labels) = split()
    with np.load(WEIGHTS) as stored:
        weights = [stored[name] for name in ("w1", "b1", "w2", "b2")]
    print("digits: softmax(relu(x @ w1 + b1) @ w2 + b2) on real images, x [B, 64]")
    print(f"  backend {kernel.backend}: {kernel.backend_reason}")
    started = time.perf_counter()
    scores = np.asarray(kernel(images, *weights))
    took = time.perf_counter() - started
    expected = run_reference(module, "main", [images, *weights], {"B": len(images)})[0]
    mismatch = compare(scores, expected)
    predicted = scores.argmax(axis=1)
    accuracy = float((predicted == labels).mean())
    same = bool((predicted == expected.rounded.argmax(axis=1)).all())
    pieces = [kernel(images[a:b], *weights) for a, b in ((0, 1), (1, 1), (1, 38), (38, len(images)))]
    in_pieces = bool((np.concatenate(pieces).argmax(axis=1) == predicted).all())
    passed = mismatch is None and same and in_pieces and accuracy >= NEEDED_ACCURACY
    print(f"  {len(images)} images: accuracy {accuracy:.1%} (needed {NEEDED_ACCURACY:.0%}), {took:.3f} s")
    print(
        f"  scores within the bound: {mismatch or 'yes'}; predictions equal the reference's: {'yes' if same else 'NO'}"
    )
    print(f"  batches of 1, 0, 37 and {len(images) - 38} predict the same: {'yes' if in_pieces else 'NO'}")
    print(f"  digits: {'PASS' if passed else 'FAIL'}")
    return passed


def main() -> int:
    """`python -m examples.digits [target]`."""
    try:
        return 0 if run(sys.argv[1] if len(sys.argv) > 1 else "auto") else 1
    except tw.TilewrightError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
