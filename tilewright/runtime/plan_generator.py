"""A launch plan as one Python function: bindings and guards fused into conditions, dispatch as if and elif.

Any condition that fails hands the call to the interpreter, which raises with the full story; so the generated code has
no text in it. Its names are made of letters and numbers of its own: `d` for sizes, `t` for strides, `p` for base
addresses, `v0, v1, ...` for symbols of `HostPlan.symbols` that are not one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.ir import Block, Operation

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import AllocOp, BindOp, DispatchOp, GuardOp, LaunchOp, LetOp, OutputOp, YieldOp
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.location import location_of
from tilewright.dialects.sym import Expr, Relation, dims_of
from tilewright.lowering.host_requirements import bound_by
from tilewright.runtime.binding import VALUE_LIMIT, Layout, Solve, normalised
from tilewright.runtime.plan import Decision, HostPlan, PlannedLaunch, case_blocks
from tilewright.runtime.plan_code import define, expr_code, relation_code, tuple_code

if TYPE_CHECKING:
    from xdsl.ir import SSAValue


def contiguous_code(sizes: Sequence[str]) -> str:
    """The element strides of a contiguous tensor (`binding.contiguous`) of these sizes, which are names or numbers."""
    return tuple_code(["*".join(sizes[dim + 1 :]) or "1" for dim in range(len(sizes))])


@dataclass
class _Writer:
    plan: HostPlan
    lines: list[str] = field(default_factory=list[str])
    conditions: list[str] = field(default_factory=list[str])
    indent: int = 1
    names: dict[str, str] = field(init=False)
    shapes: dict[SSAValue, str] = field(default_factory=dict[Any, str])
    """Value -> stem of the variables with its shape, strides and base: `h<stem>`, `t<stem>`, `p<stem>`."""

    def __post_init__(self) -> None:
        self.names = {symbol: f"v{n}" for n, symbol in enumerate(self.plan.symbols)}
        self.written: dict[Relation, str] = {}
        """Code of relations, which cases share, as long as no symbol gets another name."""
        self.assigned: set[str] = set()
        self.sometimes = {
            symbol
            for op in self.plan.func.body.walk()
            if isinstance(op, BindOp | LetOp) and op.parent_op() is not self.plan.func
            for symbol in bound_by(op)
        }
        """Symbols that only some cases bind; they are 0 elsewhere."""

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def require(self, condition: str) -> None:
        """Demand a condition; it is tested at the next `flush`, together with others."""
        self.conditions.append(condition)

    def flush(self) -> None:
        if self.conditions:
            self.line(f"if not ({' and '.join(self.conditions)}): return fail(args, outs)")
            self.conditions.clear()

    def assign(self, symbol: str, value: str) -> None:
        """Bind a symbol, or demand that it has the value already. A symbol that is a variable takes over its name."""
        if symbol in self.assigned:
            self.require(f"{self.names[symbol]} == {value}")
            return
        self.assigned.add(symbol)
        if value.isidentifier() and symbol not in self.sometimes:
            self.names[symbol] = value
            self.written.clear()
            return
        self.flush()
        self.line(f"{self.names[symbol]} = {value}")

    def relation(self, relation: Relation) -> str:
        if relation not in self.written:
            self.written[relation] = relation_code(relation, self.names)
        return self.written[relation]

    def expr(self, expr: Expr) -> str:
        return expr_code(expr, self.names)

    def unpack(self, stem: str, rank: int, value: str) -> list[str]:
        """Variables for the entries of a tuple. One of another length raises ValueError, which `run` explains."""
        names = [f"{stem}_{n}" for n in range(rank)]
        self.line(f"{tuple_code(names)} = {value}")
        return names

    def arguments(self) -> None:
        """Read the layouts, solve the symbols of the sizes and check the others."""
        sizes: dict[int, list[str]] = {}
        for number, value in enumerate(self.plan.func.body.block.args):
            if is_tensor(value.type):
                stem = self.shapes[value] = f"a{number}"
                self.line(f"h{stem}, t{stem}, p{stem} = args[{number}]")
                sizes[number] = self.unpack(f"d{stem}", len(dims_of(value.type)), f"h{stem}")
                self.normalise(value, stem, sizes[number])
        for step in self.plan.steps:
            size = sizes[step.argument][step.dim]
            if not isinstance(step, Solve):
                self.require(f"{self.expr(step.expr)} == {size}")
            elif step.factor.constant == 1:
                self.assign(step.symbol, size if step.rest.constant == 0 else f"{size} - {self.expr(step.rest)}")
            else:
                factor, left = self.expr(step.factor), f"({size} - {self.expr(step.rest)})"
                self.require(f"{factor} != 0 and {left} % {factor} == 0")
                self.flush()
                self.assign(step.symbol, f"{left} // {factor}")

    def normalise(self, value: SSAValue, stem: str, sizes: Sequence[str]) -> None:
        """Replace strides that address nothing; without a `host.bind` demand that they are the contiguous ones."""
        if sizes:
            small = " or ".join(f"{size} < 2" for size in sizes)
            self.line(f"if {small}: t{stem} = normalised(h{stem}, t{stem})")
        if value not in self.plan.bound_tensors:
            self.require(f"t{stem} == {contiguous_code(sizes)}")

    def block(self, block: Block) -> None:
        for op in block.ops:
            step = _STEPS.get(type(op))
            if step is None:
                raise TilewrightError(f"a launch plan cannot hold {op.name}", location_of(op))
            step(self, op)
        self.flush()

    def bind(self, op: BindOp) -> None:
        stem = self.shapes[op.value]
        self.flush()
        for symbol, stride in zip(op.strides, self.unpack(f"t{stem}", len(op.strides), f"t{stem}"), strict=True):
            self.assign(symbol.data, stride)
        self.assign(op.base.data, f"p{stem} % {self.plan.alignment}")

    def let(self, op: LetOp) -> None:
        self.assign(op.symbol.data, self.expr(op.value.data))
        self.require(f"{-VALUE_LIMIT} <= {self.names[op.symbol.data]} < {VALUE_LIMIT}")
        self.flush()  # before anything is computed of it

    def guard(self, op: GuardOp) -> None:
        self.require(self.relation(op.relation.data))

    def output(self, op: OutputOp) -> None:
        self.flush()
        number = self.plan.slots[op.res].number
        stem = self.shapes[op.res] = f"r{number}"
        sizes = self.made(stem, dims_of(op.res.type))
        self.line(f"if outs is None: t{stem} = {contiguous_code(sizes)}; p{stem} = 0")
        self.line("else:")
        self.indent += 1
        self.line(f"g{stem}, t{stem}, p{stem} = outs[{number}]")
        self.require(f"g{stem} == h{stem}")
        self.flush()
        self.normalise(op.res, stem, sizes)
        self.flush()
        self.indent -= 1

    def alloc(self, op: AllocOp) -> None:
        self.flush()
        stem = self.shapes[op.res] = f"s{self.plan.slots[op.res].number}"
        sizes = self.made(stem, op.memory_dims)
        inside = {d: op.order[place + 1 :] for place, d in enumerate(op.order)}
        strides = tuple_code(["*".join(sizes[i] for i in inside[d]) or "1" for d in range(len(sizes))])
        self.line(f"t{stem} = {strides}; p{stem} = 0")

    def made(self, stem: str, dims: Sequence[Expr]) -> list[str]:
        """Compute the shape of a tensor that the plan makes; its sizes, as variables or numbers."""
        sizes: list[str] = []
        for dim, size in enumerate(dims):
            code = self.expr(size)
            if not code.isidentifier() and not code.isdecimal():
                self.line(f"d{stem}_{dim} = {code}")
                code = f"d{stem}_{dim}"
            sizes.append(code)
        self.line(f"h{stem} = {tuple_code(sizes)}")
        return sizes

    def dispatch(self, op: DispatchOp) -> None:
        self.flush()
        if op.res is not None:
            self.shapes[op.res] = f"c{self.plan.slots[op.res].number}"
        for number, (predicates, block) in enumerate(case_blocks(op)):
            condition = " and ".join(self.relation(r) for r in predicates) or "True"
            self.line(f"{'elif' if number else 'if'} {condition}:")
            self.indent += 1
            self.line("pass")
            before = set(self.assigned)
            self.block(block)
            # What one case binds, the next may bind again.
            self.assigned = before
            self.indent -= 1

    def yielded(self, op: YieldOp) -> None:
        """The dispatch gives this tensor: its strides, its base and its number are those of the result."""
        self.flush()
        dispatch = op.parent_op()
        assert isinstance(dispatch, DispatchOp)
        assert dispatch.res is not None
        given, stem, own = self.plan.slots[op.value], self.shapes[dispatch.res], self.shapes[op.value]
        number = f"n{own}" if given.kind == "chosen" else str(self.plan.place(given))
        self.line(f"t{stem} = t{own}; p{stem} = p{own}; n{stem} = {number}")

    def launch(self, op: LaunchOp) -> None:
        self.flush()
        site = self.plan.site_of[op]
        self.line(f"g = {self.expr(self.plan.sites[site].grid)}")
        self.line(f"if g > 0: launches.append(PlannedLaunch({site}, g))")


_STEPS: dict[type[Operation], Callable[[_Writer, Any], None]] = {
    BindOp: _Writer.bind,
    GuardOp: _Writer.guard,
    LetOp: _Writer.let,
    OutputOp: _Writer.output,
    AllocOp: _Writer.alloc,
    DispatchOp: _Writer.dispatch,
    LaunchOp: _Writer.launch,
    YieldOp: _Writer.yielded,
}


def generate(plan: HostPlan) -> tuple[str, Callable[[Sequence[Layout | None], Sequence[Layout] | None], Decision]]:
    """(source, function) of the plan; the function is `HostPlan.run`."""
    writer = _Writer(plan)
    for symbol in sorted(writer.sometimes):
        writer.line(f"{writer.names[symbol]} = 0")
    for number in range(len(plan.scratch)):
        writer.line(f"hs{number} = None")
    for number in range(plan.choices):
        writer.line(f"nc{number} = -1")
    writer.line("launches = []")
    writer.arguments()
    writer.block(plan.func.body.block)
    symbols = tuple_code([writer.names[s] for s in plan.symbols])
    results = tuple_code([f"hr{n}" for n in range(len(plan.results))])
    scratch = tuple_code([f"hs{n}" for n in range(len(plan.scratch))])
    chosen = tuple_code([f"nc{n}" for n in range(plan.choices)])
    if plan.spare:
        scratch = f"needed({scratch}, launches, {chosen})"
    writer.line(f"return Decision({symbols}, {results}, {scratch}, launches, {chosen})")
    source = "\n".join(["def plan(args, outs):", *writer.lines, ""])

    def fail(arguments: Sequence[Layout | None], results: Sequence[Layout] | None) -> Decision:
        """Explain: the interpreter raises. That it would not is a difference between the two, and told as such."""
        plan.interpret(arguments, results)
        raise TilewrightError(f"@{plan.entry}: the plan refuses a call that its IR allows (a bug in Tilewright)")

    extra = {
        "Decision": Decision,
        "PlannedLaunch": PlannedLaunch,
        "normalised": normalised,
        "fail": fail,
        "needed": plan.needed,
    }
    compiled = define(source, "plan", extra)

    def run(arguments: Sequence[Layout | None], results: Sequence[Layout] | None) -> Decision:
        if len(arguments) != len(plan.arguments) or (results is not None and len(results) != len(plan.results)):
            return fail(arguments, results)
        try:
            return compiled(arguments, results)
        except (ZeroDivisionError, TypeError, ValueError):
            # A zero divisor in a guard, a scalar where a tensor belongs, or a tensor of another rank.
            return fail(arguments, results)

    return source, run
