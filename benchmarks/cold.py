"""How long the first result of a cold process takes, from when the CUDA context stands. Needs a GPU and PyTorch.

    python -m benchmarks.cold [--sizes 4096x4096x4096] [--runs 3] [--output FILE.json]

Each run is a process of its own: it makes the context through PyTorch and two operands, then imports Tilewright,
compiles a bf16 product and computes it once, up to the end of the kernel. First with an empty cache of kernels, then
with what that run left there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any


def child(sizes: tuple[int, int, int]) -> dict[str, float]:
    """Seconds of the stages in this process."""
    torch: Any = import_module("torch")
    m, n, k = sizes
    a, b = (torch.randn(*shape, device="cuda").to(torch.bfloat16) for shape in ((m, k), (k, n)))
    torch.cuda.synchronize()
    started = time.perf_counter()
    tw: Any = import_module("tilewright")
    rows, columns, depth = tw.symbols("M N K")
    operands = tw.placeholder((rows, depth), "bfloat16"), tw.placeholder((depth, columns), "bfloat16")
    kernel = tw.compile(tw.matmul(*operands), target="cuda")
    compiled = time.perf_counter()
    kernel(a, b)
    torch.cuda.synchronize()
    first = time.perf_counter()
    return {
        "import and program": round(compiled - started, 3),
        "plan, kernel and result": round(first - compiled, 3),
        "first result": round(first - started, 3),
    }


def main() -> int:
    """Print the seconds of each run as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", default="4096x4096x4096")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    m, n, k = (int(word) for word in arguments.sizes.split("x"))
    if arguments.child:
        print(json.dumps(child((m, n, k))))
        return 0
    found: dict[str, Any] = {"sizes": [m, n, k], "target": "first result of a cold process at most 2.5 s"}
    for _ in range(arguments.runs):
        with tempfile.TemporaryDirectory() as folder:
            for cache in ("empty cache", "warm cache"):
                done = subprocess.run(
                    [sys.executable, __file__, "--child", "--sizes", arguments.sizes],
                    env=os.environ | {"TILEWRIGHT_CACHE_DIR": folder},
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                found.setdefault(cache, []).append(json.loads(done.stdout.splitlines()[-1]))
    text = json.dumps(found, indent=1)
    print(text)
    if arguments.output:
        Path(arguments.output).write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
