"""The command line of `tilewright`. Imports neither xDSL nor NumPy: --help is instant."""

from __future__ import annotations

import argparse
from typing import Literal, NoReturn

from tilewright.diagnostics import TilewrightError

BACKENDS = ("auto", "cuda", "cpu", "sim", "reference")
LANES = ("ordinary", "special")

_EPILOG = """examples:
  tilewright run softmax.mlir                            choose sizes, make inputs, run, print shapes and times
  tilewright run softmax.mlir --dim M=100 --check        ... with one size given, compared with the reference
  tilewright run gemm.mlir --input a.npy --input b.npy --output results --backend sim
  tilewright run gemm.mlir --dim M=100 --bisect-shapes   which symbolic size a wrong result comes from
  tilewright compile gemm.mlir --arch sm_90a -o gemm     plan, CUDA source, cubins and a manifest
  tilewright explain-shapes softmax.mlir                 shapes, symbols, and which checks a call makes
  tilewright fuzz --pass vectorise --time 60             random programs, before and after a pass
  tilewright bench gemm --peers cublas,triton            speed of matmul, side by side in one process
  tilewright doctor                                      what this machine has, and what to do about the rest
  tilewright cache stats                                 the folder of compiled kernels
"""


class CliArguments(argparse.Namespace):
    """The parsed command line, typed. A field is there only for the commands that have it."""

    command: str | None
    debug: bool
    version: bool
    file: str
    entry: str | None
    arch: str | None
    dims: list[str]
    inputs: list[str]
    seed: int
    backend: str
    check: bool
    bisect_shapes: bool
    force: bool
    output: str | None
    source_only: bool
    action: str
    lane: Literal["ordinary", "special", "both"]
    passes: list[str]
    load: list[str]
    examples: int | None
    time: float | None
    workers: int | None
    fuzz_seed: int | None
    level: str | None
    after: str | None
    replay: str | None
    corpus: str | None
    failures_dir: str
    peers: str
    shapes: str
    dtypes: str
    part: str
    resume: bool
    time_limit: float | None
    folder: str


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise TilewrightError(f"{message} (see {self.prog} --help)")


def make_parser() -> argparse.ArgumentParser:
    """The parser; it raises TilewrightError where argparse would exit with its own text."""
    parser = _Parser(
        prog="tilewright",
        description="A GPU kernel compiler for symbolic shapes: runs and compiles programs given as IR text.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    _debug(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_run(commands.add_parser("run", help="run a program on given or made-up inputs", allow_abbrev=False))
    _add_compile(commands.add_parser("compile", help="compile a program ahead of time", allow_abbrev=False))
    _program(
        commands.add_parser("explain-shapes", help="say what is known of every shape, and why", allow_abbrev=False)
    )
    _add_fuzz(commands.add_parser("fuzz", help="put passes to random programs, before and after", allow_abbrev=False))
    _add_bench(
        commands.add_parser("bench", help="measure compiled products against cuBLAS and Triton", allow_abbrev=False)
    )
    _debug(commands.add_parser("doctor", help="say what this machine has, and what to do about the rest"))
    cache = commands.add_parser("cache", help="look after the folder of compiled kernels", allow_abbrev=False)
    cache.add_argument("action", choices=("stats", "verify", "clear"), help="what to do")
    _debug(cache)
    return parser


def _debug(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the Python traceback of an error"
    )


def _program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="IR text; - is standard input")
    parser.add_argument("--entry", metavar="NAME", help="the function; needed where several are public")
    _debug(parser)


def _add_run(parser: argparse.ArgumentParser) -> None:
    _program(parser)
    add = parser.add_argument
    add(
        "--dim", dest="dims", action="append", default=[], metavar="M=100",
        help="size of a symbol, repeatable; the others take their first likely size, else the least that is "
        "admissible from 64 up",
    )  # fmt: skip
    add(
        "--input", dest="inputs", action="append", default=[], metavar="X.npy",
        help="array of the next argument, repeatable; arguments without one are random",
    )  # fmt: skip
    add("--seed", type=int, default=0, metavar="N", help="of the random arguments (default 0)")
    add(
        "--lane", choices=LANES, default="ordinary",
        help="values of the random arguments: ordinary numbers, or NaN, infinities, -0.0 and the like among them",
    )  # fmt: skip
    add(
        "--backend", choices=BACKENDS, default="auto",
        help="what runs it (default auto: cuda, else sim, or cpu where there is much to do and a C++ compiler)",
    )  # fmt: skip
    add("--arch", metavar="SM", help="architecture to lower for, as sm_90a (default: the GPU's, else sm_80)")
    add("--check", action="store_true", help="compare with the reference: PASS, or FAIL and exit code 1")
    add(
        "--bisect-shapes", dest="bisect_shapes", action="store_true",
        help="run with sizes as constants, then one symbolic at a time, then all, and name the first that differs",
    )  # fmt: skip
    add("--output", metavar="DIR", help="write the results there as out0.npy, out1.npy, ...")
    add("--force", action="store_true", help="simulate however long it takes")


