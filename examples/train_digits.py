"""Trains the weights that `examples.digits` uses.

A 64-48-10 network on scikit-learn's bundled digits, by plain gradient descent in NumPy:

    python -m examples.train_digits          writes examples/data/digits_mlp.npz

The split is the one of `examples.digits.split`: the 20% that are held out are not seen here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from examples.digits import WEIGHTS, split
from examples.example import Array

HIDDEN, EPOCHS, BATCH, RATE, DECAY = 48, 60, 32, 0.1, 1e-4


def train() -> dict[str, Array]:
    """Weights and biases in f32 after EPOCHS epochs."""
    (x, labels), _ = split()
    rng = np.random.default_rng(7)
    w1, b1 = rng.normal(0, np.sqrt(2 / 64), (64, HIDDEN)), np.zeros(HIDDEN)
    w2, b2 = rng.normal(0, np.sqrt(2 / HIDDEN), (HIDDEN, 10)), np.zeros(10)
    for _ in range(EPOCHS):
        for rows in np.array_split(rng.permutation(len(x)), len(x) // BATCH):
            hidden = np.maximum(x[rows] @ w1 + b1, 0)
            scores = hidden @ w2 + b2
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            error = scores / scores.sum(axis=1, keepdims=True)
            error[np.arange(len(rows)), labels[rows]] -= 1
            error /= len(rows)
            back = (error @ w2.T) * (hidden > 0)
            w2 -= RATE * (hidden.T @ error + DECAY * w2)
            b2 -= RATE * error.sum(axis=0)
            w1 -= RATE * (x[rows].T @ back + DECAY * w1)
            b1 -= RATE * back.sum(axis=0)
    return {name: value.astype(np.float32) for name, value in {"w1": w1, "b1": b1, "w2": w2, "b2": b2}.items()}


if __name__ == "__main__":
    Path(WEIGHTS).parent.mkdir(exist_ok=True)
    weights = train()
    np.savez(WEIGHTS, w1=weights["w1"], b1=weights["b1"], w2=weights["w2"], b2=weights["b2"])
    print(f"wrote {WEIGHTS}")
