"""What the compiler and the simulator cost on a CPU.

    python -m benchmarks.cpu [--output benchmarks/results/cpu-DATE.json] [--suite]

Each time is given as wall time and as processor time of the process (and its children, for commands), in milliseconds
or seconds as its name says: the median and the least of the runs. On a machine that others load, the least processor
time is the figure to compare. `--suite` adds `make demo` and `make test`, which take minutes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xdsl
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.transforms.canonicalize import CanonicalizePass

import tilewright as tw
from benchmarks.variants import product
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import KernelOp
from tilewright.lowering import pipelines
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.nvrtc import compile_cubin, nvrtc_unavailable_reason
from tilewright.runtime.plan import Site
from tilewright.runtime.sim.buffers import Buffer
from tilewright.runtime.sim.launch import compile_kernel, overlap
from tilewright.runtime.variants import CompiledEntry

TENSOR_CORE_VARIANTS = (
    "tile128x256/vector32",
    "tile128x256/rows32",
    "tile128x256/rows64",
    "tile64x64/vector32",
    "split64x128_parts/general32",
    "split64x128_sum/general32",
    "pad0/general32",
)
"""Those of a product that streams of calls want most, and the one that takes NVRTC longest."""
THREE_LINES = "func.func @f(%a: i32) -> i32 {\n  func.return %a : i32\n}\n"
BLOCKS, THREADS, INSTRUCTIONS = 8, 64, 60
TARGETS = {
    "tilewright-opt on three lines": "at most 0.6 s",
    "ops of the symbolic matmul at the simt level": "at most 400",
    "matmul: module to source of one variant": "at most 80 ms",
    "random kernel, all checks": "at most 20 ms",
    "tensor-core product: pipeline to source of one variant, warm": "at most 150 ms",
    "tensor-core product: NVRTC for the largest variant": "at most 1.6 s",
}


def timed(call: Callable[[], object], repeats: int = 20) -> dict[str, float]:
    """Times of `call` in this process, in milliseconds; the first call, which fills caches, is given apart."""
    start = time.perf_counter()
    call()
    first = 1000 * (time.perf_counter() - start)
    wall: list[float] = []
    processor: list[float] = []
    for _ in range(repeats):
        start, used = time.perf_counter(), time.process_time()
        call()
        processor.append(1000 * (time.process_time() - used))
        wall.append(1000 * (time.perf_counter() - start))
    return {"first wall ms": round(first, 2), **summary("ms", wall, processor)}


def summary(unit: str, wall: list[float], processor: list[float]) -> dict[str, float]:
    """Median and least of both, rounded to what repeats."""
    return {
        f"median wall {unit}": round(statistics.median(wall), 2),
        f"median processor {unit}": round(statistics.median(processor), 2),
        f"least wall {unit}": round(min(wall), 2),
        f"least processor {unit}": round(min(processor), 2),
        "runs": len(wall),
    }


def timed_command(command: list[str], repeats: int) -> dict[str, Any]:
    """Times of whole processes, in seconds, with the exit code and the last line that the last of them printed."""
    wall: list[float] = []
    processor: list[float] = []
    code, last = 0, ""
    for _ in range(repeats):
        start, used = time.perf_counter(), children_seconds()
        done = subprocess.run(command, capture_output=True, text=True)
        wall.append(time.perf_counter() - start)
        processor.append(children_seconds() - used)
        code, last = done.returncode, next(iter(reversed(done.stdout.splitlines())), "")
    return {**summary("s", wall, processor), "exit code": code, "last line": last}


def children_seconds() -> float:
    """Processor time of the child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def matmul_module() -> ModuleOp:
    """f32 product [M, K] x [K, N], all sizes symbolic."""
    M, N, K = tw.symbols("M N K")
    a, b = tw.placeholder((M, K), "float32", name="a"), tw.placeholder((K, N), "float32", name="b")
    return tw.build_module(tw.matmul(a, b))


