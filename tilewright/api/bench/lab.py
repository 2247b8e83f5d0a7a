"""What a session needs of the machine that it runs on: a clock, and the systems ready to be called on an item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import tilewright as tw
from tilewright.api.bench.measure import Call, Timer
from tilewright.api.bench.shapes import DTYPES, TF32, Item, Shape

BOUNDS: Final = {"bf16": 2e-3, "f16": 3e-4, "f32": 1e-6, "tf32": 1e-3}
"""Largest relative error (Frobenius) of a result. For 16 bits it is one rounding of the result: half of a spacing of
2^-7 (bf16) or 2^-10 (f16) at most, 1.6e-3 and 2.1e-4 in the mean square. In tf32 each factor is cut at a spacing of
2^-10 or less: it loses 3.5e-4 of itself in the mean (2^-11 times the mean of 1 / significand, 0.72), always towards
zero, so that sums lose 7e-4; the spread brings that to 7.7e-4."""
F32_BOUND_K: Final = 1024
"""Up to this K the bound of f32 holds as it is. Summing K products one after the other with unit roundoff u = 2^-24
has a relative error of about 0.4 u sqrt(K) (errors as independent): 8e-7 at 1024; beyond, the bound grows like that."""
FUSED_ROUNDINGS: Final = 2
"""A fused product rounds twice where torch does: the product, and the result."""


def bound_of(item: Item) -> float:
    """The largest relative error of an item's results."""
    bound = BOUNDS[item.dtype]
    if item.dtype == "f32":
        bound *= max(1.0, item.shape.k / F32_BOUND_K) ** 0.5
    return bound * FUSED_ROUNDINGS if item.set == "fused" else bound


@dataclass(slots=True)
class Prepared:
    """The systems of one item, each called once and compared."""

    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    errors: dict[str, float] = field(default_factory=dict[str, float])
    notes: dict[str, str] = field(default_factory=dict[str, str])
    compile_seconds: float = 0.0


class Lab(Protocol):
    """A machine with its systems."""

    @property
    def timer(self) -> Timer:
        """The clock."""
        ...

    @property
    def skipped(self) -> dict[str, str]:
        """Peers that were asked for and are not there -> why."""
        ...

    def machine(self) -> dict[str, str]:
        """What is measured on and with: names and versions."""
        ...

    def prepare(self, item: Item) -> Prepared:
        """Operands, the systems' first calls and the comparison. A system that fails is left out, with a note."""
        ...

    def kernels(self) -> dict[str, dict[str, Any]]:
        """Program -> what it has compiled so far."""
        ...


class Programs:
    """Our kernels: one a dtype for plain products, one for fused ones, whatever the shapes."""

    def __init__(self, target: str, arch: str | None = None) -> None:
        self._target = target
        self._arch = arch
        self._kernels: dict[str, tw.Kernel] = {}

    def plain(self, dtype: str) -> tw.Kernel:
        """`a @ b` for a [M, K], b [K, N]."""
        return self._get(f"matmul {dtype}", dtype, fused=False)

    def fused(self, dtype: str) -> tw.Kernel:
        """`cast(gelu(f32(a @ b) + f32(bias)))` for a [M, K], b [K, N], bias [N]."""
        return self._get(f"matmul+bias+gelu+cast {dtype}", dtype, fused=True)

    def compile_seconds(self) -> float:
        """Seconds spent on compiling so far, by all of them."""
        return sum(kernel.compile_seconds for kernel in self._kernels.values())

    def stats(self) -> dict[str, dict[str, Any]]:
        """Program -> what calls have wanted, with its resources, and of how many variants; those that share their code
        count once."""
        found: dict[str, dict[str, Any]] = {}
        for name, kernel in self._kernels.items():
            stats = kernel.stats()
            found[name] = {
                "backend": kernel.backend,
                "arch": kernel.arch,
                "compile_seconds": round(kernel.compile_seconds, 3),
                "pipeline_runs": stats["pipeline_runs"],
                "variants": len(stats["kernels"]),
                "compiled": list({e["code"]: e for e in reversed(stats["kernels"]) if e["compiled"]}.values())[::-1],
            }
        return found

    def _get(self, name: str, dtype: str, fused: bool) -> tw.Kernel:
        found = self._kernels.get(name)
        if found is None:
            m, n, k = tw.symbols("M N K")
            word = DTYPES[dtype]
            a, b = tw.placeholder((m, k), word, name="a"), tw.placeholder((k, n), word, name="b")
            result = tw.matmul(a, b, precision=TF32 if dtype == TF32 else None)
            if fused:
                bias = tw.placeholder((n,), word, name="bias")
                result = tw.cast(tw.gelu(tw.cast(result, "float32") + tw.cast(bias, "float32")), word)
            found = self._kernels[name] = tw.compile(result, target=self._target, arch=self._arch)
        return found


def reference_rows(shape: Shape, most: int = 1 << 26) -> int:
    """Rows of the result that are compared at once, so that a chunk has at most so many elements of a and of c."""
    return max(1, min(shape.m, most // max(shape.k, shape.n)))
