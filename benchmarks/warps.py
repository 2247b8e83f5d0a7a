"""Products by the matrix instructions of warps on a GPU, held to torch and timed beside it.

    python -m benchmarks.warps [--json FILE] [--sizes 4096x4096x4096 ...] [--dtype bf16|tf32] [--arch ARCH]

Lowered for the GPU's architecture without its last letter (sm_90 of an H200), so that warps multiply where warpgroups
could, unless another one is given. Needs torch. One line a layout of the operands (`n`: contiguous along the last dim,
`t`: along the first): the kernel that ran, TFLOP/s of the median of some runs, torch's beside it, and the largest error
over the bound.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright.runtime.cuda_driver import device

TEXTS = {"nn": "ik,kj->ij", "tn": "ki,kj->ij", "nt": "ik,jk->ij", "tt": "ki,jk->ij"}
SIZES = ("4096x4096x4096", "8192x8192x8192", "1024x1024x1024", "4095x4097x4093", "4094x4094x4094")
RUNS = 30


def seconds(torch: Any, run: Any) -> float:
    """The median time of a call on the device."""
    for _ in range(5):
        run()
    marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(RUNS)]
    for start, end in marks:
        start.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in marks) / 1e3


def measure(torch: Any, layout: str, size: str, arch: str, tf32: bool) -> dict[str, Any]:
    """One product in one layout."""
    m, n, k = (int(each) for each in size.split("x"))
    sizes = {"i": m, "j": n, "k": k}
    left, right, _ = TEXTS[layout].replace("->", ",").split(",")
    symbols = dict(zip("ijk", tw.symbols("M N K"), strict=True))
    shapes = [[symbols[d] for d in each] for each in (left, right)]
    word, dtype = ("float32", torch.float32) if tf32 else ("bfloat16", torch.bfloat16)
    operands = [tw.placeholder(shape, word) for shape in shapes]
    program = tw.einsum(TEXTS[layout], *operands, precision="tf32" if tf32 else None)
    kernel = tw.compile(program, target="cuda", arch=arch)
    generator = torch.Generator("cuda").manual_seed(1)
    a, b = (
        torch.randn([sizes[d] for d in each], generator=generator, device="cuda").to(dtype) for each in (left, right)
    )
    x, y = (a if layout[0] == "n" else a.T), (b if layout[1] == "n" else b.T)
    out = torch.empty((m, n), dtype=dtype, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = tf32
    kernel(a, b, out=out)
    torch.cuda.synchronize()
    exact = x.double() @ y.double()
    # Half a unit in the last place of the result, and sums in f32 in some order; in tf32 what factors lose.
    lost = 2**-9 + 2**-20 if tf32 else 2**-20
    bound = exact.abs() * (0 if tf32 else 2**-8) + lost * (x.double().abs() @ y.double().abs())
    error = float(((out.double() - exact).abs() / bound).max())
    flops = 2 * m * n * k / 1e12
    ran = [f"{each['name']}/{each['variant']}" for each in kernel.stats()["kernels"] if each["compiled"]]
    ours, theirs = seconds(torch, lambda: kernel(a, b, out=out)), seconds(torch, lambda: torch.mm(x, y, out=out))
    return {
        "layout": layout,
        "size": size,
        "kernel": ran,
        "tflops": flops / ours,
        "torch": flops / theirs,
        "error": error,
    }


def main() -> None:
    """Measure, print, and write."""
    import torch  # pyright: ignore[reportMissingImports]  # no dependency of the project: only a GPU machine has it

    parser = argparse.ArgumentParser(description="Products by the matrix instructions of warps.")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--dtype", choices=("bf16", "tf32"), default="bf16")
    parser.add_argument("--arch")
    arguments = parser.parse_args()
    info = device().info
    arch, found = arguments.arch or info.arch.rstrip("a"), list[dict[str, Any]]()
    print(f"{info.name}, lowered for {arch}, {arguments.dtype}")
    for size in arguments.sizes:
        for layout in TEXTS:
            row = measure(torch, layout, size, arch, arguments.dtype == "tf32")
            found.append(row)
            print(
                f"{size} {layout} {row['tflops']:7.1f} TFLOP/s, torch {row['torch']:7.1f}, error {row['error']:.3f} of "
                f"the bound, {', '.join(row['kernel'])}",
                flush=True,
            )
    if arguments.json is not None:
        arguments.json.write_text(
            json.dumps({"gpu": info.name, "arch": arch, "dtype": arguments.dtype, "rows": found}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
