"""Access patterns: what the simulator counts on a kernel's IR against what Nsight Compute counts on the same kernel.

    python benchmarks/counters.py                # on a GPU machine: compare, write results/ and docs/counters.md
    python benchmarks/counters.py --simulate     # anywhere: the simulator alone, against the rules

A plain script: it needs an installed tilewright and the folder `patterns` beside it. Each pattern is a small simt
kernel (`patterns/*.mlir`, with the pattern's numbers filled in), compiled to CUDA and launched once under `ncu`.
Requests and sectors have to agree exactly; wavefronts of shared memory may be up to 4 percent above the simulator's,
never below: the hardware arbitrates between warps, which costs some. Exits with 1 where a pattern disagrees.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ELEMENTS = 1 << 21
"""Of every buffer: what the pattern that reaches furthest needs, and some."""
SLACK = 256
TOLERANCE = 0.04
"""How far wavefronts may be above the simulator's."""
BYTES = {"f32": 4, "f16": 2}

COUNTERS = {
    "global load requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global load sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global store requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global store sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared load wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared store wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}
"""The metric of Nsight Compute for each thing that is compared. ldmatrix counts as a load from shared memory."""
EXTRA = (
    "smsp__inst_executed_op_shared_ld.sum",
    "smsp__inst_executed_op_shared_st.sum",
    "smsp__inst_executed_op_ldsm.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
)
"""Kept in the results where ncu knows them, and compared with nothing."""


@dataclass(frozen=True)
class Pattern:
    """One kernel. `per_request` is what the rules of the memory system give: sectors or wavefronts of one request."""

    template: str
    name: str
    note: str
    per_request: int
    width: int = 1
    scale: int = 1
    """Elements from one lane to the next."""
    element: str = "f32"
    words: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def counter(self) -> str:
        """The counter that the pattern is about."""
        kind = {"global_load": "global load sectors", "global_store": "global store sectors"}
        return kind.get(self.template, f"shared {'store' if self.template == 'shared_store' else 'load'} wavefronts")

    @property
    def text(self) -> str:
        """The kernel."""
        size = BYTES[self.element]
        in_shared = not self.template.startswith("global")
        words: dict[str, object] = {
            "NAME": self.name, "TYPE": self.element, "WIDTH": self.width, "SCALE": self.scale, "OFFSET": 0, "FLIP": 0,
            "DIVIDE": 1, "KEEP": 31,
            "FROM": 0, "TO": 32, "EVERY": 1, "SWIZZLE": 0, "PER": 16 // size, "COUNT": 32768 // size,
            "ROUND": 32 * 16 // size, "STEP": 4096 // size if in_shared else 64 * 256 * self.scale, **self.words,
        }  # fmt: skip
        masked = {"FROM", "TO", "EVERY"} & set(self.words)
        mask = f"if %m else 0.0 : {self.element}" if self.template.endswith("load") else "if %m"
        words["MASK"] = mask if masked else ""
        text = (HERE / "patterns" / f"{self.template}.mlir").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if not line.startswith("//")]
        # The longest words first: one may be the beginning of another.
        for word in sorted(words, key=len, reverse=True):
            lines = [line.replace(word, str(words[word])) for line in lines]
        return "\n".join(line.rstrip() for line in lines) + "\n"


def global_patterns(template: str, short: str) -> list[Pattern]:
    """Sectors of 32 bytes that a request of 32 lanes touches."""

    def pattern(
        name: str, note: str, sectors: int, width: int = 1, stride: int = 1, element: str = "f32", **words: int
    ):
        return Pattern(template, f"{short}{name}", note, sectors, width, width * stride, element, words)

    return [
        pattern("32_contiguous", "32 bits a lane, contiguous", 4),
        pattern("64_contiguous", "64 bits a lane, contiguous", 8, 2),
        pattern("128_contiguous", "128 bits a lane, contiguous", 16, 4),
        pattern("16_contiguous", "16 bits a lane, contiguous", 2, element="f16"),
        pattern("32_stride_2", "32 bits a lane, every second element", 8, stride=2),
        pattern("32_stride_3", "32 bits a lane, every third element", 12, stride=3),
        pattern("32_stride_32", "32 bits a lane, every 32nd element", 32, stride=32),
        pattern("64_stride_2", "64 bits a lane, every second pair", 16, 2, 2),
        pattern("128_stride_2", "128 bits a lane, every second quadruple", 32, 4, 2),
        pattern("32_off_by_4", "32 bits a lane, contiguous from 4 bytes off", 5, OFFSET=1),
        pattern("64_off_by_8", "64 bits a lane, contiguous from 8 bytes off", 9, 2, OFFSET=2),
        pattern("128_off_by_16", "128 bits a lane, contiguous from 16 bytes off", 17, 4, OFFSET=4),
        pattern("32_reversed", "32 bits a lane, contiguous, lanes in reverse", 4, FLIP=31),
        pattern("32_nine_lanes", "32 bits in lanes 0 to 8", 2, TO=9),
        pattern("32_every_eighth", "32 bits in every eighth lane", 4, EVERY=8),
        pattern("128_second_half", "128 bits in lanes 16 to 31", 8, 4, FROM=16),
    ]


