"""The command line of `tilewright-opt`, named as mlir-opt names things. Imports no xDSL: --help is instant."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NoReturn

from tilewright.api.opt.words import sort_words
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.suggest import did_you_mean

_DESCRIPTION = "Parse IR, run passes over it, and print the result, or hand it to a target such as cuda."
_EPILOG = """examples:
  tilewright-opt softmax.mlir                                   parse, verify and print
  tilewright-opt softmax.mlir -p 'canonicalize,lin-to-tile'     run two passes
  tilewright-opt gemm.mlir -p 'builtin.module(cse)' --print-ir-after-all
  tilewright-opt gemm.mlir -p 'func.func(cse),lin-to-tile' --crash-reproducer=bug.mlir
  tilewright-opt scheduled.mlir -p tile-to-simt -t 'cuda{arch=sm_90a}' -o gemm.cu
  tilewright-opt softmax.mlir --load my_pass.py --cse --my-pass='rounds=2'

mlir-opt's spellings are understood: -one-dash, --mlir-print-ir-after-all, --pass-name='option=1' for each pass.
"""


class OptArguments(argparse.Namespace):
    """The parsed command line, typed."""

    file: str
    passes: str
    bare_passes: list[tuple[str, str, str]]
    """Words such as `--cse` that may be passes: the word, the name, the text of the options."""
    target: str | None
    output: str
    load: list[str]
    run_reproducer: bool
    crash_reproducer: str | None
    help: bool
    version: bool
    help_pass: list[str]
    list_passes: str | None
    list_dialects: bool
    list_targets: bool
    print_op_generic: bool
    print_debuginfo: bool
    dump_pass_pipeline: bool
    print_ir_before: list[str]
    print_ir_after: list[str]
    print_ir_before_all: bool
    print_ir_after_all: bool
    print_ir_after_change: bool
    print_ir_after_failure: bool
    print_ir_module_scope: bool
    print_ir_tree_dir: str | None
    verify_each: bool
    split_input_file: bool
    verify_diagnostics: bool
    allow_unregistered_dialect: bool
    remarks: bool
    timing: bool
    statistics: bool
    debug: bool


_NAMES: dict[str, Any] = {"action": "append", "default": [], "metavar": "PASS,..."}
"""How an option that takes names of passes is declared; argparse copies the list before it appends."""


class _Once(argparse.Action):
    """Stores a value, and refuses a second one and an empty one: the one that lost would be missed."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest, None) is not self.default:
            parser.error(f"option '{option_string}' is given twice")
        if not values and self.dest != "passes":
            parser.error(f"option '{option_string}' needs a value")
        setattr(namespace, self.dest, values)


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
    add(
        "-p",
        "--pass-pipeline",
        action=_Once,
        dest="passes",
        default="",
        metavar="PIPELINE",
        help="passes: 'a{option=1},b'",
    )
    add(
        "-t", "--target", action=_Once, default=None, metavar="TARGET", help="emit with a target instead of printing IR"
    )
    add(
        "-o",
        "--output",
        action=_Once,
        default="-",
        metavar="FILE",
        help="write the result there; default: standard output",
    )
    add("--load", action="append", default=[], metavar="FILE.py", help="run a Python file that registers passes")

    show = parser.add_argument_group("what is shown")
    show.add_argument("--print-op-generic", action="store_true", help="print operations in generic form")
    show.add_argument("--print-debuginfo", action="store_true", help="print loc(...) with every operation")
    show.add_argument("--print-ir-before", **_NAMES, help="dump the IR before these passes on standard error")
    show.add_argument("--print-ir-after", **_NAMES, help="dump the IR after these passes on standard error")
    show.add_argument("--print-ir-before-all", action="store_true", help="dump the IR before each pass")
    show.add_argument("--print-ir-after-all", action="store_true", help="dump the IR after each pass")
    show.add_argument("--print-ir-after-change", action="store_true", help="... only where it changed the text")
    show.add_argument("--print-ir-after-failure", action="store_true", help="... only where it failed")
    show.add_argument(
        "--print-ir-module-scope", action="store_true", help="dump the module where a pass runs on one function"
    )
    show.add_argument(
        "--print-ir-tree-dir", action=_Once, metavar="DIR", help="dump into numbered files below DIR instead"
    )
    show.add_argument(
        "--dump-pass-pipeline", action="store_true", help="print the pipeline with all options on standard error"
    )
    show.add_argument(
        "--remarks", action="store_true", help="say on standard error what passes did, or declined to do, and why"
    )
    show.add_argument("--timing", action="store_true", help="say on standard error where the time went")
    show.add_argument(
        "--statistics", action="store_true", help="say on standard error how often each pass did what it does"
    )
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
        help="the errors must be those that '// expected-error@+1 {{text}}' comments foretell; so must remarks, but "
        "without --remarks others may come",
    )
    check.add_argument(
        "--allow-unregistered-dialect", action="store_true", help="accept unknown operations in generic form"
    )

    fail = parser.add_argument_group("when a pass fails")
    fail.add_argument(
        "--crash-reproducer",
        action=_Once,
        metavar="FILE",
        help="write the IR before the failing pass and that pass to FILE",
    )
    fail.add_argument("--run-reproducer", action="store_true", help="run the pipeline that stands in the input")

    about = parser.add_argument_group("what there is")
    about.add_argument(
        "--list-passes",
        nargs="?",
        const="short",
        choices=("short", "full"),
        metavar="full",
        help="list the passes; =full: with all that --help-pass says",
    )
    about.add_argument(
        "--help-pass", action="append", default=[], metavar="PASS", help="say what a pass does, and its options"
    )
    about.add_argument("--list-dialects", action="store_true", help="list the dialects")
    about.add_argument("--list-targets", action="store_true", help="list the targets")
    about.add_argument("-h", "--help", action="store_true", help="show this text")
    about.add_argument("--version", action="store_true", help="show the version")
    return parser