def compile_times() -> dict[str, Any]:
    """From the tensor-level module to CUDA source of the first variant of the plan, without verification and NVRTC.

    Beside it, what xDSL's own parser, verifier and canonicalize pass take for the program at both ends: the tensor
    level, and the simt level that comes out.
    """
    module = matmul_module()

    def whole() -> CompiledEntry:
        entry = CompiledEntry(module, "main", "sm_80")
        emit_kernel(entry.lower(entry.plan.sites[0]).kernel, "sm_80")
        return entry

    entry = whole()
    lowered = entry.lower(entry.plan.sites[0])

    def tensor_half() -> None:
        fresh = module.clone()
        pipelines.run(fresh, make_context(), pipelines.TENSOR)

    def stock(text: str) -> Callable[[], None]:
        def run() -> None:
            context = make_context()
            parsed = Parser(context, text).parse_module()
            parsed.verify()
            CanonicalizePass().apply(context, parsed)

        return run

    return {
        "schedules and variants": list(entry.sites),
        "variant": lowered.name,
        "ops at the simt level": sum(1 for _ in lowered.kernel.walk()),
        "ops of the module at the tensor level": sum(1 for _ in module.walk()),
        "module to source": timed(whole),
        "of that, the tensor half": timed(tensor_half),
        "xDSL parses, verifies and canonicalises the tensor level": timed(stock(str(module))),
        "xDSL parses, verifies and canonicalises the simt level": timed(stock(str(lowered.module))),
    }


def tensor_core_times() -> dict[str, Any]:
    """A bf16 product on sm_90a: the plan once a program, each variant from tiles to source, and NVRTC where it is."""
    module = product("bf16", "sm_90a").module

    def plan() -> CompiledEntry:
        entry = CompiledEntry(module, "main", "sm_90a")
        assert entry.plan.sites
        return entry

    entry = plan()
    found: dict[str, Any] = {"the plan, once a program": timed(plan), "kernels": {}}
    for name in TENSOR_CORE_VARIANTS:
        site = entry.sites[f"main_0_{name}"]

        def to_source(site: Site = site) -> str:
            fresh = CompiledEntry(module, "main", "sm_90a")
            fresh._planned = entry.planned  # pyright: ignore[reportPrivateUsage]  # only the variant is timed
            return emit_kernel(fresh.lower(site).kernel, "sm_90a")

        times: dict[str, Any] = {"pipeline to source": timed(to_source, 5)}
        if nvrtc_unavailable_reason() is None:
            source = to_source()
            times["NVRTC"] = timed(partial(compile_cubin, source, "sm_90a"), 2)
        found["kernels"][name] = times
    return found


def random_kernel(chance: random.Random) -> str:
    """Up to INSTRUCTIONS ops a thread: arithmetic, loads and stores of both memories, exchanges, and a loop."""
    lines = [
        "%t = simt.tid",
        "%b = simt.block_id x",
        "%c0 = arith.constant 0 : i32",
        "%c1 = arith.constant 1 : i32",
        "%c3 = arith.constant 3 : i32",
        f"%last = arith.constant {THREADS - 1} : i32",
        f"%n = arith.constant {THREADS} : i32",
        "%row = arith.muli %b, %n : i32",
        "%at = arith.addi %row, %t : i32",
        "%mirror = arith.subi %last, %t : i32",
        f"%s = simt.shared at 0 : !simt.smem<[{THREADS}], f32>",
        "%r = simt.regs.alloc : !simt.regs<[2], f32>",
        "simt.load %x[%at] into %r[%c0] width 1",
        "%f0 = simt.regs.load %r[%c0]",
    ]
    executed, floats = len(lines), ["%f0"]
    while executed < INSTRUCTIONS - 12:
        kind = chance.choice(["float", "float", "float", "exchange", "shuffle", "loop"])
        name = f"%f{len(lines)}"
        if kind == "float":
            op = chance.choice(["addf", "subf", "mulf", "maximumf"])
            lines.append(f"{name} = arith.{op} {chance.choice(floats)}, {chance.choice(floats)} : f32")
            executed += 1
        elif kind == "shuffle":
            lines.append(f"{name} = simt.shuffle xor {chance.choice(floats)}, {chance.choice([1, 2, 4, 8, 16])}")
            executed += 1
        elif kind == "exchange":
            lines += [
                f"simt.regs.store {chance.choice(floats)} to %r[%c0]",
                "simt.store %r[%c0] to %s[%t] width 1",
                "simt.barrier",
                "simt.load %s[%mirror] into %r[%c1] width 1",
                "simt.barrier",
                f"{name} = simt.regs.load %r[%c1]",
            ]
            executed += 6
        else:
            lines += [
                f"{name} = scf.for %i{len(lines)} = %c0 to %c3 step %c1 iter_args(%a{len(lines)} = "
                f"{chance.choice(floats)}) -> (f32) : i32 {{",
                f"  %g{len(lines)} = arith.addf %a{len(lines)}, {chance.choice(floats)} : f32",
                f"  scf.yield %g{len(lines)} : f32",
                "}",
            ]
            executed += 1 + 3 * 2
        floats.append(name)
    lines += [f"simt.regs.store {floats[-1]} to %r[%c0]", "simt.store %r[%c0] to %y[%at] width 1"]
    body = "\n  ".join(lines)
    arguments = "%x : !simt.global<f32>, %y : !simt.global<f32>"
    return f"simt.kernel @k({arguments}) threads {THREADS} smem {4 * THREADS} grid [{BLOCKS}] {{\n  {body}\n}}\n"


