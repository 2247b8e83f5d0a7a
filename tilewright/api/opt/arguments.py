"""The command line of `tilewright-opt`, named as mlir-opt names things. Imports no xDSL: --help is instant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.suggest import did_you_mean

_DESCRIPTION = "Parse IR, run passes over it, and print the result, or hand it to a target such as cuda."
_EPILOG = """examples:
  tilewright-opt softmax.mlir                                   parse, verify and print
  tilewright-opt softmax.mlir -p 'canonicalize,lin-to-tile'     run two passes
  tilewright-opt gemm.mlir -p 'builtin.module(cse)' --print-ir-after-all
  tilewright-opt scheduled.mlir -p tile-to-simt -t 'cuda{arch=sm_90a}' -o gemm.cu
"""


class OptArguments(argparse.Namespace):
    """The parsed command line, typed."""

    file: str
    passes: str
    target: str | None
    output: str
    help: bool
    version: bool
    list_passes: bool
    list_dialects: bool
    list_targets: bool
    print_op_generic: bool
    print_debuginfo: bool
    print_ir_before_all: bool
    print_ir_after_all: bool
    verify_each: bool
    split_input_file: bool
    verify_diagnostics: bool
    allow_unregistered_dialect: bool
    remarks: bool
    timing: bool
    debug: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise TilewrightError(f"{message} (see --help)")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; it raises TilewrightError where argparse would exit."""
    parser = _Parser(
        prog="tilewright-opt",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", nargs="?", default="-", metavar="FILE", help="IR text; default: -, standard input")
    add("-p", "--pass-pipeline", dest="passes", default="", metavar="PIPELINE", help="passes: 'a{option=1},b'")
    add("-t", "--target", default=None, metavar="TARGET", help="emit with a target instead of printing IR")
    add("-o", "--output", default="-", metavar="FILE", help="write the result there; default: standard output")

    show = parser.add_argument_group("what is shown")
    show.add_argument("--print-op-generic", action="store_true", help="print operations in generic form")
    show.add_argument("--print-debuginfo", action="store_true", help="print loc(...) with every operation")
    show.add_argument(
        "--print-ir-before-all", action="store_true", help="dump the IR before each pass on standard error"
    )
    show.add_argument("--print-ir-after-all", action="store_true", help="dump the IR after each pass on standard error")
    show.add_argument(
        "--remarks", action="store_true", help="say on standard error what passes did, or declined to do, and why"
    )
    show.add_argument("--timing", action="store_true", help="say on standard error where the time went")
    show.add_argument("--debug", action="store_true", help="show the Python traceback of an error")

    check = parser.add_argument_group("what is checked")
    check.add_argument(
        "--verify-each",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="verify the IR after every pass (default); without, after the last only",
    )
    check.add_argument(
        "--split-input-file", action="store_true", help="take the parts between '// -----' lines as files apart"
    )
    check.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="the errors must be those that '// expected-error@+1 {{text}}' comments foretell",
    )
    check.add_argument(
        "--allow-unregistered-dialect", action="store_true", help="accept unknown operations in generic form"
    )

    about = parser.add_argument_group("what there is")
    about.add_argument("--list-passes", action="store_true", help="list the passes")
    about.add_argument("--list-dialects", action="store_true", help="list the dialects")
    about.add_argument("--list-targets", action="store_true", help="list the targets")
    about.add_argument("-h", "--help", action="store_true", help="show this text")
    about.add_argument("--version", action="store_true", help="show the version")
    return parser


def parse_arguments(argv: Sequence[str]) -> OptArguments:
    """Return the command line as OptArguments; TilewrightError for an unknown option, with the nearest known one."""
    parser = make_parser()
    arguments, unknown = parser.parse_known_args(list(argv), namespace=OptArguments())
    for argument in unknown:
        if argument.startswith("-"):
            actions = parser._actions  # pyright: ignore[reportPrivateUsage]  # argparse has no public list of its options
            known = [option for action in actions for option in action.option_strings]
            name = argument.split("=", 1)[0]
            raise TilewrightError(f"unknown option '{name}'{did_you_mean(name, known)} (see --help)")
        raise TilewrightError(f"one file is expected, got '{arguments.file}' and '{argument}'")
    return arguments