def parse_arguments(argv: Sequence[str], load: Callable[[Sequence[str]], None]) -> OptArguments:
    """Return the command line as OptArguments; TilewrightError for an unknown option, with the nearest known one.

    With `--load`, a word that may be a pass is left in `bare_passes` unchecked, until the files are loaded. `load` is
    called with the files where a word cannot be read without them: `-tidy` is a pass of theirs, or `-t idy`.
    """
    parser = make_parser()
    actions = parser._actions  # pyright: ignore[reportPrivateUsage]  # argparse has no public list of its options
    flags = {name for action in actions if action.nargs in (0, "?") for name in action.option_strings}
    valued = {name for action in actions if action.nargs is None for name in action.option_strings}
    # An optional value is joined with '=': a word after it is the input file.
    optional = {name: str(action.const) for action in actions if action.nargs == "?" for name in action.option_strings}
    words = sort_words(argv, flags - set(optional), valued, optional)
    files = _values(words.known, "--load")
    if files and words.joined:
        load(files)
        words = sort_words(argv, flags - set(optional), valued, optional)
    if not files:
        check_bare_passes(words.passes, [*flags, *valued])
    arguments, unknown = parser.parse_known_args(words.known, namespace=OptArguments())
    if unknown:
        if unknown[0].startswith("-"):
            raise TilewrightError(_unknown_option(unknown[0], [*flags, *valued]))
        raise TilewrightError(f"one file is expected, got '{arguments.file}' and '{unknown[0]}'")
    arguments.bare_passes = words.passes
    if words.passes and arguments.passes:
        raise TilewrightError(f"expected -p or passes as options, got both: -p and '{words.passes[0][0]}'")
    for names in (arguments.print_ir_before, arguments.print_ir_after):
        names[:] = [name for each in names for name in each.split(",") if name]
    return arguments


def _values(words: Sequence[str], option: str) -> list[str]:
    """Return the values of an option in order, each behind `=` or the word after it."""
    found: list[str] = []
    for word, following in pairwise([*words, ""]):
        if word == option:
            found.append(following)
        elif word.startswith(f"{option}="):
            found.append(word.partition("=")[2])
    return found


def check_bare_passes(passes: Sequence[tuple[str, str, str]], options: Sequence[str]) -> None:
    """Raise TilewrightError for the first of the words that is no pass, and so is an unknown option."""
    if not passes:
        return
    from tilewright.api.opt.catalogue import pass_factories

    known = pass_factories()
    for word, name, _ in passes:
        if name not in known:
            raise TilewrightError(_unknown_option(word, [*options, *(f"--{each}" for each in known)]))


def bare_pipeline(passes: Sequence[tuple[str, str, str]]) -> str:
    """Return the text of the pipeline that options such as `--cse` and `--fuse='depth=2'` are."""
    return ",".join(f"{name}{{{options}}}" if options else name for _, name, options in passes)


def _unknown_option(word: str, known: Sequence[str]) -> str:
    name = word.partition("=")[0]
    return f"unknown option '{name}'{did_you_mean(name, known)} (see --help)"
