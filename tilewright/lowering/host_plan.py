"""From launches to a plan: guards before anything runs, ordered variants of each kernel, the number of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, cast, get_args

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.host.ops import AllocOp, BindOp, DispatchOp, FuncOp, GuardOp, LaunchOp, LetOp, OutputOp
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.sym import Answer, Expr, Facts, Relation, SymbolOp, dims_of
from tilewright.dialects.sym.analysis import declared_symbols, module_facts
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType
from tilewright.lowering.host_guards import entry_guards
from tilewright.lowering.host_requirements import bound_by, bound_symbols, bounds_of
from tilewright.lowering.host_variants import (
    INDEX_LIMIT,
    Launched,
    Serves,
    Variant,
    at_most,
    compare_costs,
    make_variants,
)
from tilewright.lowering.instantiate import VARIANT_ATTRIBUTE
from tilewright.passes.core import TilewrightPass, error_at


@dataclass(frozen=True)
class HostPlanPass(TilewrightPass):
    """Completes each `host.func`: guards, variants of each launch, grids.

    Adds a `host.guard` for every declared bound and every `sym.require` that the argument shapes do not imply, and for
    every stride or size that a kernel takes for granted. Replaces each `host.launch` (and each `host.dispatch` over
    schedules) by one `host.dispatch` whose cases are schedule times variant, tried in order; a case's predicates are
    what its kernel variant `assumes`, and that 32-bit indices are wide enough where it has them. Writes `grid`, the
    product of the kernel's grid, and guards that it fits. Every argument and result gets a `host.bind`. Relies on
    kernels being in the module, with strides on their global buffers. Launches that have an index width are left.
    """

    name: ClassVar[str] = "host-plan"
    level: ClassVar[str] = "tile"
    anchors: ClassVar[tuple[str, ...]] = ("builtin.module",)

    max_variants: int = 4

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Complete every entry of the module."""
        if self.max_variants < 1:
            raise error_at(op, f"host-plan: max_variants expected at least 1, got {self.max_variants}")
        kernels = {k.sym_name.data: k for k in op.ops if isinstance(k, KernelOp)}
        for func in list(op.ops):
            if isinstance(func, FuncOp):
                _Planner(op, func, kernels, self.max_variants).run()


CHOOSES: Final = "chooses"
"""Discardable attribute of a `host.dispatch`: its predicates only choose (see there)."""
WIDENS: Final = "widens"
"""Discardable attribute of a `host.launch`: the arguments whose accesses variants may widen; all where it is absent."""
SERVES: Final = "serves"
"""Discardable attribute of a `host.launch`: what it has variants for (`host_variants.Serves`); all if it is absent."""


@dataclass
class _Case:
    """One way through nested dispatches: a schedule by name, when it may run, and its straight-line ops.

    Those of the predicates that are in `choices` are no facts for the code, unless a launch assumes them.
    """

    name: str
    predicates: tuple[Relation, ...]
    choices: frozenset[Relation]
    ops: list[Operation]

    @property
    def facts(self) -> tuple[Relation, ...]:
        """The predicates that the code may rely on."""
        launches = [op for op in self.ops if isinstance(op, LaunchOp)]
        common = frozenset[Relation].intersection(*(frozenset(op_assumes(op)) for op in launches)) if launches else ()
        return tuple(p for p in self.predicates if p not in self.choices or p in common)


