"""The launch plan of one entry: from the layouts of arguments to what runs, as one compiled Python function.

`HostPlan.decide` is what a call asks: it is a memo in front of `run`, the function generated from the `host.func`. The
same IR has an interpreter (`plan_interpreter`), which explains why a call fails, and to which a test holds `run`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import lcm
from typing import TYPE_CHECKING, Any, Final, Literal

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import AllocOp, BindOp, DispatchOp, FuncOp, GuardOp, LaunchOp, LetOp, OutputOp
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.location import location_of
from tilewright.dialects.sym import Expr, Relation, dims_of
from tilewright.dialects.sym.expr import Atom, hidden_symbol
from tilewright.lowering.host_requirements import bound_by, bound_symbols
from tilewright.lowering.instantiate import variant_of
from tilewright.runtime.binding import Check, Layout, Solve, size_steps

if TYPE_CHECKING:
    from tilewright.dialects.sym.expr import Monomial

MEMO_ENTRIES: Final = 256
"""Shapes that a plan remembers; the least recently used goes first."""

SlotKind = Literal["argument", "result", "scratch", "chosen"]


@dataclass(frozen=True, slots=True)
class Slot:
    """A tensor or scalar of the plan, by kind and number; a chosen one is what a dispatch gives."""

    kind: SlotKind
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument, result or scratch tensor of an entry. `dims` is None for a scalar."""

    name: str
    dtype: str
    dims: tuple[Expr, ...] | None


@dataclass(frozen=True, slots=True)
class Site:
    """One `host.launch` of the plan: which variant of which kernel, on which tensors and scalars, in kernel order."""

    kernel: str
    variant: str
    index_width: int
    assumes: tuple[Relation, ...]
    grid: Expr
    tensors: tuple[Slot, ...]
    scalars: tuple[Slot, ...]
    launch: LaunchOp = field(compare=False)


@dataclass(slots=True)
class PlannedLaunch:
    """A launch that a call makes: `grid` blocks, at least one. `scalars` is filled in once the variant is lowered."""

    site: int
    grid: int
    scalars: tuple[int, ...] | None = None


@dataclass(slots=True)
class Decision:
    """What a call does: values of `HostPlan.symbols` in order (base addresses modulo `alignment`), shapes of results
    and of the memory of scratch, with its padding (None for scratch that is not needed), and the launches in order.

    `chosen` has for each dispatch that gives a tensor the number of that tensor, counting arguments, results and
    scratch in a row.
    """

    symbols: tuple[int, ...]
    results: tuple[tuple[int, ...], ...]
    scratch: tuple[tuple[int, ...] | None, ...]
    launches: list[PlannedLaunch]
    chosen: tuple[int, ...] = ()


