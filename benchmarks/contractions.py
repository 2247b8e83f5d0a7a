"""Contractions that `einsum` spells, against the named product of the same operands: the same kernels, the same speed.

    python -m benchmarks.contractions [--dtype bf16] [--output FILE.json]

Each form and its named product are timed in turn on a GPU, between CUDA events, and the quotient of the medians is
printed (needs PyTorch). Without a GPU only the kernels that both launch are compared, as `tests/lowering` does. Rows of
`ijk,kl->ijl` are compared with the product of the operand's matrix of rows, which is another program.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import tilewright as tw
from benchmarks.variants import form_of
from tilewright.api.bench.shapes import DTYPES
from tilewright.runtime.binding import Layout
from tilewright.runtime.cuda_driver import cuda_unavailable_reason
from tilewright.runtime.variants import CompiledEntry

Named = Callable[[tw.Tensor, tw.Tensor], tw.Tensor]
ROUNDS, CALLS = 15, 20


@dataclass(frozen=True)
class Form:
    """A spec of einsum, the named product on the same operands, and sizes to measure."""

    spec: str
    named: Named
    sizes: tuple[dict[str, int], ...]

    def program(self, dtype: str, named: bool) -> tw.Tensor:
        """One of the two, with a symbol for each letter."""
        letters = dict.fromkeys(letter for letter in self.spec if letter.isalpha())
        symbols = dict(zip(letters, tw.symbols(" ".join(letter.upper() for letter in letters)), strict=True))
        a, b = (
            tw.placeholder(tuple(symbols[letter] for letter in word), DTYPES[dtype], name=name)
            for word, name in zip(self.words, "ab", strict=True)
        )
        return self.named(a, b) if named else tw.einsum(self.spec, a, b)

    @property
    def words(self) -> list[str]:
        """The letters of each operand."""
        return self.spec.partition("->")[0].split(",")

    def shapes(self, sizes: dict[str, int]) -> list[tuple[int, ...]]:
        """The operands' shapes."""
        return [tuple(sizes[letter] for letter in word) for word in self.words]


def _cube(size: int, letters: str = "ijk") -> dict[str, int]:
    return dict.fromkeys(letters, size)


FORMS = (
    Form("ik,kj->ij", tw.matmul, (_cube(4096), _cube(2048))),
    Form("ij,kj->ik", lambda a, b: tw.matmul(a, tw.transpose(b)), (_cube(4096), _cube(2048), _cube(4093))),
    Form("ki,kj->ij", lambda a, b: tw.matmul(tw.transpose(a), b), (_cube(4096), _cube(2048), _cube(4093))),
    Form("bij,bjk->bik", tw.batch_matmul, ({"b": 16, **_cube(1024)}, {"b": 3, **_cube(1000)})),
    Form(
        "ijk,kl->ijl", tw.matmul, ({"i": 8, "j": 512, "k": 4096, "l": 4096}, {"i": 4, "j": 512, "k": 2048, "l": 2048})
    ),
)


def launched(entry: CompiledEntry, shapes: Sequence[tuple[int, ...]]) -> list[tuple[str, int]]:
    """What the code of each launch depends on, and its number of tiles, for contiguous operands."""
    layouts: list[Layout] = []
    for shape in shapes:
        strides = [1] * len(shape)
        for axis in range(len(shape) - 1, 0, -1):
            strides[axis - 1] = strides[axis] * shape[axis]
        layouts.append(Layout(shape, tuple(strides), 0))
    decision = entry.plan.decide(layouts)
    return [(form_of(entry, entry.plan.sites[each.site]), each.grid) for each in decision.launches]


def entries(form: Form, dtype: str, arch: str) -> tuple[CompiledEntry, CompiledEntry]:
    """The form and the named product."""
    spelled, named = (
        CompiledEntry(tw.build_module(form.program(dtype, which)), "main", arch) for which in (False, True)
    )
    return spelled, named


def measure(form: Form, dtype: str) -> list[dict[str, Any]]:
    """Seconds of both at each of the form's sizes, and their results compared."""
    torch: Any = import_module("torch")
    kernels = [tw.compile(form.program(dtype, which), target="cuda") for which in (False, True)]
    flat = tw.compile(FORMS[0].program(dtype, named=True), target="cuda")
    found: list[dict[str, Any]] = []
    for sizes in form.sizes:
        a, b = (torch.randn(*shape, device="cuda").to(getattr(torch, DTYPES[dtype])) for shape in form.shapes(sizes))
        outs = [kernel(a, b) for kernel in kernels]
        calls: list[Callable[[], object]] = [
            partial(kernel, a, b, out=out) for kernel, out in zip(kernels, outs, strict=True)
        ]
        same = bool(torch.equal(*outs))
        if form.spec == "ijk,kl->ijl":
            rows, out = a.reshape(-1, a.shape[-1]), torch.empty_like(outs[0].reshape(-1, b.shape[-1]))
            calls[1] = partial(flat, rows, b, out=out)
            calls[1]()
            same = same and bool(torch.equal(out.reshape(outs[0].shape), outs[0]))
        seconds = _in_turn(torch, calls)
        ratio = seconds[1] / seconds[0]
        print(f"{form.spec:14} {sizes}: einsum {seconds[0] * 1e6:.1f} us, named {seconds[1] * 1e6:.1f} us, "
              f"speed {ratio:.3f} of it, {'equal' if same else 'DIFFERENT'} results", flush=True)  # fmt: skip
        found.append({"form": form.spec, "sizes": sizes, "seconds": seconds, "speed": ratio, "equal": same})
    return found


def _in_turn(torch: Any, calls: Sequence[Callable[[], object]]) -> list[float]:
    """Median seconds of each call, measured one after the other in every round."""
    times: list[list[float]] = [[] for _ in calls]
    for round_ in range(ROUNDS + 1):
        for call, own in zip(calls, times, strict=True):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for _ in range(CALLS):
                call()
            end.record()
            end.synchronize()
            if round_:
                own.append(start.elapsed_time(end) / 1000 / CALLS)
    return [statistics.median(own) for own in times]


def main() -> int:
    """Print and write what was found; 1 where results differ or a form is below 95% of the named product's speed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dtype", default="bf16", choices=sorted(DTYPES))
    parser.add_argument("--output")
    arguments = parser.parse_args()
    if (reason := cuda_unavailable_reason()) is not None:
        print(f"{reason}: kernels are compared, nothing is timed")
        wrong = 0
        for form in FORMS:
            both = entries(form, arguments.dtype, "sm_90a")
            for sizes in form.sizes:
                one, other = (launched(entry, form.shapes(sizes)) for entry in both)
                wrong += one != other
                print(f"{form.spec:14} {sizes}: {'the same kernels' if one == other else 'DIFFERENT kernels'}")
        return int(wrong > 0)
    found = [each for form in FORMS for each in measure(form, arguments.dtype)]
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(any(not each["equal"] or each["speed"] < 0.95 for each in found))


if __name__ == "__main__":
    raise SystemExit(main())
