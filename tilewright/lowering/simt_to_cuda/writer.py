"""The text of one kernel while it is written: lines, indentation, and the name of each value."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.lowering.simt_to_cuda.types import CUDA_CPP, Spelling
from tilewright.passes.core import error_at


class Writer:
    """Writes statements. `names` holds the C++ expression of each value: a variable, or a literal for a constant."""

    def __init__(
        self,
        table: Mapping[type[Operation], Write],
        read_only: set[SSAValue],
        *,
        spelling: Spelling = CUDA_CPP,
        target: str = "cuda",
    ) -> None:
        self.table = table
        """From the class of an op to the function that writes it."""
        self.spelling = spelling
        """How types and constants are written."""
        self.target = target
        """The target's name, for errors."""
        self.read_only = read_only
        """Global pointers through which the kernel never stores."""
        self.lines: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.targets: list[list[str]] = []
        """For each loop or branch around: the variables that its terminator assigns."""
        self._depth = 0
        self._count = 0

    def line(self, text: str) -> None:
        """Add a line at the current depth."""
        self.lines.append("  " * self._depth + text)

    @contextmanager
    def braces(self, head: str) -> Generator[None]:
        """A statement `head` with what is written inside as its body."""
        self.line(f"{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    def fresh(self) -> str:
        """A variable name that is not in use."""
        self._count += 1
        return f"v{self._count - 1}"

    def name(self, value: SSAValue) -> str:
        """The expression of a value that is in scope."""
        return self.names[value]

    def bind(self, value: SSAValue) -> str:
        """A new variable for a value."""
        self.names[value] = self.fresh()
        return self.names[value]

    def c_type(self, type_: Attribute) -> str:
        """The name of a scalar type."""
        return self.spelling.type(type_)

    def unsigned_type(self, type_: Attribute) -> str:
        """The name of the unsigned integer of an integer type's width."""
        return self.spelling.unsigned_type(type_)

    def cast_to(self, type_: Attribute, text: str) -> str:
        """A value converted to a scalar type."""
        return self.spelling.cast_to(type_, text)

    def literal(self, value: Attribute) -> str:
        """A constant attribute as an expression."""
        return self.spelling.literal(value)

    def result(self, op: Operation, expression: str) -> None:
        """Declare the variable of the op's one result."""
        value = op.results[0]
        self.line(f"const {self.c_type(value.type)} {self.bind(value)} = {expression};")

    def body(self, block: Block) -> None:
        """Write all ops of a block; TilewrightError at an op that the table lacks."""
        for op in block.ops:
            write = self.table.get(type(op))
            if write is None:
                raise error_at(op, f"target {self.target} has no text for {op.name}")
            try:
                write(self, op)
            except TilewrightError as error:
                raise error if error.location is not None else error_at(op, f"{op.name}: {error.message}") from None


Write: TypeAlias = Callable[[Writer, Any], None]
"""An entry of an emitter table: writes one op, and binds its results (`Writer.result`, `Writer.bind`)."""