class HostPlan:
    """A complete `host.func`, compiled. Raises `TilewrightError` for a plan that could not run."""

    def __init__(self, func: FuncOp) -> None:
        self.func = func
        self.entry = func.sym_name.data
        self.steps: tuple[Solve | Check, ...] = size_steps(func)
        self.symbols: tuple[str, ...] = tuple(sorted(bound_symbols(func)))
        self.slots: dict[SSAValue, Slot] = {}
        self.arguments = tuple(
            self._parameter(a, Slot("argument", n), f"arg{n}") for n, a in enumerate(func.body.block.args)
        )
        outputs = sorted(
            (op for op in func.body.walk() if isinstance(op, OutputOp)), key=lambda op: op.number.value.data
        )
        numbers = [op.number.value.data for op in outputs]
        if numbers != list(range(len(func.output_types))):
            raise _at(func, f"expected host.output for results 0 to {len(func.output_types) - 1}, got {numbers}")
        self.results = tuple(self._parameter(op.res, Slot("result", n), f"out{n}") for n, op in enumerate(outputs))
        scratch = [op for op in func.body.walk() if isinstance(op, AllocOp)]
        self.scratch = tuple(self._parameter(op.res, Slot("scratch", n), f"tmp{n}") for n, op in enumerate(scratch))
        for n, op in enumerate(op for op in func.body.walk() if isinstance(op, DispatchOp) and op.res is not None):
            assert op.res is not None
            self.slots[op.res] = Slot("chosen", n)
        self.choices = sum(slot.kind == "chosen" for slot in self.slots.values())
        self.spare = frozenset(n for n, op in enumerate(scratch) if _only_in_cases(op, func))
        """Scratch that stands before the dispatches whose cases may use it: made where a launch of the call does."""
        self.bound_tensors: dict[SSAValue, BindOp] = {op.value: op for op in func.body.walk() if isinstance(op, BindOp)}
        self.sites: tuple[Site, ...] = tuple(self._site(op) for op in func.body.walk() if isinstance(op, LaunchOp))
        self.site_of: dict[Operation, int] = {site.launch: n for n, site in enumerate(self.sites)}
        self._check_symbols()
        self.bases = frozenset(op.base.data for op in self.bound_tensors.values())
        self.alignment = self._alignment()
        from tilewright.runtime.plan_generator import generate

        self.run: Callable[[Sequence[Layout | None], Sequence[Layout] | None], Decision]
        self.source, self.run = generate(self)
        self._memo: OrderedDict[tuple[Any, ...], Decision] = OrderedDict()
        self._lock = threading.Lock()
        self.memo_hits = 0

    def place(self, slot: Slot) -> int:
        """The number of a slot, counting arguments, results, scratch and chosen tensors in a row."""
        counts = (("argument", self.arguments), ("result", self.results), ("scratch", self.scratch), ("chosen", ()))
        before = 0
        for kind, members in counts:
            if kind == slot.kind:
                break
            before += len(members)
        return before + slot.number

    def needed(
        self, scratch: tuple[tuple[int, ...] | None, ...], launches: Sequence[PlannedLaunch], chosen: tuple[int, ...]
    ) -> tuple[tuple[int, ...] | None, ...]:
        """The shapes of scratch, None in place of spare scratch that no launch uses."""
        if not self.spare:
            return scratch
        slots = [slot for each in launches for slot in self.sites[each.site].tensors]
        used = {chosen[slot.number] if slot.kind == "chosen" else self.place(slot) for slot in slots}
        first = self.place(Slot("scratch", 0))
        return tuple(None if n in self.spare and first + n not in used else shape for n, shape in enumerate(scratch))

    def decide(self, arguments: Sequence[Layout | None], results: Sequence[Layout] | None = None) -> Decision:
        """What a call with these layouts does; `results` are the caller's own output tensors, if any.

        Arguments are None where a scalar is passed. Raises `TilewrightError` that says which relation fails, for
        which values from where.
        """
        alignment = self.alignment
        key = (
            *[a if a is None else (a[0], a[1], a[2] % alignment) for a in arguments],
            *([None] if results is None else [(r[0], r[1], r[2] % alignment) for r in results]),
        )
        with self._lock:
            found = self._memo.get(key)
            if found is not None:
                self._memo.move_to_end(key)
                self.memo_hits += 1
                return found
        found = self.run(arguments, results)
        with self._lock:
            self._memo[key] = found
            if len(self._memo) > MEMO_ENTRIES:
                self._memo.popitem(last=False)
        return found

    def interpret(self, arguments: Sequence[Layout | None], results: Sequence[Layout] | None = None) -> Decision:
        """The same by walking the IR; slower, and its errors say all that is known."""
        from tilewright.runtime.plan_interpreter import interpret

        return interpret(self, arguments, results)

    def _parameter(self, value: SSAValue, slot: Slot, name: str) -> Parameter:
        self.slots[value] = slot
        name = value.name_hint or name
        return parameter_of(value.type, name)

    def _site(self, op: LaunchOp) -> Site:
        if op.grid is None or op.index_width is None:
            raise _at(op, "expected a launch that the host plan has completed: it has no grid or index_width")
        tensors = [self.slots[a] for a in op.arguments if is_tensor(a.type)]
        scalars = [self.slots[a] for a in op.arguments if not is_tensor(a.type)]
        return Site(
            op.kernel.string_value(),
            variant_of(op),
            op.index_width.value.data,
            tuple(r.data for r in op.assumes),
            op.grid.data,
            tuple(tensors),
            tuple(scalars),
            op,
        )

    def _check_symbols(self) -> None:
        """Every symbol that the plan uses has a value by then: from sizes of arguments, or from an op before."""
        known = {step.symbol for step in self.steps if isinstance(step, Solve)}
        self._check_block(self.func.body.block, known)

    def _check_block(self, block: Block, known: set[str]) -> None:
        """Check the ops in order; what they give values to joins `known` for those that follow."""
        for op in block.ops:
            for what, symbols in _used_symbols(op):
                unbound = sorted(symbols - set(self.symbols))
                if unbound:
                    names = ", ".join(unbound)
                    raise _at(op, f"@{self.entry}: no argument size determines {names}, which {what} needs")
                for symbol in sorted(symbols - known):
                    giver = self._giver(symbol)
                    raise _at(op, f"@{self.entry}: {symbol} is used before {giver} gives it a value")
            for region in op.regions:
                self._check_block(region.block, known)  # only the function's own ops bind symbols
            if isinstance(op, BindOp | LetOp):
                known.update(bound_by(op))

    def _giver(self, symbol: str) -> str:
        """The name of the op that gives a symbol its value."""
        givers = (op for op in self.func.body.walk() if isinstance(op, BindOp | LetOp) and symbol in bound_by(op))
        return next((op.name for op in givers), "a size")

    def _alignment(self) -> int:
        """The modulus under which base addresses matter; they may occur as `base mod c` only."""
        found = 1
        relevant = [(op, e) for op in self.func.body.walk() for e in _expressions(op) if e.symbols & self.bases]
        exprs = list({e: (op, e) for op, e in reversed(relevant)}.values())  # cases share most of them
        for _, expr in exprs:
            for atom in _atoms(expr):
                divisor = atom.args[1].constant if atom.kind == "floordiv" else None
                if divisor and atom.symbols & self.bases:
                    found = lcm(found, abs(divisor))
        for op, expr in exprs:
            shifted = expr.substitute({b: Expr.symbol(b) + found * hidden_symbol(f"%{b}") for b in self.bases})
            if any("%" in symbol for symbol in shifted.symbols):
                raise _at(op, f"a base address may occur as `base mod c` only, got {expr}")
        return found


