"""From IR text to a module: every operation knows its place, and whatever is wrong ends in one located error.

    module = parse_module(text, "softmax.mlir", make_context())

xDSL's parser does the work. This module adds what it lacks: `file:line:col` on every operation, an undefined value
reported at its use rather than at the end of the file, near misses for unknown names, and one exception type.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FileLineColLoc,
    IntAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, AttributeInvT, Operation, ParametrizedAttribute, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.exceptions import ParseError

from tilewright.diagnostics import SourceLocation, TilewrightError
from tilewright.dialects.source_text import MAX_NESTING, LineTable, check_limits, decode, lower_first, one_line, render
from tilewright.dialects.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xdsl.context import Context

__all__ = ["MAX_DENSE_ELEMENTS", "MAX_DIMENSION", "LocatedParser", "decode", "parse_module", "render"]

MAX_DENSE_ELEMENTS = 1 << 24
"""Elements of a dense literal. xDSL stores a splat expanded, so one short line could ask for all memory."""

MAX_DIMENSION = (1 << 63) - 1
"""The largest dim of a shape: sizes are 64-bit integers in MLIR, in NumPy and on the host side of a launch."""

MAX_ALIAS_NODES = 10_000
"""Attributes that an alias may stand for, written out; a type of a kernel holds some tens."""

MAX_ALIAS_DEPTH = 2 * MAX_NESTING
"""Depth of that tree: a bracket in the text is two attributes at most, such as a tuple and its list of types."""

_UNKNOWN_OP = re.compile(r"Operation (\S+) is not registered")
_UNKNOWN_ATTRIBUTE = re.compile(r"'(\S+)' is not registered")
_NO_FORMAT = re.compile(r"Operation (\S+) does not have a custom format\.?")


class LocatedParser(Parser):
    """xDSL's parser, with a FileLineColLoc on each operation that has no `loc(...)` of its own."""

    def __init__(self, ctx: Context, text: str, filename: str) -> None:
        super().__init__(ctx, text, filename)
        self.lines = LineTable(text)
        self._file_attribute = StringAttr(filename)
        self._open_operations: list[int] = []
        self._first_uses: dict[str, int] = {}
        self._alias_extents: dict[int, tuple[int, int]] = {}

    def parse_operation(self) -> Operation:
        """Parse one operation and say where it starts: at its results, or else at its name."""
        start = self.pos
        self._open_operations.append(start)
        op = super().parse_operation()
        # Left in place when parsing fails: then the last one is the operation that could not be parsed.
        self._open_operations.pop()
        if isinstance(op.location, UnknownLoc):
            line, column = self.lines.position(start)
            op.location = FileLineColLoc(self._file_attribute, IntAttr(line), IntAttr(column))
        return op

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeInvT) -> SSAValue[AttributeInvT]:
        """Resolve an operand as xDSL does, and keep the place of a name that is not defined yet."""
        if operand.operand_name not in self.ssa_values:
            self._first_uses.setdefault(operand.operand_name, operand.span.start)
        return super().resolve_operand(operand, type)

    def undefined_value(self) -> tuple[str, int] | None:
        """Return name and offset of the first use whose value has not been defined so far, or None."""
        uses = [(name, self._first_uses.get(name, 0)) for name in self.forward_ssa_references]
        return min(uses, key=lambda use: use[1], default=None)

    def current_start(self) -> int:
        """Return the offset of the innermost operation that is being parsed, else of the current token."""
        return self._open_operations[-1] if self._open_operations else self.pos

    def at_end(self) -> bool:
        """Return whether all text is consumed."""
        return self.pos >= len(self.lines.text)

    def parse_shape_dimension(self, allow_dynamic: bool = True) -> int:
        """Parse one dim of a shape as xDSL does, but no more than an address can count."""
        start = self.pos
        dimension = super().parse_shape_dimension(allow_dynamic)
        if dimension > MAX_DIMENSION:
            self.raise_error(f"dimension {dimension} is too large: expected at most {MAX_DIMENSION}", start)
        return dimension

    def _parse_alias_def(self) -> None:
        """Parse an alias as xDSL does, but none that stands for more than could be written out.

        Attributes are trees: each use of an alias hashes, compares and prints what it stands for anew, so that 40 lines
        of `!b = tuple<!a, !a>` would take hours.
        """
        start = self.pos
        known = len(self.attribute_aliases)
        super()._parse_alias_def()
        for name, value in list(self.attribute_aliases.items())[known:]:
            size, depth = self._extent(value)
            if size > MAX_ALIAS_NODES or depth > MAX_ALIAS_DEPTH:
                self.raise_error(
                    f"alias '{name}' is too large: expected at most {MAX_ALIAS_NODES} attributes "
                    f"nested at most {MAX_ALIAS_DEPTH} deep",
                    start,
                )
            self._alias_extents[id(value)] = (size, depth)

    def _extent(self, attribute: Attribute) -> tuple[int, int]:
        """Return (number of attributes in the tree, its depth); what an alias stands for is not walked again."""
        if (known := self._alias_extents.get(id(attribute))) is not None:
            return known
        children: Iterable[Attribute] = ()
        if isinstance(attribute, ParametrizedAttribute):
            children = attribute.parameters
        elif isinstance(attribute, ArrayAttr):
            children = cast("ArrayAttr[Attribute]", attribute).data
        elif isinstance(attribute, DictionaryAttr):
            children = attribute.data.values()
        extents = [self._extent(child) for child in children]
        return 1 + sum(size for size, _ in extents), 1 + max((depth for _, depth in extents), default=0)

    def _parse_external_resources(self) -> None:
        """Read past resources of tools, such as the pipeline in a reproducer; xDSL refuses them."""
        self.parse_comma_separated_list(self.Delimiter.BRACES, self._parse_external_resource)

    def _parse_external_resource(self) -> None:
        """Parse `owner: { key: value, ... }`, where a value is a string or a boolean."""
        self._parse_resource_key()
        self.parse_comma_separated_list(self.Delimiter.BRACES, self._parse_external_entry)

    def _parse_external_entry(self) -> None:
        self._parse_resource_key()
        if self.parse_optional_str_literal() is None:
            self.parse_boolean()

    def _parse_resource_key(self) -> None:
        self.parse_identifier_or_str_literal()
        self.parse_punctuation(":")

    def _parse_dense_literal_type(self):  # pyright: ignore[reportUnknownParameterType]  # the overridden method's type is not public
        type = super()._parse_dense_literal_type()
        elements = math.prod(type.get_shape())
        if elements > MAX_DENSE_ELEMENTS:
            self.raise_error(f"dense literal of {elements} elements: expected at most {MAX_DENSE_ELEMENTS}")
        return type


