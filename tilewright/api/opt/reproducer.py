"""Reproducers: the IR right before the pass that failed, with the pass, in a file that MLIR's tools know the form of.

    // configuration: -p 'builtin.module(cse)' --verify-each
    builtin.module { ... }

    {-#
      external_resources: {
        mlir_reproducer: {
          pipeline: "builtin.module(cse)",
          disable_threading: true,
          verify_each: true
        }
      }
    #-}

`tilewright-opt FILE --run-reproducer` takes the pipeline from the file.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import tilewright
from tilewright.api.opt.dumps import Unprintable, print_op
from tilewright.api.opt.output import write_file
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.source_text import LineTable, one_line

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilewright.api.opt.arguments import OptArguments

_RESOURCE = re.compile(r"\{-#(?P<body>.*?)#-\}\s*\Z", re.DOTALL)
_PIPELINE = re.compile(r'\bmlir_reproducer\s*:\s*\{[^}"]*?\bpipeline\s*:\s*"(?P<text>(?:[^"\\\n]|\\.)*)"')
_VERIFY_EACH = re.compile(r"\bverify_each\s*:\s*(?P<value>true|false)\b")
_CONFIGURATION = re.compile(r"^// configuration: (?P<words>.*)$", re.MULTILINE)
_ESCAPE = re.compile(r"\\(?:(?P<hex>[0-9a-fA-F]{2})|(?P<one>.))")
_ONE = {"n": "\n", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What a reproducer says to run."""

    pipeline: str
    verify_each: bool
    load: tuple[str, ...] = ()
    """Files of passes that the run which made it had loaded."""


def write_reproducer(path: str, module: ModuleOp, pipeline: str, failure: str, arguments: OptArguments) -> None:
    """Write `module`, as it was before the pass, and the pipeline of that pass to the file at `path`."""
    options = ["-p", pipeline, "--verify-each" if arguments.verify_each else "--no-verify-each"]
    options += ["--allow-unregistered-dialect"] if arguments.allow_unregistered_dialect else []
    options += loading(arguments)
    try:
        text = print_op(module, arguments)
    except Unprintable:
        # IR that no verifier has seen may have no custom form.
        text = print_op(module, arguments, generic=True)
    lines = [
        f"// failure: {one_line(failure)}",
        f"// tilewright-opt {tilewright.__version__}; run it again: {command('FILE', arguments)}",
        f"// configuration: {' '.join(shlex.quote(word) for word in options)}",
        text,
        "{-#",
        "  external_resources: {",
        "    mlir_reproducer: {",
        f'      pipeline: "{_escaped(pipeline)}",',
        "      disable_threading: true,",
        f"      verify_each: {str(arguments.verify_each).lower()}",
        "    }",
        "  }",
        "#-}",
    ]
    write_file("\n".join(lines) + "\n", path)


def command(path: str, arguments: OptArguments) -> str:
    """Return the command line that runs the reproducer at `path`."""
    options = ["--allow-unregistered-dialect"] if arguments.allow_unregistered_dialect else []
    return shlex.join(["tilewright-opt", path, "--run-reproducer", *options, *loading(arguments)])


def loading(arguments: OptArguments) -> list[str]:
    """Return the words that load the passes of this run."""
    return [word for load in arguments.load for word in ("--load", load)]


def read_reproducer(text: str, filename: str) -> Reproduction:
    """Return what the reproducer in `text` says to run; TilewrightError if it holds none."""
    resource = _RESOURCE.search(text)
    found = None if resource is None else _PIPELINE.search(resource["body"])
    if resource is None or found is None:
        start = 0 if resource is None else resource.start()
        raise TilewrightError(
            "no reproducer in the file: expected at its end "
            "'{-# external_resources: { mlir_reproducer: { pipeline: \"...\" } } #-}'",
            LineTable(text).location(filename, start),
        )
    verify = _VERIFY_EACH.search(resource["body"])
    return Reproduction(_unescaped(found["text"]), verify is None or verify["value"] == "true", _loaded(text))


def _loaded(text: str) -> tuple[str, ...]:
    """Return the files that the configuration line in `text` loads; none where it is missing or malformed."""
    line = _CONFIGURATION.search(text)
    try:
        words = [] if line is None else shlex.split(line["words"])
    except ValueError:
        return ()
    return tuple(file for word, file in pairwise(words) if word == "--load")


def _escaped(text: str) -> str:
    """Return `text` as the inside of an MLIR string literal."""
    return "".join(f"\\{ord(c):02X}" if c in '"\\' or ord(c) < 32 or ord(c) == 127 else c for c in text)


def _unescaped(text: str) -> str:
    def meaning(match: re.Match[str]) -> str:
        if match["hex"] is not None:
            return chr(int(match["hex"], 16))
        return _ONE.get(match["one"], match["one"])

    return _ESCAPE.sub(meaning, text)
