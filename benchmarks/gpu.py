"""Examples on a GPU: right at random shapes, and fast against cuBLAS and the copy bandwidth of the same run.

    python -m benchmarks.gpu [--output benchmarks/results/NAME.json] [--shapes 20]

Needs a GPU, pycuda and PyTorch (for cuBLAS and the copy). Times are medians over launches between CUDA events; operands
of the memory-bound kernels are larger than the L2 cache.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]  # no dependency of the project: only this file uses it

import tilewright as tw
from examples import batch_matmul, digits, elementwise_chain, matmul_bias_relu, row_softmax, transpose
from tilewright.runtime.reference import compare, run_reference

EXAMPLES = (matmul_bias_relu, row_softmax, transpose, batch_matmul, elementwise_chain)
ROWS, COLUMNS = 16384, 4096


def milliseconds(call: Callable[[], object], repeats: int = 30, inner: int = 5) -> float:
    """Median time of one call, from `repeats` measurements of `inner` calls each."""
    for _ in range(3):
        call()
    times: list[float] = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(inner):
            call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / inner)
    return statistics.median(times)


def random_sizes(names: list[str], rng: np.random.Generator) -> dict[str, int]:
    """Sizes from 0 to 300 (a batch B to 6), small ones and odd ones more often than chance has it."""
    pick = rng.choice([0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 129, 257], size=len(names))
    free = rng.integers(1, 300, size=len(names))
    sizes = {n: int(p if rng.random() < 0.3 else f) for n, p, f in zip(names, pick, free, strict=True)}
    return {n: size % 7 if n == "B" else size for n, size in sizes.items()}


def correctness(shapes: int) -> dict[str, Any]:
    """Every example at random shapes, contiguous and strided, against the reference."""
    found: dict[str, Any] = {}
    for module in EXAMPLES:
        example = module.EXAMPLE
        program = tw.build_module(example.build())
        kernel = tw.compile(program, target="cuda")
        rng = np.random.default_rng(11)
        failures: list[str] = []
        for n in range(shapes):
            sizes = random_sizes(list(example.sizes[0]), rng)
            inputs = list(example.inputs(rng, sizes))
            expected = run_reference(program, "main", inputs, sizes)[0]
            tensors = [torch.from_numpy(x).cuda() for x in inputs]
            if n % 2:
                tensors = [strided(t) for t in tensors]
            got = kernel(*tensors).cpu().numpy()
            print(example.name, sizes, file=sys.stderr, flush=True)
            mismatch = compare(got, expected)
            if mismatch is not None:
                failures.append(f"{sizes}: {mismatch}")
        stats = kernel.stats()
        found[example.name] = {
            "shapes": shapes,
            "failures": failures,
            "pipeline_runs": stats["pipeline_runs"],
            "compiled": sum(bool(k["compiled"]) for k in stats["kernels"]),
            "kernels": [k for k in stats["kernels"] if k["compiled"]],
        }
    found["digits"] = digits_correctness(shapes)
    return found


def digits_correctness(batches: int) -> dict[str, Any]:
    """The classifier at random batch sizes: scores within the bound, predictions equal to the reference's."""
    program = tw.build_module(digits.build())
    kernel = tw.compile(program, target="cuda")
    (images, _), _ = digits.split()
    with np.load(digits.WEIGHTS) as stored:
        weights = [stored[name] for name in ("w1", "b1", "w2", "b2")]
    on_device = [torch.from_numpy(w).cuda() for w in weights]
    rng = np.random.default_rng(12)
    failures: list[str] = []
    for n in [0, 1, *rng.integers(2, len(images), size=max(0, batches - 2))]:
        batch = images[: int(n)]
        expected = run_reference(program, "main", [batch, *weights], {"B": len(batch)})[0]
        got = kernel(torch.from_numpy(batch).cuda(), *on_device).cpu().numpy()
        mismatch = compare(got, expected)
        if mismatch is not None:
            failures.append(f"B = {n}: {mismatch}")
        elif not np.array_equal(got.argmax(axis=1), expected.rounded.argmax(axis=1)):
            failures.append(f"B = {n}: other predictions than the reference's")
    return {"shapes": batches, "failures": failures}