def shared_patterns(template: str, short: str) -> list[Pattern]:
    """Wavefronts of shared memory: 32 banks of 4 bytes, phases of 32, 16 or 8 lanes for 4, 8 and 16 bytes a lane."""

    def pattern(name: str, note: str, wavefronts: int, width: int, scale: int, element: str = "f32", **words: int):
        return Pattern(template, f"{short}{name}", note, wavefronts, width, scale, element, words)

    return [
        pattern("32_contiguous", "32 bits a lane, contiguous", 1, 1, 1),
        pattern("32_two_way", "32 bits a lane, 8 bytes apart: 2 lanes a bank", 2, 1, 2),
        pattern("32_stride_3", "32 bits a lane, 12 bytes apart", 1, 1, 3),
        pattern("32_eight_way", "32 bits a lane, 32 bytes apart: 8 lanes a bank", 8, 1, 8),
        pattern("32_column", "32 bits a lane, a column of 32 x 32 words: 32 lanes a bank", 32, 1, 32),
        pattern("32_padded_column", "32 bits a lane, a column of 32 x 33 words", 1, 1, 33),
        pattern("64_contiguous", "64 bits a lane, contiguous", 2, 2, 2),
        pattern("64_two_way", "64 bits a lane, 16 bytes apart", 4, 2, 4),
        pattern("64_column", "64 bits a lane, 128 bytes apart", 32, 2, 32),
        pattern("64_padded_column", "64 bits a lane, 120 bytes apart", 2, 2, 30),
        pattern("128_contiguous", "128 bits a lane, contiguous", 4, 4, 4),
        pattern("128_two_way", "128 bits a lane, 32 bytes apart", 8, 4, 8),
        pattern("128_column", "128 bits a lane, 128 bytes apart", 32, 4, 32),
        pattern("128_padded_column", "128 bits a lane, 112 bytes apart", 4, 4, 28),
        pattern("16_contiguous", "16 bits a lane, contiguous: 2 lanes a word", 1, 1, 1, "f16"),
        pattern("32_five_lanes", "32 bits in lanes 0 to 4, 128 bytes apart", 5, 1, 32, TO=5),
        pattern("32_even_lanes", "32 bits in every second lane, a column of 32 x 32 words", 16, 1, 32, EVERY=2),
    ]


def ldmatrix(name: str, note: str, wavefronts: int, kind: str, pitch: int, swizzle: int = 0) -> Pattern:
    """Matrices of 8 rows of 16 bytes; a phase of 8 rows for each."""
    words: dict[str, object] = {"KIND": kind, "PITCH": pitch, "SWIZZLE": swizzle}
    return Pattern("ldmatrix", f"ldmatrix_{name}", note, wavefronts, 2 * int(kind[1]), element="f16", words=words)


