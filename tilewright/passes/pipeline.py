"""The text of a pipeline, and running one.

    pipeline := item ("," item)*
    item     := pass-name [ "{" option* "}" ]  |  op-name "(" pipeline ")"
    option   := key [ "=" ( value ("," value)* | "[" value ("," value)* "]" ) ]
    value    := integer | float | true | false | word | "string"

Options are separated by blanks: `a,b{x=1 y=[1,2]}`. `builtin.module(a,b)` is `a,b`; under any other op, such as in
`builtin.module(func.func(a),b)`, the passes run on each such op of the module by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ParameterListType, ParameterType

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.suggest import did_you_mean
from tilewright.dialects.verify import verify_module

PassTable = Mapping[str, Callable[[], type[ModulePass]]]
"""Name -> a function that imports the pass; what `all_passes` returns."""

OnAfter = Callable[[ModulePass, ModuleOp], None]
"""Called after each pass with the pass and the module as it is then."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:\\["\\nt]|[^"\\\n])*")
    | (?P<number>[-+]?[0-9]+(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)?(?![\w.-]))
    | (?P<word>[A-Za-z0-9_][A-Za-z0-9_.-]*)
    | (?P<mark>[{}()\[\],=])
    )""",
    re.VERBOSE,
)
_ESCAPES = {r"\"": '"', r"\\": "\\", r"\n": "\n", r"\t": "\t"}
_MAX_NESTING = 32


@dataclass(frozen=True)
class AnchoredPasses(ModulePass):
    """Passes that run on each op of one name in the module, by itself: each sees only that op and the `sym` declarations."""

    name = "anchored"

    anchor: str
    passes: tuple[ModulePass, ...]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        block = op.body.block
        declarations = [other for other in block.ops if other.name.startswith("sym.")]
        for target in tuple(block.ops):
            if target.name != self.anchor:
                continue
            following = target.next_op
            target.detach()
            copies = [declaration.clone() for declaration in declarations]
            alone = ModuleOp([*copies, target])
            alone.location = op.location
            for each in self.passes:
                each.apply(ctx, alone)
            made: list[Operation] = []
            for result in tuple(alone.body.block.ops):
                result.detach()
                if result not in copies:
                    made.append(result)
            if following is None:
                block.add_ops(made)
            else:
                block.insert_ops_before(made, following)

    def __str__(self) -> str:
        return f"{self.anchor}({print_pipeline(self.passes)})"


def parse_pipeline(text: str, available: PassTable) -> tuple[ModulePass, ...]:
    """The passes that `text` names, with their options, from a table of those available.

    Raises TilewrightError, with the column in the text, for what is not a pipeline and for unknown passes and options.
    """
    return _PipelineParser(text, available).parse()


def print_pipeline(passes: Sequence[ModulePass]) -> str:
    """A text that `parse_pipeline` reads back to the same passes; options at their defaults are left out."""
    return ",".join(str(each) if isinstance(each, AnchoredPasses) else _print_pass(each) for each in passes)


def run_pipeline(
    module: ModuleOp,
    ctx: Context,
    passes: Sequence[ModulePass],
    *,
    verify_each: bool = False,
    on_after: OnAfter | None = None,
) -> None:
    """Run the passes in order on `module`, in place.

    `verify_each` verifies the module after each pass, dominance included, and names the pass that broke it. `on_after` is
    called after each pass, before that check, so that a broken module can be looked at.
    """
    for each in passes:
        each.apply(ctx, module)
        if on_after is not None:
            on_after(each, module)
        if verify_each:
            try:
                verify_module(module)
            except TilewrightError as error:
                raise TilewrightError(f"after pass {each.name}: {error.message}", error.location) from error


def _print_pass(each: ModulePass) -> str:
    options: list[str] = []
    for key, values in each.pipeline_pass_spec().parameters.items():
        texts = [_print_value(value) for value in values]
        options.append(f"{key}={texts[0]}" if len(texts) == 1 else f"{key}=[{','.join(texts)}]")
    return f"{each.name}{{{' '.join(options)}}}" if options else each.name


def _print_value(value: ParameterType) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", value) and value not in ("true", "false"):
            return value
        escaped = "".join({c: e for e, c in _ESCAPES.items()}.get(char, char) for char in value)
        return f'"{escaped}"'
    return str(value)


class _PipelineParser:
    """A recursive descent over the tokens of one text."""

    def __init__(self, text: str, available: PassTable) -> None:
        self.text = text
        self.available = available
        self.position = 0
        self.kind = ""
        self.token = ""
        self.start = 0
        self.advance()

    def advance(self) -> None:
        """Go to the next token; at the end `kind` is `end`."""
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            rest = self.text[self.position :].lstrip()
            self.start = len(self.text) - len(rest)
            self.kind, self.token = "end", "the end of the text"
            if rest:
                self.token = rest[0]
                self.fail("expected a pass name")
            return
        self.kind = match.lastgroup or ""
        self.token = match.group(self.kind)
        self.start = match.start(self.kind)
        self.position = match.end()

    def fail(self, expected: str) -> NoReturn:
        raise TilewrightError(f"pipeline, column {self.start + 1}: {expected}, got '{self.token[:40]}'")

    def take(self, mark: str) -> bool:
        if self.kind == "mark" and self.token == mark:
            self.advance()
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.take(mark):
            self.fail(f"expected '{mark}'")

    def parse(self) -> tuple[ModulePass, ...]:
        if self.kind == "end":
            return ()
        passes = self.items(0)
        if self.kind != "end":
            self.fail("expected ',' or the end")
        return passes

    def items(self, depth: int) -> tuple[ModulePass, ...]:
        if depth > _MAX_NESTING:
            self.fail(f"expected at most {_MAX_NESTING} nested levels")
        found: list[ModulePass] = []
        while True:
            found.extend(self.item(depth))
            if not self.take(","):
                return tuple(found)

    def item(self, depth: int) -> tuple[ModulePass, ...]:
        if self.kind != "word":
            self.fail("expected a pass name")
        name, start = self.token, self.start
        self.advance()
        if self.take("("):
            inner: tuple[ModulePass, ...] = ()
            if not self.take(")"):
                inner = self.items(depth + 1)
                self.expect(")")
            return inner if name == "builtin.module" else (AnchoredPasses(name, inner),)
        options = self.options() if self.take("{") else {}
        load = self.available.get(name)
        if load is None:
            hint = did_you_mean(name, self.available)
            raise TilewrightError(f"pipeline, column {start + 1}: there is no pass '{name}'{hint}")
        try:
            return (load().from_pass_spec(ArgSpec(name, options)),)
        except ValueError as error:  # from passes of xDSL; ours raise TilewrightError
            raise TilewrightError(f"pipeline, column {start + 1}: pass {name}: {error}") from error

    def options(self) -> dict[str, ParameterListType]:
        found: dict[str, ParameterListType] = {}
        while not self.take("}"):
            if self.kind != "word":
                self.fail("expected the name of an option or '}'")
            key = self.token.replace("-", "_")
            if key in found:
                self.fail("expected each option once")
            self.advance()
            found[key] = self.values() if self.take("=") else ()
        return found

    def values(self) -> ParameterListType:
        if self.take("["):
            values: list[ParameterType] = []
            while not self.take("]"):
                if values:
                    self.expect(",")
                values.append(self.value())
            return tuple(values)
        values = [self.value()]
        while self.take(","):
            values.append(self.value())
        return tuple(values)

    def value(self) -> ParameterType:
        kind, token = self.kind, self.token
        if kind not in ("string", "number", "word"):
            self.fail("expected a value")
        self.advance()
        if kind == "string":
            return re.sub(r"\\.", lambda match: _ESCAPES[match.group()], token[1:-1])
        if kind == "word":
            return {"true": True, "false": False}.get(token, token)
        return float(token) if any(c in token for c in ".eE") else int(token)
