"""Which kernels a contraction gets that reduces its result, and what the plan launches for each of its schedules.

Each schedule of the product that is one kernel reduces its tiles, and kernels that combine the partial results follow.
A product whose sum is cut into parts, and any where `max_workspace` forbids the scratch, has its reductions as kernels
of their own, which read the result from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import prod

from xdsl.dialects.builtin import ArrayAttr, StringAttr, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.assembly import i64_attr
from tilewright.dialects.host import ops as host
from tilewright.dialects.lin.shapes import as_tensor
from tilewright.dialects.sym import Answer, Expr, Relation, dims_of
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType, buf_type, strided
from tilewright.lowering.host_plan import CHOOSES, SERVES, WIDENS
from tilewright.lowering.host_variants import element_bytes
from tilewright.lowering.lin_to_tile.kernel_writer import KernelWriter
from tilewright.lowering.lin_to_tile.reduced_space import ReducedContraction, reducing_space
from tilewright.lowering.lin_to_tile.request import Request, Schedule
from tilewright.lowering.lin_to_tile.schedules import schedules
from tilewright.lowering.lin_to_tile.tile_reducer import Finish, Partial, TileReducer, finishing_kernels
from tilewright.passes.remarks import remark

ROW_BYTES = 16
"""What rows are multiples of in scratch for a result that another kernel reduces."""


@dataclass(frozen=True)
class Case:
    """One way to compute the group: kernels one after the other, and scratch between them."""

    name: str
    predicates: tuple[Relation, ...]
    ops: list[Operation]


@dataclass(frozen=True)
class _Noted(Request):
    """A request that notes which tiles its kernels have."""

    tiles: dict[KernelOp, tuple[str, dict[int, int]]] = field(
        default_factory=dict["KernelOp", "tuple[str, dict[int, int]]"]
    )
    """The suffix of each kernel's name, and its tile."""

    def writer(self, suffix: str, tiles: dict[int, int]) -> KernelWriter:
        made = super().writer(suffix, tiles)
        self.tiles[made.kernel] = suffix, tiles
        return made