def _only_in_cases(op: AllocOp, func: FuncOp) -> bool:
    """Whether scratch stands in the function itself, and is used in cases of dispatches alone."""
    block, users = func.body.block, [use.operation for use in op.res.uses]
    return bool(users) and op.parent is block and all(user.parent is not block for user in users)


def parameter_of(type_: Attribute, name: str) -> Parameter:
    """An argument or result of this type."""
    if is_tensor(type_):
        return Parameter(name, str(type_.element_type), dims_of(type_))
    return Parameter(name, str(type_), None)


def case_blocks(op: DispatchOp) -> list[tuple[tuple[Relation, ...], Block]]:
    """Predicates and ops of each case, in order."""
    return [(predicates, region.block) for _, predicates, region in op.arms]


def _used_symbols(op: Operation) -> list[tuple[str, frozenset[str]]]:
    if isinstance(op, GuardOp):
        return [(f"the guard {op.relation.data}", op.relation.data.symbols)]
    if isinstance(op, LetOp):
        return [(f"the value of {op.symbol.data}", op.value.data.symbols)]
    if isinstance(op, OutputOp | AllocOp):
        what = f"result {op.number.value.data}" if isinstance(op, OutputOp) else "a scratch tensor"
        return [(what, frozenset[str]().union(*(d.symbols for d in dims_of(op.res.type))))]
    if isinstance(op, DispatchOp):
        return [(f"the case {n}", frozenset[str]().union(*(r.symbols for r in p))) for n, p, _ in op.arms]
    if isinstance(op, LaunchOp) and op.grid is not None:
        return [(f"the grid of @{op.kernel.string_value()}", op.grid.data.symbols)]
    return []


def _expressions(op: Operation) -> list[Expr]:
    if isinstance(op, GuardOp):
        return [op.relation.data.lhs - op.relation.data.rhs]
    if isinstance(op, LetOp):
        return [op.value.data]
    if isinstance(op, DispatchOp):
        return [r.lhs - r.rhs for r in dict.fromkeys(r for _, predicates, _ in op.arms for r in predicates)]
    if isinstance(op, OutputOp | AllocOp):
        return list(dims_of(op.res.type))
    return [op.grid.data] if isinstance(op, LaunchOp) and op.grid is not None else []


def _atoms(expr: Expr) -> list[Atom]:
    found: list[Atom] = []
    stack: list[Monomial] = [m for m, _ in expr.terms]
    while stack:
        for atom in stack.pop():
            found.append(atom)
            stack.extend(m for a in atom.args for m, _ in a.terms)
    return found


def _at(op: Operation, message: str) -> TilewrightError:
    return TilewrightError(message, location_of(op))


__all__ = ["Decision", "HostPlan", "Parameter", "PlannedLaunch", "Site", "Slot", "case_blocks", "parameter_of"]
