"""What a person reads about passes: one line for each, or for one all that its source says of it and of its options."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from contextlib import suppress
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING

from tilewright.api.opt.catalogue import first_line, look_up, pass_factories, table
from tilewright.api.opt.options import Option, options_of, value_text
from tilewright.api.opt.pipeline_text import Spec
from tilewright.diagnostics import SourceLocation, TilewrightError

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

_WIDTH = 100
_INDENT = "    "


def list_passes() -> str:
    """Return one line for each pass: its name and the first line of its docstring."""
    return table(_summaries())


def list_passes_in_full() -> str:
    """Return the help of every pass that can be imported."""
    return "\n".join(pass_help(name) for name in _summaries())


def pass_help(name: str) -> str:
    """Return what there is to say about a pass: docstring, where it runs, options with types, choices and defaults.

    Raises TilewrightError for an unknown name, with the nearest known one.
    """
    try:
        cls = look_up(pass_factories(), Spec(name, {}, SourceLocation("", 1, 1)), "pass")
    except TilewrightError as error:
        raise TilewrightError(error.message) from error
    lines = [name, *_indented(inspect.cleandoc(cls.__doc__ or ""))]
    level = getattr(cls, "level", None)
    facts = [f"level {level}"] if isinstance(level, str) else []
    anchors: tuple[str, ...] = getattr(cls, "anchors", ())
    facts += [f"runs on {', '.join(anchors)}"] if anchors else []
    with suppress(OSError, TypeError):
        facts.append(f"defined in {inspect.getsourcefile(cls)}")
    lines += ["", *(f"{_INDENT}{fact}" for fact in facts)]
    options = options_of(cls)
    if options:
        documented = _field_docs(cls)
        lines += ["", f"{_INDENT}options:"]
        for option in options:
            lines += _option_lines(option, documented.get(option.field, ""))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _summaries() -> dict[str, str]:
    """Name -> first line of the docstring, of every pass; those of this package are read without an import."""
    from tilewright.lowering.registry import LOWERINGS
    from tilewright.passes.registry import PASSES, plugin_passes, registered_passes

    entries = {**plugin_passes(), **PASSES, **LOWERINGS}
    # A table may name passes that an installation leaves out; what cannot be loaded is not offered.
    present = {name: entry.summary() for name, entry in entries.items() if find_spec(entry.module) is not None}
    return {**{name: first_line(cls) for name, cls in registered_passes().items()}, **present}


def _option_lines(option: Option, document: str) -> list[str]:
    text = value_text(option.default)
    if option.required:
        default = "required"
    else:
        default = f"default {'none' if text is None else text}"
    head = f"{option.name} : {option.accepts} ({default})"
    return [f"{_INDENT * 2}{head}", *(f"{_INDENT * 3}{line}" for line in textwrap.wrap(document, _WIDTH - 12))]


def _indented(text: str) -> list[str]:
    return [f"{_INDENT}{line}" for line in text.splitlines()]


def _field_docs(cls: type[ModulePass]) -> dict[str, str]:
    """Field -> the string that stands under it in the source, of the class and those it derives its fields from."""
    found: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(each):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(each)))
        except (OSError, SyntaxError, TypeError):
            continue  # no source at hand: made by exec, or installed without it
        body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
        for node, following in pairwise(body):
            if (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and isinstance(following, ast.Expr)
                and isinstance(following.value, ast.Constant)
                and isinstance(following.value.value, str)
            ):
                found[node.target.id] = " ".join(following.value.value.split())
    return found