@dataclass
class _Planner:
    module: ModuleOp
    func: FuncOp
    kernels: dict[str, KernelOp]
    max_variants: int
    facts: Facts = field(init=False)
    bases: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    strides: dict[SSAValue, tuple[Expr, ...]] = field(default_factory=dict[SSAValue, tuple[Expr, ...]])
    answers: dict[Relation, Answer] = field(default_factory=dict[Relation, Answer])
    """What `facts` say of predicates, which cases share."""
    bound: frozenset[str] = frozenset()
    """Symbols that the function gives values to."""
    variants_made: dict[tuple[str, str], tuple[int, tuple[Relation, ...]]] = field(
        default_factory=dict[tuple[str, str], tuple[int, tuple[Relation, ...]]]
    )

    def run(self) -> None:
        self._check_lets()
        block = self.func.body.block
        pending = [op for op in block.ops if isinstance(op, LaunchOp | DispatchOp) and not _complete(op)]
        if not pending:
            return
        guards = entry_guards(self.module, self.func).guards
        self.facts = module_facts(self.module)
        self._bind_tensors()
        self._read_bindings()
        self.bound = frozenset(bound_symbols(self.func))
        self._insert_guards(block, guards)
        self._guard_lets(block)
        for op in pending:
            guards = [g for launch in _launches(op) for g in self._argument_guards(launch)]
            dispatch = self._dispatch(op)
            dispatch.location = op.location
            for guard in guards:
                block.insert_op_before(guard, op)
            block.insert_op_before(dispatch, op)
            if isinstance(op, DispatchOp) and op.res is not None and dispatch.res is not None:
                dispatch.res.name_hint = op.res.name_hint
                if op.res in self.strides:
                    self.strides[dispatch.res], self.bases[dispatch.res] = self.strides[op.res], self.bases[op.res]
                op.res.replace_all_uses_with(dispatch.res)
            block.erase_op(op)

    def _insert_guards(self, block: Block, guards: Sequence[GuardOp]) -> None:
        """Guards come first in the block, after the bindings of arguments that open it; those on symbols that the plan
        gives values to later come right after that."""
        first = block.first_op
        while isinstance(first, BindOp):
            first = first.next_op
        ops = list(block.ops)
        opening = len(ops) if first is None else ops.index(first)
        giver: dict[str, int] = {}
        for number, op in enumerate(ops):
            for symbol in bound_by(op) if isinstance(op, BindOp | LetOp) else ():
                giver.setdefault(symbol, number)
        for guard in guards:
            place = max([opening, *(giver[s] + 1 for s in guard.relation.data.symbols if s in giver)])
            if place == len(ops):
                block.add_op(guard)
            else:
                block.insert_op_before(guard, ops[place])

    def _check_lets(self) -> None:
        """A symbol that the plan computes is declared, as one."""
        declared = declared_symbols(self.module)
        for let in self.func.body.walk():
            if isinstance(let, LetOp):
                symbol = declared.get(let.symbol.data)
                if symbol is None:
                    raise error_at(let, f"no sym.symbol declares {let.symbol.data}")
                if symbol.source_kind != "host":
                    kind = f'has the source "{symbol.source_kind}"'
                    raise error_at(let, f'{let.symbol.data}: expected a symbol of source "host", but it {kind}')

    def _guard_lets(self, block: Block) -> None:
        """What is declared of a symbol that the plan computes holds, or the call fails."""
        declared = declared_symbols(self.module)
        for let in [op for op in block.ops if isinstance(op, LetOp)]:
            for each in bounds_of(declared[let.symbol.data]):
                relation = each.relation
                meant = Relation(relation.lhs.substitute({let.symbol.data: let.value.data}), relation.op, relation.rhs)
                if self.facts.prove(meant) is not Answer.PROVED:
                    guard = GuardOp(relation, each.message)
                    guard.location = let.location
                    block.insert_op_after(guard, let)

    def _bind_tensors(self) -> None:
        """Give every argument and result without a `host.bind` one, with symbols that are not taken."""
        taken = {op.symbol for op in self.module.ops if isinstance(op, SymbolOp)} | bound_symbols(self.func)
        bound = {op.value for op in self.func.body.walk() if isinstance(op, BindOp)}
        block, first = self.func.body.block, self.module.body.block.first_op
        outputs = [op.res for op in block.ops if isinstance(op, OutputOp)]
        for value in (*outputs, *reversed([a for a in block.args if isinstance(a.type, TensorType)])):
            if value in bound:
                continue
            names = [*(f"_s{d}" for d in range(len(dims_of(value.type)))), "_base"]
            stem, number = value.name_hint or "t", 0
            while not taken.isdisjoint(f"{stem}{suffix}" for suffix in names):
                number += 1
                stem = f"{value.name_hint or 't'}_{number}"
            symbols = [f"{stem}{suffix}" for suffix in names]
            taken.update(symbols)
            for symbol in symbols:
                declaration = SymbolOp(symbol, source="base" if symbol is symbols[-1] else "stride")
                declaration.location = self.func.location
                assert first is not None  # the function itself is in the module
                self.module.body.block.insert_op_before(declaration, first)
            bind = BindOp(value, symbols[:-1], symbols[-1])
            bind.location = self.func.location
            if isinstance(value.owner, Operation):
                block.insert_op_after(bind, value.owner)
            else:
                assert block.first_op is not None  # a launch is pending
                block.insert_op_before(bind, block.first_op)

    def _read_bindings(self) -> None:
        """Strides and base symbols of every tensor; scratch is contiguous and has none."""
        for op in self.func.body.walk():
            if isinstance(op, BindOp):
                self.bases[op.value] = op.base.data
                self.strides[op.value] = tuple(Expr.symbol(s.data) for s in op.strides)

    def _argument_guards(self, launch: LaunchOp) -> list[GuardOp]:
        """What the kernel's buffer types claim of the tensors that are passed, as far as it is not proved."""
        kernel = self._kernel(launch)
        name = kernel.sym_name.data
        if len(launch.arguments) != len(kernel.arguments):
            wanted = len(kernel.arguments)
            raise error_at(launch, f"@{name}: expected {wanted} arguments, got {len(launch.arguments)}")
        guards: list[GuardOp] = []
        for position, (value, formal) in enumerate(zip(launch.arguments, kernel.arguments, strict=True)):
            which = f"argument {position} of @{name}"
            wanted = formal.type.element if isinstance(formal.type, BufType) else formal.type
            given = value.type.element_type if is_tensor(value.type) else value.type
            if given != wanted or is_tensor(value.type) != isinstance(formal.type, BufType):
                raise error_at(launch, f"{which}: expected {formal.type}, got {value.type}")
            if not isinstance(formal.type, BufType):
                continue
            if formal.type.strides is None:
                raise error_at(kernel, f"{which}: expected a layout with strides")
            dims = dims_of(value.type)
            scratch = value.owner if isinstance(value.owner, AllocOp) else None
            if scratch is not None and scratch.order_of(formal.type.dims, formal.type.strides) is not None:
                continue  # its dims in some order: sizes and strides are the scratch's own
            if scratch is not None and formal.type.dims == scratch.memory_dims:
                dims = scratch.memory_dims
            if len(dims) != formal.type.rank:
                raise error_at(launch, f"{which}: expected {formal.type.rank} dims, got {len(dims)}")
            actual = self.strides.get(value) or (contiguous(dims) if scratch is None else scratch.strides)
            claims = [
                (f"size of dim {d} of {which}", a, b)
                for d, (a, b) in enumerate(zip(dims, formal.type.dims, strict=True))
            ] + [
                (f"stride of dim {d} of {which}", a, b)
                for d, (a, b) in enumerate(zip(actual, formal.type.strides, strict=True))
            ]
            for what, got, wanted in claims:
                relation = Relation(got, "==", wanted)
                if got is wanted or self.facts.prove(relation) is Answer.PROVED:
                    continue
                unbound = sorted(relation.symbols - self.bound)
                if unbound:
                    names = ", ".join(unbound)
                    raise error_at(launch, f"{what}: expected {wanted}, got {got}, and nothing binds {names}")
                guard = GuardOp(relation, f"{got}: expected {wanted} as the {what}")
                guard.location = launch.location
                guards.append(guard)
                self.facts.add(relation)
                self.answers.clear()
        return guards

    def _kernel(self, launch: LaunchOp) -> KernelOp:
        name = launch.kernel.string_value()
        kernel = self.kernels.get(name)
        if kernel is None:
            raise error_at(launch, f"launch of @{name}: there is no such tile.kernel in the module")
        return kernel

    def _dispatch(self, op: Operation) -> DispatchOp:
        cases: list[tuple[str, Sequence[Relation], Region]] = []
        before: list[frozenset[Relation]] = []
        children: dict[tuple[Relation, ...], Facts] = {}
        for schedule in _flatten([op]):
            answers = [self._answer(p, schedule) for p in schedule.predicates]
            if Answer.DISPROVED in answers:
                continue
            asked = tuple(p for p, a in zip(schedule.predicates, answers, strict=True) if a is not Answer.PROVED)
            facts = children.get(schedule.facts)
            if facts is None:
                facts = children[schedule.facts] = self.facts.child()
                for predicate in schedule.facts:
                    facts.add(predicate)
            launches = [each for each in schedule.ops if isinstance(each, LaunchOp)]
            launched = [
                Launched(self._kernel(each), tuple(self.bases.get(a, "") for a in each.arguments), widened(each))
                for each in launches
            ]
            if not launches:
                block, mapping = Block(), dict[SSAValue, SSAValue]()
                for each in schedule.ops:
                    block.add_op(each.clone(mapping))
                cases.append((schedule.name, asked, Region(block)))
            serves = served(launches[0]) if launches else None
            for variant in make_variants(launched, facts, self.max_variants, serves) if launches else ():
                predicates = (*asked, *variant.predicates)
                if any(asked_before.issubset(predicates) for asked_before in before):
                    continue  # where it holds, so does an earlier case
                before.append(frozenset(predicates))
                name = f"{schedule.name}/{variant.name}" if schedule.name else variant.name
                cases.append((name, predicates, self._case(schedule, variant, facts)))
            if not asked and serves in (None, "wide"):
                break
        given = op.res if isinstance(op, DispatchOp) else None
        return DispatchOp(cases, None if given is None else given.type)

    def _answer(self, predicate: Relation, schedule: _Case) -> Answer:
        """What is known of a predicate; one that compares two costs to choose is not worth a proof."""
        compares = predicate.op == "<=" and predicate.rhs.constant is None
        if predicate in schedule.choices and compares and predicate not in schedule.facts:
            return compare_costs(predicate, self.facts)
        if predicate not in self.answers:
            self.answers[predicate] = self.facts.prove(predicate)
        return self.answers[predicate]

    def _case(self, schedule: _Case, variant: Variant, facts: Facts) -> Region:
        """The ops of a schedule with its launches completed for one variant."""
        block = Block()
        mapping: dict[SSAValue, SSAValue] = {}
        launches = [op for op in schedule.ops if isinstance(op, LaunchOp)]
        for op in schedule.ops:
            if not isinstance(op, LaunchOp):
                block.add_op(op.clone(mapping))
                continue
            own = variant.assumes[launches.index(op)]
            name = variant.name if own or len(launches) == 1 else f"general{variant.index_width}"
            kernel = self._kernel(op)
            grid = Expr.const(1)
            for size in kernel.grid.data:
                grid = grid * size
            if at_most(grid, INDEX_LIMIT, facts) is not Answer.PROVED:
                fits = Relation(grid, "<=", Expr.const(INDEX_LIMIT))
                guard = GuardOp(fits, f"{grid}: expected at most {INDEX_LIMIT} blocks of @{kernel.sym_name.data}")
                guard.location = op.location
                block.add_op(guard)
            launch = LaunchOp(
                op.kernel.string_value(),
                [mapping.get(a, a) for a in op.arguments],
                grid=grid,
                index_width=variant.index_width,
                assumes=tuple(dict.fromkeys((*op_assumes(op), *schedule.facts, *own))),
            )
            launch.attributes[VARIANT_ATTRIBUTE] = StringAttr(self._unique_name(launch, name))
            launch.location = op.location
            block.add_op(launch)
        return Region(block)

    def _unique_name(self, launch: LaunchOp, name: str) -> str:
        """`name`, or `name_2` and so on where another launch of the kernel has the name for other facts."""
        kernel, facts = launch.kernel.string_value(), op_assumes(launch)
        width = 0 if launch.index_width is None else launch.index_width.value.data
        number, unique = 1, name
        while self.variants_made.setdefault((kernel, unique), (width, facts)) != (width, facts):
            number += 1
            unique = f"{name}_{number}"
        return unique