def patterns() -> list[Pattern]:
    """All patterns, in the order of the table."""
    return [
        *global_patterns("global_load", "ld"),
        Pattern("global_load", "ld32_broadcast", "32 bits, one element for all lanes", 1, words={"DIVIDE": 32}),
        *global_patterns("global_store", "st"),
        *shared_patterns("shared_load", "lds"),
        Pattern("shared_load", "lds32_broadcast", "32 bits, one word for all lanes", 1, 1, 0),
        Pattern("shared_load", "lds64_broadcast", "64 bits, one pair for all lanes", 1, 2, 0),
        Pattern("shared_load", "lds128_broadcast", "128 bits, one quadruple for all lanes", 2, 4, 0),
        Pattern("shared_load", "lds64_two_lanes", "64 bits, 2 lanes read one pair", 1, 2, 2, words={"DIVIDE": 2}),
        Pattern(
            "shared_load", "lds64_two_apart", "64 bits, lanes n and n xor 2 read one pair", 1, 2, 2, words={"KEEP": 13}
        ),
        Pattern(
            "shared_load", "lds128_two_lanes", "128 bits, 2 lanes read one quadruple", 2, 4, 4, words={"DIVIDE": 2}
        ),
        Pattern(
            "shared_load", "lds128_four_lanes", "128 bits, 4 lanes read one quadruple", 2, 4, 4, words={"DIVIDE": 4}
        ),
        *shared_patterns("shared_store", "sts"),
        ldmatrix("x4_pitch_128", "x4, rows 128 bytes apart", 32, "x4", 64),
        ldmatrix("x4_pitch_64", "x4, rows 64 bytes apart", 16, "x4", 32),
        ldmatrix("x4_pitch_32", "x4, rows 32 bytes apart", 8, "x4", 16),
        ldmatrix("x4_padded", "x4, rows 144 bytes apart", 4, "x4", 72),
        ldmatrix("x4_swizzled", "x4, rows 128 bytes apart, chunk xor row mod 8", 4, "x4", 64, 7),
        ldmatrix("x4_trans_swizzled", "the same, transposed", 4, "x4 trans", 64, 7),
        ldmatrix("x2_pitch_128", "x2, rows 128 bytes apart", 16, "x2", 64),
        ldmatrix("x2_padded", "x2, rows 144 bytes apart", 2, "x2", 72),
        ldmatrix("x1_padded", "x1, rows 144 bytes apart", 1, "x1", 72),
    ]


@cache
def kernels() -> dict[str, Any]:
    """The simt kernel of each pattern, by the pattern's name."""
    from tilewright.dialects.parsing import parse_module
    from tilewright.dialects.registry import make_context
    from tilewright.dialects.simt.structure import KernelOp

    text = "\n".join(pattern.text for pattern in patterns())
    module = parse_module(text, "patterns.mlir", make_context())
    module.verify()
    return {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}


def simulated(kernel: Any, level: Any = "count", small: bool = False) -> tuple[dict[str, int], Any]:
    """(what the simulator counts on a kernel, by the names of `COUNTERS`; its report). `small`: 2 blocks, 2 rounds."""
    import numpy as np

    from tilewright.dialects.simt.memory import StoreOp
    from tilewright.runtime.numerics import storage_dtype
    from tilewright.runtime.sim.buffers import Buffer
    from tilewright.runtime.sim.launch import simulate

    buffers = [Buffer(np.zeros(ELEMENTS + SLACK, storage_dtype(p.type.element))) for p in kernel.pointers]
    scalars = [2 if small else p.data.evaluate({}) for p in kernel.params.data]
    blocks = 2 if small else kernel.grid.data.evaluate({})
    report = simulate(kernel, buffers, scalars, grid=blocks, level=level)
    found = dict.fromkeys(COUNTERS, 0)
    for site, counts in report.counts.items():
        kind = f"{site.space} {'store' if site.op_name == StoreOp.name else 'load'}"
        if site.space == "global":
            found[f"{kind} requests"] += counts.requests
            found[f"{kind} sectors"] += counts.sectors
        else:
            found[f"{kind} wavefronts"] += counts.wavefronts
    return found, report


def per_request(pattern: Pattern, report: Any) -> float:
    """Sectors or wavefronts of one request of the access that the pattern is about: the one with most requests."""
    op = "simt.ldmatrix" if pattern.template == "ldmatrix" else f"simt.{pattern.template.rpartition('_')[2]}"
    space = pattern.counter.split()[0]
    (counts,) = sorted(
        (c for site, c in report.counts.items() if site.op_name == op and site.space == space),
        key=lambda c: -c.requests,
    )[:1]
    return counts.sectors_per_request if space == "global" else counts.wavefronts_per_request


# ---- On the GPU ------------------------------------------------------------------------------------------------------


def launch() -> None:
    """Compile all patterns in one go and launch each once. `ncu` runs this."""
    from tilewright.lowering.simt_to_cuda import emit_module, kernel_symbol
    from tilewright.runtime.cuda_driver import device
    from tilewright.runtime.nvrtc import compile_cubin
    from tilewright.runtime.parameters import ParameterLayout

    gpu = device()
    found = kernels()
    source = emit_module(next(iter(found.values())).parent_op(), gpu.info.arch)
    cubin = compile_cubin(source, gpu.info.arch).cubin
    module = gpu.load_module(cubin)
    # Aligned to 256 bytes, so to sectors, as the simulator's addresses are.
    memory = [gpu.allocate(4 * (ELEMENTS + SLACK)) for _ in range(2)]
    for each in memory:
        gpu.fill(each.pointer, 0, 4 * (ELEMENTS + SLACK))
    gpu.synchronize()
    for kernel in found.values():
        pointers = [each.pointer for each in memory[: len(kernel.pointers)]]
        scalars = [p.data.evaluate({}) for p in kernel.params.data]
        kinds = ["ptr"] * len(pointers) + ["i32"] * len(scalars)
        layout = ParameterLayout.from_cubin(cubin, kernel_symbol(kernel), kinds)
        function = module.function(kernel_symbol(kernel), layout)
        grid, threads = kernel.grid.data.evaluate({}), kernel.threads.value.data
        function.launch((grid, 1, 1), threads, kernel.smem.value.data, [*pointers, *scalars])
        gpu.synchronize()


