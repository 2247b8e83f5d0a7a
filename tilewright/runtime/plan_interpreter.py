"""A launch plan by walking its IR: the meaning of each `host` op, and the text of every failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.ir import Block, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import AllocOp, BindOp, DispatchOp, GuardOp, LaunchOp, LetOp, OutputOp, YieldOp
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.location import location_of
from tilewright.dialects.sym import Relation, dims_of
from tilewright.runtime.binding import Environment, Layout, Source, contiguous, normalised, solve_sizes
from tilewright.runtime.plan import Decision, HostPlan, PlannedLaunch, Slot

if TYPE_CHECKING:
    from tilewright.runtime.plan import Parameter


@dataclass
class _Call:
    plan: HostPlan
    given: Sequence[Layout] | None
    environment: Environment = field(default_factory=Environment)
    layouts: dict[Slot, Layout] = field(default_factory=dict[Slot, Layout])
    launches: list[PlannedLaunch] = field(default_factory=list[PlannedLaunch])
    memory: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    """Sizes of scratch with its padding, by number."""
    chosen: dict[int, Slot] = field(default_factory=dict[int, Slot])
    """What each dispatch gives, by number; never a chosen slot itself."""

    def block(self, block: Block) -> None:
        for op in block.ops:
            step = _STEPS.get(type(op))
            if step is None:
                raise TilewrightError(f"a launch plan cannot hold {op.name}", location_of(op))
            step(self, op)

    def bind(self, op: BindOp) -> None:
        slot = self.plan.slots[op.value]
        layout = self.layouts[slot]
        for dim, (symbol, stride) in enumerate(zip(op.strides, layout.strides, strict=True)):
            self.environment.bind(symbol.data, stride, Source(str(slot), "stride", dim))
        self.environment.bind(op.base.data, layout.pointer % self.plan.alignment, Source(str(slot), "base"))

    def let(self, op: LetOp) -> None:
        value = op.value.data
        source = Source("", "let", equation=f"host.let {op.symbol.data} = {value}")
        self.environment.bind(op.symbol.data, value.evaluate(self.environment.values), source)

    def guard(self, op: GuardOp) -> None:
        relation = op.relation.data
        if not relation.holds(self.environment.values):
            raise TilewrightError(f"{op.message.data}, got {self.values_in(relation)}")

    def values_in(self, relation: Relation) -> str:
        """`M + N = 9 with M = 3 from argument 0 dim 0, N = 6 from ...`: sides that are not plain, then symbols."""
        described = self.environment.describe(sorted(relation.symbols))
        sides = [s for s in (relation.lhs, relation.rhs) if s.symbols and str(s) not in s.symbols]
        values = " and ".join(f"{side} = {side.evaluate(self.environment.values)}" for side in sides)
        return f"{values} with {described}" if values else described

    def output(self, op: OutputOp) -> None:
        slot = self.plan.slots[op.res]
        shape = tuple(d.evaluate(self.environment.values) for d in dims_of(op.res.type))
        if self.given is None:
            self.layouts[slot] = Layout(shape, contiguous(shape), 0)
            return
        got = self.given[slot.number]
        if got.shape != shape:
            names = sorted(frozenset[str]().union(*(d.symbols for d in dims_of(op.res.type))))
            described = f" ({self.environment.describe(names)})" if names else ""
            raise TilewrightError(f"{slot}: expected shape {shape}{described}, got {got.shape}")
        self.layouts[slot] = got._replace(strides=normalised(got.shape, got.strides))
        self.expect_contiguous(op.res, slot)

    def alloc(self, op: AllocOp) -> None:
        slot, values = self.plan.slots[op.res], self.environment.values
        shape = tuple(d.evaluate(values) for d in dims_of(op.res.type))
        memory = self.memory[slot.number] = tuple(d.evaluate(values) for d in op.memory_dims)
        strides = dict(zip(op.order, contiguous([memory[d] for d in op.order]), strict=True))
        self.layouts[slot] = Layout(shape, tuple(strides[d] for d in range(len(shape))), 0)

    def dispatch(self, op: DispatchOp) -> None:
        for _, predicates, region in op.arms:
            if all(r.holds(self.environment.values) for r in predicates):
                self.block(region.block)
                last = region.block.last_op
                if op.res is not None and isinstance(last, YieldOp):
                    slot, given = self.plan.slots[op.res], self.plan.slots[last.value]
                    self.layouts[slot] = self.layouts[given]
                    self.chosen[slot.number] = self.chosen[given.number] if given.kind == "chosen" else given
                return

    def launch(self, op: LaunchOp) -> None:
        site = self.plan.site_of[op]
        grid = self.plan.sites[site].grid.evaluate(self.environment.values)
        if grid > 0:
            self.launches.append(PlannedLaunch(site, grid))

    def expect_contiguous(self, value: SSAValue, slot: Slot) -> None:
        """A tensor whose strides nobody names has no other than the contiguous ones."""
        layout = self.layouts[slot]
        if value not in self.plan.bound_tensors and layout.strides != contiguous(layout.shape):
            raise TilewrightError(
                f"{slot}: expected a contiguous tensor, got shape {layout.shape} with strides {layout.strides}"
            )


_STEPS: dict[type[Operation], Callable[[_Call, Any], None]] = {
    BindOp: _Call.bind,
    GuardOp: _Call.guard,
    LetOp: _Call.let,
    OutputOp: _Call.output,
    AllocOp: _Call.alloc,
    DispatchOp: _Call.dispatch,
    LaunchOp: _Call.launch,
    YieldOp: lambda call, op: None,  # the dispatch looks at it
}


def interpret(plan: HostPlan, arguments: Sequence[Layout | None], results: Sequence[Layout] | None) -> Decision:
    """What a call does, or a `TilewrightError` that says why it cannot be made."""
    call = _Call(plan, results)
    _check_arguments(plan, arguments, results)
    layouts = {n: a._replace(strides=normalised(a.shape, a.strides)) for n, a in enumerate(arguments) if a is not None}
    solve_sizes(plan.steps, layouts, call.environment)
    for number, value in enumerate(plan.func.body.block.args):
        if is_tensor(value.type):
            slot = Slot("argument", number)
            call.layouts[slot] = layouts[number]
            call.expect_contiguous(value, slot)
    call.block(plan.func.body.block)
    values = call.environment.values
    chosen = tuple(plan.place(call.chosen[n]) if n in call.chosen else -1 for n in range(plan.choices))
    scratch = tuple(call.memory.get(n) for n in range(len(plan.scratch)))
    return Decision(
        tuple(values.get(s, 0) for s in plan.symbols),
        tuple(call.layouts[Slot("result", n)].shape for n in range(len(plan.results))),
        plan.needed(scratch, call.launches, chosen),
        call.launches,
        chosen,
    )


def _check_arguments(plan: HostPlan, arguments: Sequence[Layout | None], results: Sequence[Layout] | None) -> None:
    if len(arguments) != len(plan.arguments):
        raise TilewrightError(f"@{plan.entry}: expected {len(plan.arguments)} arguments, got {len(arguments)}")
    for number, (parameter, layout) in enumerate(zip(plan.arguments, arguments, strict=True)):
        _check_rank(f"argument {number} ({parameter.name!r})", parameter, layout)
    if results is None:
        return
    if len(results) != len(plan.results):
        raise TilewrightError(f"@{plan.entry}: expected {len(plan.results)} results, got {len(results)}")
    for number, (parameter, layout) in enumerate(zip(plan.results, results, strict=True)):
        _check_rank(f"result {number}", parameter, layout)


def _check_rank(what: str, parameter: Parameter, layout: Layout | None) -> None:
    if (parameter.dims is None) is not (layout is None):
        raise TilewrightError(f"{what}: expected a {'scalar' if parameter.dims is None else 'tensor'}")
    if layout is not None and parameter.dims is not None and len(layout.shape) != len(parameter.dims):
        raise TilewrightError(f"{what}: expected {len(parameter.dims)} dims, got {len(layout.shape)}")