def strided(t: torch.Tensor) -> torch.Tensor:
    """The same values in a view with an odd row pitch and an unaligned base."""
    wide = torch.zeros((*t.shape[:-1], t.shape[-1] + 3), device=t.device, dtype=t.dtype)
    view = wide[..., 1 : 1 + t.shape[-1]]
    view.copy_(t)
    return view


def speed() -> dict[str, Any]:
    """Ratios within this run: to cuBLAS for the product, to the copy bandwidth for the others."""
    torch.backends.cuda.matmul.allow_tf32 = False
    found: dict[str, Any] = {}
    x = torch.randn(ROWS, COLUMNS, device="cuda")
    y = torch.empty_like(x)
    copy = milliseconds(lambda: y.copy_(x))
    moved = 2 * x.numel() * 4
    found["copy"] = {"ms": copy, "TB/s": moved / copy / 1e9}

    def against_copy(name: str, kernel: Any, arguments: list[torch.Tensor], out: torch.Tensor) -> None:
        ms = milliseconds(lambda: kernel(*arguments, out=out))
        found[name] = {"ms": ms, "TB/s": moved / ms / 1e9, "of_copy": copy / ms}

    against_copy(
        "transpose", tw.compile(transpose.build(), target="cuda"), [x], torch.empty(COLUMNS, ROWS, device="cuda")
    )
    against_copy("row_softmax", tw.compile(row_softmax.build(), target="cuda"), [x], y)
    scale, shift, row = (torch.randn(n, device="cuda") for n in (COLUMNS, COLUMNS, ROWS))
    chain = tw.compile(elementwise_chain.build(), target="cuda")
    against_copy("elementwise_chain", chain, [x, scale, shift, row.reshape(-1, 1)], y)
    odd = torch.randn(ROWS, COLUMNS + 1, device="cuda")
    odd_out = torch.empty_like(odd)
    against_copy("row_softmax_4097", tw.compile(row_softmax.build(), target="cuda"), [odd], odd_out)
    against_copy(
        "elementwise_chain_4097",
        chain,
        [odd, *(torch.randn(n, device="cuda") for n in (COLUMNS + 1, COLUMNS + 1)), row.reshape(-1, 1)],
        odd_out,
    )
    for n in (4096, 1024):
        found[f"matmul_{n}"] = product(n, n, n)
    found["matmul_4095x4097x4093"] = product(4095, 4097, 4093)
    return found


def product(m: int, n: int, k: int) -> dict[str, float]:
    """f32 product against cuBLAS (TF32 off) in the same minute."""
    M, N, K = tw.symbols("M N K")
    kernel = tw.compile(tw.matmul(tw.placeholder((M, K), "float32"), tw.placeholder((K, N), "float32")), target="cuda")
    a, b, c = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda"), torch.empty(m, n, device="cuda")
    ours = milliseconds(lambda: kernel(a, b, out=c), 10, 3)
    theirs = milliseconds(lambda: torch.mm(a, b, out=c), 10, 3)
    flops = 2.0 * m * n * k
    return {
        "ms": ours,
        "TFLOP/s": flops / ours / 1e9,
        "cublas_TFLOP/s": flops / theirs / 1e9,
        "of_cublas": theirs / ours,
    }


def machine() -> dict[str, str]:
    """What was measured on."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu, driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip().split(", ")
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "gpu": gpu,
        "driver": driver,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "tilewright": tw.__version__,
        "command": "python -m benchmarks.gpu " + " ".join(sys.argv[1:]),
    }


def main() -> int:
    """Prints the results as JSON, and writes them with --output."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output")
    parser.add_argument("--shapes", type=int, default=20)
    arguments = parser.parse_args()
    results = {"machine": machine(), "correctness": correctness(arguments.shapes), "speed": speed()}
    text = json.dumps(results, indent=1)
    print(text)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    return 1 if any(e["failures"] for e in results["correctness"].values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