def simulator_times(kernels: int = 20) -> dict[str, Any]:
    """Random kernels under all checks: made ready and run, and run again. Each kernel counts once, with its median of
    three."""
    chance = random.Random(1)
    context = make_context()
    first: list[float] = []
    again: list[float] = []
    ops: list[int] = []
    for _ in range(kernels + 1):
        module = parse_module(random_kernel(chance), "random.mlir", context)
        module.verify()
        kernel = next(op for op in module.ops if isinstance(op, KernelOp))
        ops.append(sum(1 for _ in kernel.walk()) - 1)
        x = np.random.default_rng(0).standard_normal(BLOCKS * THREADS, dtype=np.float32)
        buffers = [Buffer(x), Buffer(np.zeros_like(x))]
        ready: list[float] = []
        run: list[float] = []
        for _ in range(3):
            start = time.process_time()
            program = compile_kernel(kernel, "check", aliased=overlap(buffers))
            report = program.run(buffers, [], grid=BLOCKS)
            ready.append(1000 * (time.process_time() - start))
            start = time.process_time()
            program.run(buffers, [], grid=BLOCKS)
            run.append(1000 * (time.process_time() - start))
            if report.diagnostics:
                raise RuntimeError(str(report.diagnostics[0]))
        first.append(statistics.median(ready))
        again.append(statistics.median(run))
    # The first kernel pays for imports.
    first, again = first[1:], again[1:]
    return {
        "blocks": BLOCKS,
        "threads": THREADS,
        "static ops": [min(ops), max(ops)],
        "kernels": kernels,
        "made ready and run, processor ms": {
            "median": round(statistics.median(first), 2),
            "most": round(max(first), 2),
        },
        "run again, processor ms": {"median": round(statistics.median(again), 2), "most": round(max(again), 2)},
    }


def machine() -> dict[str, Any]:
    """What was measured on, and with what."""
    model = "unknown"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": model or platform.processor(),
        "cores": os.cpu_count(),
        "load average": [round(x, 1) for x in os.getloadavg()],
        "system": platform.platform(),
        "python": platform.python_version(),
        "xdsl": str(xdsl.__version__),
        "numpy": str(np.__version__),
        "tilewright": tw.__version__,
        "commit": commit.stdout.strip(),
        "command": "python -m benchmarks.cpu " + " ".join(sys.argv[1:]),
    }


def opt_times() -> dict[str, Any]:
    """`tilewright-opt` on a file of three lines, as a process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "three.mlir")
        file.write_text(THREE_LINES)
        return timed_command([sys.executable, "-m", "tilewright.api.opt.main", str(file)], 10)


def suite_times() -> dict[str, Any]:
    """What `make demo` and `make test` run in an environment that is installed already, once each."""
    return {
        "make demo": timed_command([sys.executable, "-m", "examples.demo"], 1),
        "make test": timed_command([sys.executable, "-m", "pytest", "-q", "-n", "2", "-rs"], 1),
    }


def main() -> int:
    """Prints the results as JSON, and writes them with --output."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output")
    parser.add_argument("--suite", action="store_true", help="also time the demo and the whole test suite")
    arguments = parser.parse_args()
    results: dict[str, Any] = {
        "machine": machine(),
        "targets": TARGETS,
        "tilewright-opt on three lines": opt_times(),
        "symbolic f32 matmul": compile_times(),
        "tensor-core product": tensor_core_times(),
        "random kernel in the simulator, all checks": simulator_times(),
    }
    if arguments.suite:
        results["suite"] = suite_times()
    text = json.dumps(results, indent=1)
    print(text)
    if arguments.output:
        Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
        Path(arguments.output).write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