def find_ncu(given: str | None) -> str:
    """The path of Nsight Compute's command line; ends the script where there is none."""
    if given is not None:
        return given
    places = ["/usr/local/cuda*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu", "/usr/local/NVIDIA-Nsight-Compute*/ncu"]
    found = [
        shutil.which("ncu"),
        *(str(p) for place in places for p in sorted(Path("/").glob(place[1:]), reverse=True)),
    ]
    path = next((each for each in found if each), None)
    if path is None:
        sys.exit("ncu: neither on PATH nor under /usr/local/cuda or /opt/nvidia: give its path with --ncu")
    return path


def known_metrics(ncu: str) -> set[str] | None:
    """Names without suffix of the metrics that this GPU has; None where ncu does not say."""
    try:
        done = subprocess.run([ncu, "--query-metrics"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {line.split()[0] for line in done.stdout.splitlines() if "__" in line.split(" ")[0]} or None


def profile(ncu: str) -> tuple[list[dict[str, str]], list[str]]:
    """(rows of ncu's table, the command line); ends the script with ncu's words where it gives none."""
    known = known_metrics(ncu)
    extra = [m for m in EXTRA if known is not None and m.rpartition(".")[0] in known]
    command = [
        ncu, "--clock-control", "none", "--target-processes", "all", "--kernel-name-base", "function",
        "--kernel-name", "regex:^tw_", "--csv", "--page", "raw", "--print-units", "base",
        "--metrics", ",".join([*COUNTERS.values(), *extra]), sys.executable, str(Path(__file__).resolve()), "--launch",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)
    words = done.stdout + done.stderr
    if "ERR_NVGPUCTRPERM" in words:
        sys.exit("ncu may not read the GPU's counters here (ERR_NVGPUCTRPERM): run as root, or let the driver allow it")
    rows = read_table(done.stdout)
    if done.returncode or not rows:
        tail = "\n".join(words.strip().splitlines()[-25:])
        sys.exit(f"ncu ended with {done.returncode} and {len(rows)} kernels:\n{tail}")
    return rows, command


def read_table(text: str) -> list[dict[str, str]]:
    """The rows of `ncu --csv --page raw`: column name to text. Above the header stand ncu's own lines, below units."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    table = list(csv.reader(io.StringIO("\n".join(line for line in lines[start:] if line.startswith('"')))))
    header = table[0]
    rows = [dict(zip(header, row, strict=False)) for row in table[1:]]
    return [row for row in rows if row.get("ID", "").isdigit()]


def number(text: str | None) -> int | None:
    """A counter's value as ncu writes it, with or without separators; None where it is none."""
    try:
        return None if text is None else round(float(text.replace(",", "")))
    except ValueError:
        return None


def measured(rows: Sequence[Mapping[str, str]], symbols: Mapping[str, str]) -> dict[str, dict[str, int | None]]:
    """By pattern, by metric: what ncu counted. `symbols` has the name in the cubin of each pattern."""
    by_symbol = {symbol: name for name, symbol in symbols.items()}
    found: dict[str, dict[str, int | None]] = {}
    for row in rows:
        name = by_symbol.get(row.get("Kernel Name", "").split("(")[0].strip())
        if name is not None:
            found[name] = {m: number(row[m]) for m in (*COUNTERS.values(), *EXTRA) if m in row}
    return found


def hardware_counts(metrics: Mapping[str, int | None]) -> dict[str, int | None]:
    """The counters by the names of `COUNTERS`."""
    return {name: metrics.get(metric) for name, metric in COUNTERS.items()}


def disagreement(counter: str, expected: int, got: int | None) -> str | None:
    """What is wrong with the hardware's count, or None."""
    if got is None:
        return f"{counter}: not measured"
    if not counter.endswith("wavefronts"):
        return None if got == expected else f"{counter}: simulator {expected}, hardware {got}"
    if got < expected:
        return f"{counter}: simulator {expected}, hardware {got}: below"
    # One wavefront here and there is no percentage.
    if got > expected * (1 + TOLERANCE) and got > expected + 64:
        above = f"{100 * (got / expected - 1):.1f} % above" if expected else "above"
        return f"{counter}: simulator {expected}, hardware {got}: {above}"
    return None


# ---- Results ---------------------------------------------------------------------------------------------------------


def markdown(records: Sequence[Mapping[str, Any]], about: Mapping[str, str]) -> str:
    """The page with the table."""
    agree = sum(not r["disagreements"] for r in records)
    lines = [
        "# Counters: the simulator against Nsight Compute",
        "",
        f"{agree} of {len(records)} access patterns agree on one {about['gpu']} ({about['date']}): requests and",
        f"sectors exactly, wavefronts of shared memory at most {100 * TOLERANCE:.0f} % above the simulator's and never",
        "below. Each pattern is a small simt kernel (`benchmarks/patterns/`) that the simulator counts and that the",
        "GPU runs, compiled from the same IR. All counters of a kernel are compared; the table has the one that the",
        "pattern is about. Rule: its sectors (global) or wavefronts (shared) a request by `runtime/sim/counting.py`.",
        "",
        "    python benchmarks/counters.py",
        "",
        "which runs each kernel once under",
        "",
        f"    {about['command']}",
        "",
        "| pattern | what | rule | counter | simulator | hardware | ratio | agrees |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for r in records:
        sim, hw = r["simulator"][r["counter"]], r["hardware"][r["counter"]]
        cells = (
            r["name"], r["note"], r["per_request"], r["counter"], f"{sim:,}", "" if hw is None else f"{hw:,}",
            f"{hw / sim:.4f}" if hw and sim else "", "; ".join(r["disagreements"]) or "yes",
        )  # fmt: skip
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def compare(ncu: str) -> tuple[list[dict[str, Any]], list[str]]:
    """(a record for each pattern, the command line)."""
    from tilewright.lowering.simt_to_cuda import kernel_symbol

    rows, command = profile(ncu)
    found = kernels()
    counted = measured(rows, {name: kernel_symbol(kernel) for name, kernel in found.items()})
    records: list[dict[str, Any]] = []
    for pattern in patterns():
        expected, _ = simulated(found[pattern.name])
        metrics = counted.get(pattern.name, {})
        hardware = hardware_counts(metrics)
        wrong = [d for c in COUNTERS if (d := disagreement(c, expected[c], hardware[c])) is not None]
        records.append({
            "name": pattern.name, "note": pattern.note, "per_request": pattern.per_request, "counter": pattern.counter,
            "simulator": expected, "hardware": hardware, "metrics": metrics, "disagreements": wrong,
        })  # fmt: skip
    return records, command


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulate", action="store_true", help="no GPU: print what the simulator counts")
    parser.add_argument("--ncu", help="path of ncu")
    parser.add_argument("--output", type=Path, help="JSON (default: results/counters-<gpu>-<date>.json beside this)")
    parser.add_argument("--table", type=Path, help="Markdown (default: docs/counters.md of this checkout)")
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.launch:
        launch()
        return 0
    if args.simulate:
        wrong = 0
        for pattern in patterns():
            counts, report = simulated(kernels()[pattern.name])
            got = per_request(pattern, report)
            wrong += got != pattern.per_request
            used = {name: n for name, n in counts.items() if n}
            print(f"{pattern.name}: {got:g} a request (rule {pattern.per_request}); {used}")
        return int(wrong > 0)
    from tilewright.runtime.cuda_driver import device

    ncu = find_ncu(args.ncu)
    gpu = device().info.name
    records, command = compare(ncu)
    version = (
        subprocess.run([ncu, "--version"], capture_output=True, text=True, check=False).stdout.strip().splitlines()
    )
    shown = " ".join(["ncu", *command[1:]]).replace(sys.executable, "python").replace(str(HERE.parent) + "/", "")
    about = {
        "gpu": gpu, "date": datetime.date.today().isoformat(), "command": shown, "ncu": version[-1] if version else "",
        "python": platform.python_version(),
    }  # fmt: skip
    short = "".join(c if c.isalnum() else "-" for c in gpu.lower().replace("nvidia ", "")).strip("-")
    output = args.output or HERE / "results" / f"counters-{short}-{about['date']}.json"
    table = args.table or HERE.parent / "docs" / "counters.md"
    for path, text in (
        (output, json.dumps({**about, "patterns": records}, indent=1) + "\n"),
        (table, markdown(records, about)),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    bad = [r for r in records if r["disagreements"]]
    for r in bad:
        print(f"{r['name']}: {'; '.join(r['disagreements'])}")
    print(f"{len(records) - len(bad)} of {len(records)} patterns agree")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