def op_assumes(launch: LaunchOp) -> tuple[Relation, ...]:
    """The relations that a launch assumes."""
    return tuple(r.data for r in launch.assumes)


def served(launch: LaunchOp) -> Serves | None:
    """What a launch has variants for; None for all."""
    given = launch.attributes.get(SERVES)
    found = given.data if isinstance(given, StringAttr) else None
    return cast("Serves", found) if found in get_args(Serves) else None


def widened(launch: LaunchOp) -> tuple[int, ...] | None:
    """The arguments whose accesses variants may widen; None for all."""
    given = launch.attributes.get(WIDENS)
    if not isinstance(given, ArrayAttr):
        return None
    numbers = cast("ArrayAttr[IntegerAttr]", given)
    return tuple(each.value.data for each in numbers)


def contiguous(dims: Sequence[Expr]) -> tuple[Expr, ...]:
    """Element strides of a contiguous tensor of these sizes, the last dim fastest.

    An empty or size-1 outer dim has no effect on the strides of others, so the plain product is meant wherever a stride
    is ever used (a dim of size 0 makes the tensor empty).
    """
    result: list[Expr] = []
    following = Expr.const(1)
    for dim in reversed(dims):
        result.append(following)
        following = following * dim
    return tuple(reversed(result))


def _launches(op: Operation) -> list[LaunchOp]:
    return [each for each in op.walk() if isinstance(each, LaunchOp)]


def _complete(op: Operation) -> bool:
    return all(launch.index_width is not None and launch.grid is not None for launch in _launches(op))


def _flatten(ops: Sequence[Operation]) -> list[_Case]:
    """Nested dispatches as one ordered list of straight-line cases; the first whose predicates hold is the one that
    the nest would have chosen, since the last case of each dispatch has no predicates."""
    cases = [_Case("", (), frozenset(), [])]
    for op in ops:
        if not isinstance(op, DispatchOp):
            for case in cases:
                case.ops.append(op)
            continue
        arms = [
            _Case(
                f"{name}/{inner.name}" if inner.name else name,
                (*predicates, *inner.predicates),
                inner.choices.union(predicates if CHOOSES in op.attributes else ()),
                inner.ops,
            )
            for name, predicates, region in op.arms
            for inner in _flatten(list(region.block.ops))
        ]
        cases = [
            _Case(
                f"{case.name}/{arm.name}" if case.name else arm.name,
                (*case.predicates, *arm.predicates),
                case.choices | arm.choices,
                [*case.ops, *arm.ops],
            )
            for case in cases
            for arm in arms
        ]
    return cases