def _add_compile(parser: argparse.ArgumentParser) -> None:
    _program(parser)
    add = parser.add_argument
    add("--arch", metavar="SM", required=True, help="architecture, as sm_80 or sm_90a")
    add("-o", "--output", metavar="DIR", required=True, help="folder for plan, sources, cubins and manifest.json")
    add("--source-only", action="store_true", help="leave the cubins out, so that NVRTC is not needed")


def _add_fuzz(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--pass", dest="passes", action="append", default=[], metavar="P",
        help="a pass with its options, or several with commas as one step; also reference-sim and sim-cpu; repeatable "
        "(default: every pass and lowering, and both of these)",
    )  # fmt: skip
    add("--load", action="append", default=[], metavar="FILE.py", help="import passes from a file; repeatable")
    add("--level", choices=("tensor", "tile", "simt", "any"), help="only the passes of this level")
    add("--after", metavar="PASS", help="try passes after this one of the pipelines, not at their usual places")
    add("--examples", type=int, metavar="N", help="programs for each subject (default 100, or as --time allows)")
    add("--time", type=float, metavar="SECONDS", help="end after so many seconds")
    add("--seed", dest="fuzz_seed", type=int, metavar="S", help="of the programs (default: a new one, which is shown)")
    add("--workers", type=int, metavar="N", help="processes (default: one a core)")
    add("--lane", choices=(*LANES, "both"), default="both", help="values of the inputs (default both)")
    add("--replay", metavar="FILE", help="only run the program of a failure file again, against what it names")
    add("--corpus", metavar="DIR", help="first run the .mlir files of a folder")
    add("--failures-dir", default=".tilewright/failures", metavar="DIR", help="where failing programs are written")
    add("--output", metavar="FILE", help="write the summary as JSON")
    _debug(parser)


def _add_bench(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    gemm = actions.add_parser("gemm", help="matmul against its peers, outputs compared", allow_abbrev=False)
    add = gemm.add_argument
    add(
        "--peers",
        default="cublas,triton",
        metavar="P,...",
        help="cublas, triton, tilelang, numpy (off the GPU) or none (default cublas,triton)",
    )
    add(
        "--shapes", default="table,odd,fused", metavar="S,...",
        help="sets (table, odd, fused, curve, random, tilelang) and shapes MxNxK (default table,odd,fused)",
    )  # fmt: skip
    add("--dtypes", default="bf16", metavar="D,...", help="bf16, f16, f32 and tf32 (default bf16)")
    add("--part", default="1/1", metavar="N/M", help="only the N-th of M parts; each has its own file")
    add("--resume", action="store_true", help="keep what the part's file has, and measure the rest")
    add("--time-limit", dest="time_limit", type=float, metavar="SECONDS", help="begin no other shape after that")
    add("--seed", type=int, default=0, metavar="N", help="of the order of systems in each round (default 0)")
    add(
        "--backend", choices=[b for b in BACKENDS if b != "auto"], default="cuda",
        help="cuda (default); others only show that it works, with numpy as a peer",
    )  # fmt: skip
    add("--output", default="benchmarks/results", metavar="DIR", help="folder of the JSON (default benchmarks/results)")
    _debug(gemm)
    report = actions.add_parser("report", help="a Markdown page and plots of what was measured", allow_abbrev=False)
    report.add_argument("folder", metavar="DIR", help="folder of the JSON files")
    report.add_argument(
        "-o", "--output", default="docs/performance.md", metavar="FILE", help="the page (default docs/performance.md)"
    )
    _debug(report)