def parse_module(text: str, filename: str, ctx: Context) -> ModuleOp:
    """Parse `text` to a module in which every operation has its place; the module is not verified yet.

    `filename` is what locations name. Several operations at the top are wrapped in one `builtin.module`.
    Raises TilewrightError, located in `text`, for whatever is wrong with the text.
    """
    text = text.removeprefix("\ufeff")
    check_limits(text, filename)
    lines = LineTable(text)
    parser: LocatedParser | None = None
    try:
        # The first token is read here already, so that this may fail too.
        parser = LocatedParser(ctx, text, filename)
        module = parser.parse_module()
    except ParseError as error:
        raise _from_parse_error(error, parser, lines, filename, ctx) from error
    except TilewrightError as error:
        if error.location is not None:
            raise
        raise TilewrightError(error.message, _where(parser, filename)) from error
    except Exception as error:
        raise TilewrightError(_from_exception(error), _where(parser, filename)) from error
    if isinstance(module.location, UnknownLoc):
        module.location = FileLineColLoc(StringAttr(filename), IntAttr(1), IntAttr(1))
    return module


def _where(parser: LocatedParser | None, filename: str) -> SourceLocation:
    """Return the place of the operation that was being parsed."""
    if parser is None:
        return SourceLocation(filename, 1, 1)
    return parser.lines.location(filename, parser.current_start())


def _from_exception(error: Exception) -> str:
    """Return the message for an exception that is no ParseError.

    Constructors of types and attributes raise VerifyException and bare ValueErrors on values that only they can judge;
    deep text exhausts Python's stack, a vast type its memory.
    """
    if isinstance(error, RecursionError):
        return "the text is nested too deeply to be parsed"
    if isinstance(error, MemoryError | OverflowError):
        return "the text asks for a value too large to be held"
    reason = one_line(str(error)) or type(error).__name__
    if type(error).__name__ in ("VerifyException", "ValueError", "DiagnosticException"):
        return lower_first(reason)
    return f"this cannot be parsed ({type(error).__name__}: {reason})"


def _from_parse_error(
    error: ParseError, parser: LocatedParser | None, lines: LineTable, filename: str, ctx: Context
) -> TilewrightError:
    """Return the located one-line error for a ParseError, with xDSL's vaguest messages made concrete."""
    offset = error.span.start
    message = one_line(error.msg).replace("'after", "' after")
    if message.startswith("values used but not defined") and parser is not None:
        undefined = parser.undefined_value()
        if undefined is not None:
            return TilewrightError(
                f"value %{undefined[0]} is used but not defined", lines.location(filename, undefined[1])
            )
    for pattern, kind in ((_UNKNOWN_OP, "operation"), (_UNKNOWN_ATTRIBUTE, "attribute or type")):
        if match := pattern.fullmatch(message):
            name = match.group(1)
            # The parser has gone past the name when it looks it up.
            named = lines.text.rfind(name, 0, offset)
            hint = _near(name, ctx, kind)
            return TilewrightError(
                f"unknown {kind} '{name}'{hint}", lines.location(filename, named if named >= 0 else offset)
            )
    message = message.replace("{first_char}", lines.text[offset : offset + 1])
    if match := _NO_FORMAT.fullmatch(message):
        message = f"'{match.group(1)}' has no custom format: write it in generic form, '\"{match.group(1)}\"(...)'"
    elif message == "Could not parse entire input!":
        token = lines.text[offset:].split(maxsplit=1)
        message = f"expected an operation, got '{token[0][:40]}'" if token else "expected an operation, got end of file"
    elif message == "in block definition":
        message = "expected an operation, a block or '}'"
    elif offset >= len(lines.text.rstrip()) and (message.startswith("Expected ") or "' expected" in message):
        message = f"{message} (the text ends here)"
    return TilewrightError(lower_first(message), lines.location(filename, offset))


def _near(name: str, ctx: Context, kind: str) -> str:
    """Return the `did you mean` for an unknown operation, attribute or type: of its dialect, or else the dialect."""
    dialect, dot, _ = name.partition(".")
    registered = list(ctx.registered_dialect_names)
    if dot and dialect not in registered:
        return f": there is no dialect '{dialect}'{did_you_mean(dialect, registered)}"
    loaded = {known.name for known in ctx.loaded_dialects}
    for missing in registered:
        if missing not in loaded and (not dot or missing == dialect):
            ctx.load_registered_dialect(missing)
    known: Iterable[str] = (op.name for op in ctx.loaded_ops)
    if kind != "operation":
        known = [a.name for a in ctx.loaded_attrs] + [t.name for t in ctx.loaded_types]
    if dot:
        known = [candidate for candidate in known if candidate.startswith(f"{dialect}.")]
    return did_you_mean(name, known)