@dataclass
class ReducedLowering:
    """The cases of one group, while they are made. `request` has all results of the group as outputs; `at` says where
    each value of the group is; `take` keeps a kernel, which is launched on these values."""

    request: Request
    reduced: ReducedContraction
    at: Mapping[SSAValue, SSAValue]
    take: Callable[[KernelOp, Sequence[SSAValue]], None]
    finishes: dict[KernelOp, list[Finish]] = field(default_factory=dict[KernelOp, "list[Finish]"])
    apart: list[tuple[KernelOp, list[SSAValue]]] = field(default_factory=list["tuple[KernelOp, list[SSAValue]]"])
    """The reductions as kernels of their own, once a case needs them."""
    taken: set[KernelOp] = field(default_factory=set[KernelOp])
    writers: dict[KernelOp, TileReducer] = field(default_factory=dict[KernelOp, TileReducer])

    def cases(self) -> tuple[list[Case], list[tuple[str, Expr]]]:
        """The cases in the order in which they are tried, and the symbols that they need first."""
        request, reduced = self.request, self.reduced
        types = dict(request.outputs)
        stored = {v: types[v] if v in types else scratch_type(_scratch(v)) for v in reduced.wanted}
        shared = {f.name: getattr(request, f.name) for f in fields(Request)}
        shared |= {"name": f"{request.name}_whole", "space": reduced.plain(), "outputs": list(stored.items())}
        plain = _Noted(**shared)
        found: list[Case] = []
        lets: dict[tuple[str, Expr], None] = {}
        for schedule in schedules(plain):
            lets |= dict.fromkeys(schedule.lets)
            if schedule.split is not None:
                found.append(self._separate(schedule, stored))
                continue
            case, limit = self._fused(schedule, self._writer(schedule.kernel, *plain.tiles[schedule.kernel]))
            found.append(case)
            if limit is not None:
                found.append(self._separate(schedule, stored))
        return found, list(lets)

    def _writer(self, plain: KernelOp, suffix: str, tiles: dict[int, int]) -> TileReducer:
        """What writes the kernel that reduces its tiles, made once, in the place of one that does not."""
        request = self.request
        if plain not in self.writers:
            name = f"{request.name}_{suffix}" if suffix else request.name
            made = TileReducer(name, self.reduced, request.inputs, request.outputs, tiles, request.facts)
            made.write_contraction()
            if plain.cluster is not None:
                made.kernel.properties["cluster"] = plain.cluster
            self.writers[plain] = made
            self._explain(made)
        return self.writers[plain]

    def _fused(self, schedule: Schedule, writer: TileReducer) -> tuple[Case, Relation | None]:
        """The kernel that reduces its tiles, in the place of the schedule's, and those that combine what it leaves; the
        relation that keeps scratch within the limit, where the group could do without."""
        request = self.request
        scratch = {p: p.scratch.clone() for p in writer.partials.values()}
        for alloc in scratch.values():
            alloc.res.name_hint = "partial"
        if writer.kernel not in self.finishes:
            types = dict(request.outputs)
            self.finishes[writer.kernel] = finishing_kernels(writer, request.inputs, list(types.items()), request.facts)
            self.take(writer.kernel, self._arguments(writer, {p: p.scratch.res for p in scratch}))
            for finish in self.finishes[writer.kernel]:
                self.take(
                    finish.kernel, [*(p.scratch.res for p in finish.partials), *(self.at[v] for v in finish.read)]
                )
        arguments = self._arguments(writer, {p: a.res for p, a in scratch.items()})
        first = host.LaunchOp(writer.kernel.sym_name.data, arguments, assumes=schedule.when)
        self._narrow(first, schedule)
        ops: list[Operation] = [*scratch.values(), first]
        for finish in self.finishes[writer.kernel]:
            partials = [scratch[p].res for p in finish.partials]
            second = host.LaunchOp(finish.kernel.sym_name.data, [*partials, *(self.at[v] for v in finish.read)])
            second.attributes[WIDENS] = ArrayAttr([])  # what it reads is aligned for certain
            ops.append(second)
        limit = self._limit(list(scratch.values()))
        asked = () if limit is None else (limit,)
        return Case(schedule.name, (*schedule.when, *schedule.prefers, *asked), ops), limit

    def _limit(self, scratch: Sequence[host.AllocOp]) -> Relation | None:
        """What keeps partial results within `max_workspace`, if it may not. Where the reductions are kernels of their
        own and the contraction's result is none of the group's, its own scratch is larger: then nothing is asked."""
        most = self.request.max_workspace
        if most is None or not scratch or any(v not in self.at for v in self.reduced.wanted):
            return None
        room = sum(
            (prod(a.memory_dims, start=Expr.const(element_bytes(a.res.type.element_type))) for a in scratch),
            Expr.const(0),
        )
        relation = Relation(room, "<=", Expr.const(most))
        return None if self.request.facts.prove(relation) is Answer.PROVED else relation

    def _separate(self, schedule: Schedule, stored: Mapping[SSAValue, BufType]) -> Case:
        """The contraction as it is without reductions, its result in memory, and these as kernels of their own."""
        at, ops = dict(self.at), list[Operation]()
        for value in stored:
            if value not in at:
                alloc = _scratch(value)
                alloc.res.name_hint = value.name_hint or "whole"
                at[value] = alloc.res
                ops.append(alloc)
        split = schedule.split
        if split is not None:
            partial = split.scratch.clone()
            partial.res.name_hint = "partial"
            first = host.LaunchOp(
                split.first.sym_name.data, [*(at[v] for v in split.read_first), partial.res], assumes=schedule.when
            )
            if schedule.mapped or schedule.plain:
                first.attributes[WIDENS] = ArrayAttr([i64_attr(len(split.read_first))])
            second = host.LaunchOp(split.second.sym_name.data, [partial.res, *(at[v] for v in split.read_second)])
            second.attributes[WIDENS] = ArrayAttr([])
            ops += [partial, first, second]
            self._take_once(split.first, list(first.arguments))
            self._take_once(split.second, list(second.arguments))
        else:
            read = [v for v, t in self.request.inputs if isinstance(t, BufType)]
            scalars = [v for v, t in self.request.inputs if not isinstance(t, BufType)]
            values = [*read, *stored, *scalars]
            only = host.LaunchOp(schedule.kernel.sym_name.data, [at[v] for v in values], assumes=schedule.when)
            self._narrow(only, schedule)
            self._take_once(schedule.kernel, list(only.arguments))
            ops.append(only)
        for kernel, values in self._reductions(stored):
            self._take_once(kernel, [at[v] for v in values])
            reducing = host.LaunchOp(kernel.sym_name.data, [at[v] for v in values])
            if schedule.plain:
                reducing.attributes[WIDENS] = ArrayAttr([])
            ops.append(reducing)
        return Case(f"{schedule.name}_apart", (*schedule.when, *schedule.prefers), ops)

    def _reductions(self, stored: Mapping[SSAValue, BufType]) -> list[tuple[KernelOp, list[SSAValue]]]:
        """The reductions as kernels of their own, made once, with the values of the group that they take."""
        types, known = dict(self.request.outputs), dict(self.request.inputs)
        for number, family in enumerate(self.reduced.families if not self.apart else ()):
            whole = self.reduced.space
            dims = {g: whole.dims_of_generic[g] for g in (*family.reductions, *family.after)}
            space = reducing_space(dims, dict(enumerate(whole.extents)), family.results)
            read = [v for v in {**known, **stored} if any(v in g.ins for g in space.generics)]
            inputs = [(v, stored.get(v, known.get(v, v.type))) for v in read]
            request = replace(
                self.request,
                name=f"{self.request.name}_reduce{number}",
                space=space,
                inputs=inputs,
                outputs=[(v, types[v]) for v in family.results],
                given=(),
            )
            (schedule,) = schedules(request)  # rows are looped over: no result has columns
            buffers = [v for v, t in inputs if isinstance(t, BufType)]
            scalars = [v for v, t in inputs if not isinstance(t, BufType)]
            self.apart.append((schedule.kernel, [*buffers, *family.results, *scalars]))
        return self.apart

    def _arguments(self, writer: TileReducer, scratch: Mapping[Partial, SSAValue]) -> list[SSAValue]:
        """What the kernel of a writer is launched on."""
        types = dict(self.request.inputs)
        buffers = [self.at[v] for v in writer.read if isinstance(types[v], BufType)]
        scalars = [self.at[v] for v in writer.read if not isinstance(types[v], BufType)]
        written = [scratch[v] if isinstance(v, Partial) else self.at[v] for v in writer.written]
        return [*buffers, *written, *scalars]

    def _narrow(self, launch: host.LaunchOp, schedule: Schedule) -> None:
        """Says which arguments variants may widen, those that no tensor map moves, and what there are variants for."""
        if schedule.mapped or schedule.plain:
            moved = {self.at[v] for v in schedule.mapped}
            others = [n for n, v in enumerate(launch.arguments) if v not in moved and not schedule.plain]
            launch.attributes[WIDENS] = ArrayAttr([i64_attr(n) for n in others])
        if schedule.serves is not None:
            launch.attributes[SERVES] = StringAttr(schedule.serves)

    def _take_once(self, kernel: KernelOp, arguments: Sequence[SSAValue]) -> None:
        if kernel not in self.taken:
            self.taken.add(kernel)
            self.take(kernel, arguments)

    def _explain(self, writer: TileReducer) -> None:
        """What becomes of each reduction."""
        name = writer.kernel.sym_name.data
        for partial in writer.partials.values():
            sizes = " x ".join(map(str, dims_of(partial.scratch.res.type)))
            text = f"@{name} reduces its tiles: {sizes} partial results, combined by a second kernel"
            remark(self.request.origin, "lin-to-tile", text)
        if writer.whole:
            remark(self.request.origin, "lin-to-tile", f"@{name} reduces its tiles, which are whole rows or columns")


def _scratch(value: SSAValue) -> host.AllocOp:
    """Scratch for a result of the contraction that is none of the group's."""
    type_ = as_tensor(value.type)
    return host.AllocOp(type_, ROW_BYTES // element_bytes(type_.element_type))


def scratch_type(alloc: host.AllocOp) -> BufType:
    """Scratch as kernels see it."""
    type_ = as_tensor(alloc.res.type)
    return buf_type(dims_of(type_), type_.element_type, "global", strided(alloc.strides))


def dispatch(cases: Sequence[Case]) -> list[Operation]:
    """The ops of the only case, or the dispatch over several."""
    if len(cases) == 1:
        return cases[0].ops
    op = host.DispatchOp([(case.name, case.predicates, Region(Block(case.ops))) for case in cases])
    op.attributes[CHOOSES] = UnitAttr()
    return [op]
