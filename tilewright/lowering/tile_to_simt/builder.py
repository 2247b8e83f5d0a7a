"""Builds the body of one simt kernel: nested scopes, and integer arithmetic that is folded, shared and hoisted.

Integer ops go into the outermost scope in which their operands exist, each once. So a caller writes an address at the
place where it is used, and what does not change inside a loop ends up before the loop. The index arithmetic of a kernel
is marked `nsw`: the plan chooses the index width such that no address, size or coordinate wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType, LocationAttr, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import ConstantLike

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.roles import ElectOp
from tilewright.dialects.simt.structure import TidOp, UnrollOp
from tilewright.dialects.sym.attributes import ExprAttr
from tilewright.dialects.sym.expr import Expr

Int: TypeAlias = "IntegerType[int]"
I32: Int = cast(Int, i32)
I64: Int = cast(Int, i64)
NSW = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])
_Key: TypeAlias = "tuple[object, ...]"
_WRAPPING: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
}


@dataclass(slots=True)
class _Scope:
    block: Block
    known: dict[_Key, SSAValue] = field(default_factory=dict["_Key", SSAValue])


class Builder:
    """Where ops are added, and what is known there.

    `index` is the type of coordinates and addresses in the kernel (i32 or i64), `threads` the size of a block.
    """

    def __init__(self, entry: Block, index_width: int, threads: int, fixed: Mapping[str, int]) -> None:
        self.index: Int = I32 if index_width == 32 else I64
        self.threads = threads
        self.fixed = fixed
        """Symbols whose value the kernel's assumptions state."""
        self.first_thread = 0
        self.location: LocationAttr | None = None
        self.params: list[ExprAttr] = []
        self._entry = entry
        self._scopes = [_Scope(entry)]

    # Scopes.

    def add(self, op: Operation) -> Operation:
        """Add an op at the end of the innermost scope."""
        return self._append(self._scopes[-1], op)

    def _append(self, scope: _Scope, op: Operation) -> Operation:
        if self.location is not None:
            op.location = self.location
        scope.block.add_op(op)
        return op

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Add to `block`, which becomes the body of an op that is added after this."""
        self._scopes.append(_Scope(block))
        try:
            yield
        finally:
            self._scopes.pop()

    @contextmanager
    def unroll(self, count: int) -> Generator[SSAValue]:
        """A loop of `count` static steps around what is added inside; gives the variable, an i32. No loop for one."""
        if count == 1:
            yield self.constant(0, I32)
            return
        op = UnrollOp(count)
        with self.inside(op.body.block):
            yield op.variable
        self.add(op)

    @contextmanager
    def when(self, condition: SSAValue | None) -> Generator[None]:
        """What is added inside happens where the condition, an i1, holds; always for None."""
        if condition is None:
            yield
            return
        block = Block()
        with self.inside(block):
            yield
            self.add(scf.YieldOp())
        self.add(scf.IfOp(condition, [], Region(block)))

    def choose(self, condition: SSAValue, yes: Sequence[Operation], no: Sequence[Operation]) -> None:
        """Do one thing where the condition, an i1, holds, and another where it does not."""
        regions: list[Region] = []
        for ops in (yes, no):
            block = Block()
            with self.inside(block):
                for op in (*ops, scf.YieldOp()):
                    self.add(op)
            regions.append(Region(block))
        self.add(scf.IfOp(condition, [], regions[0], regions[1]))

    def _scope_of(self, *values: SSAValue) -> _Scope:
        """The outermost scope in which all values exist."""
        depth = 0
        for value in values:
            owner = value.owner
            block = owner if isinstance(owner, Block) else owner.parent
            for level in range(len(self._scopes) - 1, 0, -1):
                if self._scopes[level].block is block:
                    depth = max(depth, level)
                    break
        return self._scopes[depth]

    def shared(self, key: _Key, operands: tuple[SSAValue, ...], make: Callable[[], Operation]) -> SSAValue:
        """The one result of a pure op, made once for each key in the outermost scope of its operands."""
        scope = self._scope_of(*operands)
        found = scope.known.get(key)
        if found is None:
            found = scope.known[key] = self._append(scope, make()).results[0]
        return found

    # Values.

    def param(self, expr: Expr, type_: Int | None = None) -> SSAValue:
        """An expression over symbols, as a scalar argument that the host computes; a constant stays one."""
        type_ = type_ or self.index
        expr = expr.substitute(self.fixed)
        if expr.constant is not None:
            return self.constant(expr.constant, type_)
        known = self._scopes[0].known
        key = ("param", expr, type_)
        if key not in known:
            argument = self._entry.insert_arg(type_, len(self._entry.args))
            argument.name_hint = _hint(expr)
            known[key] = argument
            self.params.append(ExprAttr(expr))
        return known[key]

    def constant(self, value: int, type_: Int | None = None) -> SSAValue:
        """An integer constant, by default of the index type."""
        type_ = type_ or self.index
        width = type_.width.data
        if not -(1 << (width - 1)) <= value < 1 << (width - 1):
            raise TilewrightError(f"expected an integer of {width} bits for index arithmetic, got {value}")
        return self.attribute(IntegerAttr(value, type_))

    def attribute(self, value: Attribute) -> SSAValue:
        """A constant given by its attribute, such as `0.0 : f32`."""
        return self.shared(("constant", value), (), lambda: arith.ConstantOp(cast(Any, value)))

    def argument(self, type_: Attribute, place: int) -> SSAValue:
        """A new argument of the kernel."""
        return self._entry.insert_arg(type_, place)

    def tid(self) -> SSAValue:
        """Index of the thread among those that run this code (the block's, or a role's), an i32."""
        number = self.shared(("tid",), (), TidOp)
        return self.sub_int(number, self.constant(self.first_thread, I32))

    @contextmanager
    def elect(self, scope: str) -> Generator[None]:
        """What is added inside is done by one thread of each warp, role or block; by all where the scope is empty."""
        if not scope:
            yield
            return
        op = ElectOp(scope)
        with self.inside(op.body.block):
            yield
        self.add(op)

    @contextmanager
    def role(self, block: Block, first_thread: int, threads: int) -> Generator[None]:
        """Add to `block`, which these threads alone run."""
        before = self.first_thread, self.threads
        self.first_thread, self.threads = first_thread, threads
        with self.inside(block):
            yield
        self.first_thread, self.threads = before

    def widen(self, value: SSAValue) -> SSAValue:
        """An i32 as the kernel's index type."""
        return self.convert(value, self.index)

    def convert(self, value: SSAValue, type_: Int) -> SSAValue:
        """A signed integer as another integer type; the value must fit."""
        if value.type == type_:
            return value
        if (known := constant_of(value)) is not None:
            return self.constant(known, type_)
        narrow = cast(Int, value.type).width.data > type_.width.data
        op = arith.TruncIOp if narrow else arith.ExtSIOp
        return self.shared((op, value, type_), (value,), lambda: op(value, type_))

    def add_int(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a + b."""
        if constant_of(a) == 0:
            return b
        return a if constant_of(b) == 0 else self._binary(arith.AddiOp, a, b)

    def sub_int(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a - b."""
        return a if constant_of(b) == 0 else self._binary(arith.SubiOp, a, b)

    def mul_int(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a * b."""
        for left, right in ((a, b), (b, a)):
            known = constant_of(left)
            if known == 1:
                return right
            if known == 0:
                return left
        return self._binary(arith.MuliOp, a, b)

    def div_unsigned(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a / b, where a is not negative and b positive."""
        return a if constant_of(b) == 1 else self._plain(arith.DivUIOp, a, b)

    def mod_unsigned(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a mod b, where a is not negative and b positive."""
        return self.constant(0, cast(Int, a.type)) if constant_of(b) == 1 else self._plain(arith.RemUIOp, a, b)

    def floor_div(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The floor of a / b."""
        return a if constant_of(b) == 1 else self._plain(arith.FloorDivSIOp, a, b)

    def minimum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The lesser, signed."""
        return self._plain(arith.MinSIOp, a, b)

    def maximum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The greater, signed."""
        return self._plain(arith.MaxSIOp, a, b)

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """An i1: `arith.cmpi` with this predicate."""
        return self.shared(("cmpi", predicate, a, b), (a, b), lambda: arith.CmpiOp(a, b, predicate))

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """a where the condition holds, else b."""
        return self.shared(("select", condition, a, b), (condition, a, b), lambda: arith.SelectOp(condition, a, b))

    def both(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
        """The conjunction of two conditions; None stands for true."""
        if a is None or b is None:
            return a if b is None else b
        assert a.type == i1
        left, right = a, b
        return self._plain(arith.AndIOp, left, right)

    def _binary(self, op: type[arith.AddiOp | arith.SubiOp | arith.MuliOp], a: SSAValue, b: SSAValue) -> SSAValue:
        left, right = constant_of(a), constant_of(b)
        if left is not None and right is not None:
            return self.constant(_WRAPPING[op](left, right), cast(Int, a.type))
        return self.shared((op, a, b), (a, b), lambda: op(a, b, overflow=NSW))

    def _plain(self, op: type[arith.SignlessIntegerBinaryOperation], a: SSAValue, b: SSAValue) -> SSAValue:
        return self.shared((op, a, b), (a, b), lambda: op(a, b))


def constant_of(value: SSAValue) -> int | None:
    """The integer that a value is known to be, else None."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and op.has_trait(ConstantLike) and isinstance(op.value, IntegerAttr):
        return cast("IntegerAttr[Any]", op.value).value.data
    return None


def _hint(expr: Expr) -> str | None:
    """A readable name for a scalar: the symbol itself, none for a compound expression."""
    text = str(expr)
    return text if text.isidentifier() else None
