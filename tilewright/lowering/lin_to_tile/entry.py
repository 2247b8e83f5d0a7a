"""Lowers one function: kernels for its groups, and the host function that binds, allocates and launches them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.dialects.assembly import i64_attr
from tilewright.dialects.host import ops as host
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.group import GroupOp
from tilewright.dialects.lin.shapes import as_tensor
from tilewright.dialects.lin.shapes import is_tensor as is_tensor_type
from tilewright.dialects.sym import (
    Answer,
    CastOp,
    Expr,
    Facts,
    Relation,
    RequireOp,
    SymbolOp,
    dims_of,
    mod,
)
from tilewright.dialects.sym.analysis import declared_symbols, module_facts
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType, buf_type, strided
from tilewright.lowering.host_plan import CHOOSES, SERVES, WIDENS
from tilewright.lowering.host_variants import element_bytes
from tilewright.lowering.lin_to_tile.candidates import Candidates
from tilewright.lowering.lin_to_tile.group_space import GroupSpace, Kind, analyse
from tilewright.lowering.lin_to_tile.in_loads import Loading, find_loadings
from tilewright.lowering.lin_to_tile.reduced_schedules import ReducedLowering, dispatch
from tilewright.lowering.lin_to_tile.reduced_space import ReducedContraction, reduced_contraction
from tilewright.lowering.lin_to_tile.repack import (
    copy_kernel,
    direct_layouts,
    mapped_layouts,
    operand_axes,
    own_axis,
    paired_kernel,
    reads_along_sum,
    row_multiple,
    sum_axis,
    worth_copying,
)
from tilewright.lowering.lin_to_tile.request import Request, Schedule
from tilewright.lowering.lin_to_tile.schedules import loading_schedules, schedules, takes_matrix_instructions
from tilewright.lowering.lin_to_tile.split import Split
from tilewright.lowering.lin_to_tile.tile_sizes import MAP_BYTES, ROW_BYTES
from tilewright.lowering.targets.limits import Limits
from tilewright.passes.core import error_at
from tilewright.passes.remarks import remark


def is_tensor(value: SSAValue) -> bool:
    """Whether a value is a tensor, not a scalar."""
    return is_tensor_type(value.type)


@dataclass(frozen=True)
class Paired:
    """The launch that copies both operands of a product."""

    kernel: str
    arguments: Sequence[SSAValue]
    scratch: Sequence[host.AllocOp]
    """Where the copies go. No case of a dispatch sees what another one allocates, so these stand before them; a call
    that takes other cases has no memory for them."""
    assumes: tuple[Relation, ...]
    when: tuple[Relation, ...]

    def launch(self) -> host.LaunchOp:
        """The op."""
        launch = host.LaunchOp(self.kernel, self.arguments, assumes=self.assumes)
        launch.attributes[WIDENS] = ArrayAttr([])
        return launch


@dataclass
class EntryLowering:
    """State while one function is lowered."""

    module: ModuleOp
    function: func.FuncOp
    given_tiles: tuple[int, ...]
    arch: str | None = None
    max_workspace: int | None = None
    processors: int = Limits.processors
    facts: Facts = field(init=False)
    body: Block = field(init=False)
    storage: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    layout: dict[SSAValue, BufType] = field(default_factory=dict[SSAValue, BufType])
    base: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    kernels: list[KernelOp] = field(default_factory=list[KernelOp])
    loadings: dict[Operation, Loading] = field(default_factory=dict[Operation, Loading])
    """For a group that makes an operand, and for the product that may do it: how."""

    def __post_init__(self) -> None:
        self.facts = module_facts(self.module)
        declared = declared_symbols(self.module)
        self.names = set(declared)
        self.examples = {name: op.likely_values[0] for name, op in declared.items() if op.likely_values}

    # Names and storage ----------------------------------------------------------------------------------
    def fresh(self, wanted: str) -> str:
        """A symbol name that is not taken yet."""
        name, n = wanted, 0
        while name in self.names:
            n += 1
            name = f"{wanted}_{n}"
        self.names.add(name)
        return name

    def declare(self, name: str, source: str, least: int | None = None, divisor: int = 1) -> str:
        """Declares a symbol of the host at the end of the module's symbols."""
        name = self.fresh(name)
        op = SymbolOp(name, source=source, min=least, multiple_of=divisor if divisor > 1 else None)
        anchor = next(o for o in self.module.body.block.ops if not isinstance(o, SymbolOp))
        self.module.body.block.insert_op_before(op, anchor)
        return name

    def bind(self, value: SSAValue, name: str) -> BufType:
        """Names strides and base of a tensor that lives outside; the buffer type that kernels see."""
        type_ = as_tensor(value.type)
        sizes = dims_of(type_)
        strides = [self.declare(f"{name}_s{d}", "stride") for d in range(len(sizes))]
        base = self.declare(f"{name}_base", "base")
        self.base[value] = base
        self.body.add_op(host.BindOp(value, strides, base))
        return buf_type(sizes, type_.element_type, "global", strided([Expr.symbol(s) for s in strides]))

    def resolve(self, value: SSAValue) -> SSAValue:
        """Sees through `sym.cast`, whose obligations become requirements of the module."""
        while isinstance(value.owner, CastOp):
            value = value.owner.source
        return value

    # The function ---------------------------------------------------------------------------------------
    def lower(self) -> host.FuncOp:
        """Writes the host function and the kernels."""
        source = self.function.body.block
        returned = source.last_op
        if not isinstance(returned, func.ReturnOp):
            raise error_at(self.function, "expected the function to end in func.return")
        self.body = Block(arg_types=[a.type for a in source.args])
        for n, (old, new) in enumerate(zip(source.args, self.body.args, strict=True)):
            new.name_hint = old.name_hint or f"arg{n}"
            self.storage[old] = new
            if is_tensor(old):
                self.layout[old] = self.bind(new, new.name_hint)
        results = [self.resolve(v) for v in returned.arguments]
        waiting = self.outputs(results, [v.type for v in returned.arguments])
        if not self.given_tiles:
            self.loadings = find_loadings(source, self.facts, self.arch, self.max_workspace, self.resolve)
        number = 0
        for op in source.ops:
            if isinstance(op, GroupOp | GenericOp):
                self.lower_with_operands(op, number)
                number += 1
            elif isinstance(op, CastOp):
                for obligation in op.obligations():
                    self.require(RequireOp(obligation), op)
            elif not isinstance(op, func.ReturnOp | RequireOp):
                raise error_at(
                    op, f"lin-to-tile expects lin.generic and lin.group (run decompose first), got {op.name}"
                )
            elif isinstance(op, RequireOp):
                self.require(op.clone(), op)
        for value, output in waiting:
            self.copy_result(value, output, number)
            number += 1
        return host.FuncOp(self.function.sym_name.data, [o.type for o in returned.arguments], Region(self.body))

    def require(self, op: RequireOp, origin: Operation) -> None:
        """States a requirement of the function in the module, at the place of the op that it comes from."""
        op.location = origin.location
        self.module.body.block.insert_op_before(op, self.function)

    def outputs(self, results: Sequence[SSAValue], types: Sequence[Attribute]) -> list[tuple[SSAValue, SSAValue]]:
        """Makes the output buffers, each for the value that is computed into it; returns the results that are copies
        of something else."""
        copies: list[tuple[SSAValue, SSAValue]] = []
        for n, (value, type_) in enumerate(zip(results, types, strict=True)):
            if not is_tensor_type(type_):
                raise error_at(self.function, f"result {n}: expected a tensor, got {type_}")
            op = host.OutputOp(n, type_)
            op.res.name_hint = f"out{n}"
            self.body.add_op(op)
            buffer = self.bind(op.res, f"out{n}")
            if value in self.storage:
                copies.append((value, op.res))
                self.layout[op.res] = buffer
            else:
                self.storage[value] = op.res
                self.layout[value] = buffer
        return copies

    def lower_with_operands(self, op: GroupOp | GenericOp, number: int) -> None:
        """One group, or a case for it where a product may compute its operands itself: what makes such an operand has
        nothing to do then, and the product has kernels of another kind."""
        loading = self.loadings.get(op)
        if loading is None:
            self.lower_group(op, number)
            return
        inside: list[Operation] = []
        if op not in loading.makers:
            name, (outer, results) = f"{self.function.sym_name.data}_{number}_loads", (loading.outer, loading.results)
            loading.say(op)
            inside.append(self.emit(op, loading.space, dict(outer), dict(results), name, loading_schedules))
            loading.erase()
        if loading.when is None:
            self.body.add_ops(inside)
            return
        self.lower_group(op, number)
        self.body.add_op(loading.choice(inside, self.body.last_op))

    def lower_group(self, op: GroupOp | GenericOp, number: int) -> None:
        """One group: its kernels and its launch (or the dispatch over its schedules)."""
        if isinstance(op, GenericOp):
            generics, yielded, results = [op], [op.result], [op.result]
            outer: dict[SSAValue, SSAValue] = {v: self.resolve(v) for v in op.ins}
        else:
            generics = [g for g in op.body.block.ops if isinstance(g, GenericOp)]
            yielded, results = list(op.yielded), list(op.outs)
            outer = {a: self.resolve(v) for a, v in zip(op.body.block.args, op.ins, strict=True)}
        inside = {g.result for g in generics}
        space = analyse(generics, [v for v in dict.fromkeys(yielded) if v in inside])
        named: dict[SSAValue, SSAValue] = dict(zip(yielded, results, strict=True))
        name = f"{self.function.sym_name.data}_{number}"
        odd = any(v not in inside for v in yielded) or len(named) < len(yielded)
        reduced = reduced_contraction(space) if space.kind is Kind.UNSUPPORTED and not odd else None
        if reduced is not None:
            self.emit_reduced(op, reduced, outer, named, name)
        elif space.kind is Kind.UNSUPPORTED or odd:
            self.lower_separately(op, generics, outer, yielded, results, number)
        else:
            self.body.add_op(self.emit(op, space, outer, named, name))

    def lower_separately(
        self,
        op: Operation,
        generics: Sequence[GenericOp],
        outer: dict[SSAValue, SSAValue],
        yielded: Sequence[SSAValue],
        results: Sequence[SSAValue],
        number: int,
    ) -> None:
        """Each generic as a kernel of its own, through scratch."""
        made: dict[SSAValue, SSAValue] = {}
        for generic in generics:
            at = [r for y, r in zip(yielded, results, strict=True) if y is generic.result]
            made[generic.result] = at[0] if at else generic.result
        waiting: list[tuple[SSAValue, SSAValue]] = []
        for n, generic in enumerate(generics):
            space = analyse([generic], [generic.result])
            sources = {v: outer.get(v, made.get(v, v)) for v in generic.ins}
            assert space.kind is not Kind.UNSUPPORTED  # one generic has no dims that could get in each other's way
            name = f"{self.function.sym_name.data}_{number}_{n}"
            self.body.add_op(self.emit(op, space, sources, {generic.result: made[generic.result]}, name))
        for y, r in zip(yielded, results, strict=True):
            source = outer.get(y, made.get(y, y))
            if source is not r:
                waiting.append((source, r))
        for n, (source, result) in enumerate(waiting):
            self.place(result)
            self.copy_value(source, self.storage[result], self.layout[result], f"{number}_copy{n}")

    def place(self, value: SSAValue) -> None:
        """Gives a value that is no output scratch: contiguous, or with padded rows for tensor maps."""
        if value in self.storage:
            return
        type_ = as_tensor(value.type)
        op = host.AllocOp(type_, row_multiple(value, self.arch))
        op.res.name_hint = value.name_hint or "scratch"
        self.body.add_op(op)
        sizes = dims_of(type_)
        self.storage[value] = op.res
        self.layout[value] = buf_type(sizes, type_.element_type, "global", strided(op.strides))

    def written(self, space: GroupSpace, value: SSAValue) -> BufType:
        """The memory of a result as its kernel sees it. An elementwise kernel sees rows of scratch with their padding:
        so it writes whole words, and what they hold past the end of a row nobody reads."""
        alloc, layout = self.storage[value].owner, self.layout[value]
        if space.kind is not Kind.ELEMENTWISE or not isinstance(alloc, host.AllocOp) or alloc.row_multiple == 1:
            return layout
        return buf_type(alloc.memory_dims, layout.element, "global", layout.layout)

    def emit(
        self,
        op: Operation,
        space: GroupSpace,
        outer: dict[SSAValue, SSAValue],
        results: dict[SSAValue, SSAValue],
        name: str,
        find: Callable[[Request], list[Schedule]] = schedules,
    ) -> Operation:
        """Kernels for a space, whose values `outer` (read) and `results` (written) map to values of the function; the
        launch of what `find` finds for it."""
        request, stored = self.request(op, space, outer, results, name)
        used = [v for v, _ in request.inputs]
        # The order of the kernel's arguments: buffers read, buffers written, scalars.
        buffers, scalars = [v for v in used if is_tensor(v)], [v for v in used if not is_tensor(v)]
        read = [*buffers, *results.values(), *scalars]
        arguments = [stored[v] if v in stored else self.storage[outer.get(v, v)] for v in read]
        found = find(request)
        if space.kind is Kind.ELEMENTWISE and any(t.dims != self.layout[results[v]].dims for v, t in request.outputs):
            found = self.by_rows(request, found)
        for kernel in dict.fromkeys(schedule.kernel for schedule in found if schedule.split is None):
            self.take_kernel(kernel, op, arguments)
        at = dict(zip(read, arguments, strict=True))
        at |= {inner: self.storage[value] for inner, value in results.items()}
        for split in dict.fromkeys(schedule.split for schedule in found):
            if split is not None:
                first = [*(at[v] for v in split.read_first), split.scratch.res, *(at[v] for v in split.scalars_first)]
                self.take_kernel(split.first, op, first)
                self.take_kernel(split.second, op, [split.scratch.res, *(at[v] for v in split.read_second)])
        for symbol, value in dict.fromkeys(let for schedule in found for let in schedule.lets):
            self.body.add_op(host.LetOp(symbol, value))
        return self.launch(found, arguments, read, at)

    def by_rows(self, request: Request, found: Sequence[Schedule]) -> list[Schedule]:
        """For the operand of a product, which is written into padded rows: first the same kernel for inputs whose rows
        are contiguous, wherever they begin, so that it reads them in words too."""
        strides = [t.strides[-1] for _, t in request.inputs if isinstance(t, BufType) and t.strides]
        asked = dict.fromkeys(Relation(stride, "==", Expr.const(1)) for stride in strides)
        answers = [self.facts.prove(r) for r in asked]
        text = "made once, in rows that tensor maps can move: each element is needed by many tiles of the product"
        remark(request.origin, "lin-to-tile", text)
        if Answer.DISPROVED in answers or all(a is Answer.PROVED for a in answers):
            return list(found)
        when = tuple(r for r, a in zip(asked, answers, strict=True) if a is not Answer.PROVED)
        return [replace(found[0], name="rows", when=when), *found]

    def emit_reduced(
        self,
        op: Operation,
        reduced: ReducedContraction,
        outer: dict[SSAValue, SSAValue],
        results: dict[SSAValue, SSAValue],
        name: str,
    ) -> None:
        """The same for a contraction whose result is reduced."""
        request, stored = self.request(op, reduced.space, outer, results, name)
        at = {v: stored[v] if v in stored else outer[v] for v, _ in request.inputs}
        at |= {inner: self.storage[value] for inner, value in results.items()}
        lowering = ReducedLowering(request, reduced, at, lambda kernel, values: self.take_kernel(kernel, op, values))
        cases, lets = lowering.cases()
        for symbol, value in lets:
            self.body.add_op(host.LetOp(symbol, value))
        for each in dispatch(cases):
            self.body.add_op(each)

    def request(
        self,
        op: Operation,
        space: GroupSpace,
        outer: dict[SSAValue, SSAValue],
        results: dict[SSAValue, SSAValue],
        name: str,
    ) -> tuple[Request, dict[SSAValue, SSAValue]]:
        """What the kernels of a space are made from, with its operands aligned and its results placed; and where each
        tensor that it reads is."""
        used = [v for v in outer if any(v in g.ins for g in space.generics)]
        stored = {v: self.storage[outer[v]] for v in used if is_tensor(v)}
        layouts = {v: self.layout[outer[v]] for v in stored}
        given = space.kind is Kind.CONTRACTION and all(v in stored for v in space.contraction.ins)
        if given and not self.given_tiles and takes_matrix_instructions(space, self.arch):
            self.align_operands(op, space, stored, layouts, name)
        inputs = [(v, layouts.get(v, v.type)) for v in used]
        for value in results.values():
            self.place(value)
        outputs = [(inner, self.written(space, value)) for inner, value in results.items()]
        bases = {v: self.base.get(stored[v], "") for v in stored}
        loading = self.loadings.get(op)
        held = Expr.const(0) if loading is None or space is loading.space or op in loading.makers else loading.held
        request = Request(
            name,
            space,
            inputs,
            outputs,
            self.facts,
            self.given_tiles,
            op,
            self.arch,
            bases,
            lambda wanted, least, divisor: self.declare(wanted, "host", least, divisor),
            self.max_workspace,
            held,
            self.processors,
            Candidates(self.examples),
        )
        return request, stored

    def align_operands(
        self,
        op: Operation,
        space: GroupSpace,
        stored: dict[SSAValue, SSAValue],
        layouts: dict[SSAValue, BufType],
        name: str,
    ) -> None:
        """Puts in place of each operand of a contraction that tensor maps may not be able to move what the plan
        chooses: the operand as it is, or a copy with padded rows."""
        operands = [v for v in dict.fromkeys(space.contraction.ins) if v in stored]
        row_major = {v: host.AllocOp(stored[v].type, ROW_BYTES // element_bytes(layouts[v].element)) for v in operands}
        made = dict(row_major)
        if reads_along_sum(space, self.arch):
            for v, alloc in row_major.items():
                rows = sum_axis(space, space.contraction.ins.index(v))
                made[v] = host.AllocOp(alloc.res.type, alloc.row_multiple, rows)
        room = Expr.const(0)
        for v, alloc in made.items():
            room = room + prod(alloc.memory_dims, start=Expr.const(element_bytes(layouts[v].element)))
        elements = sum((prod(dims_of(as_tensor(v.type)), start=Expr.const(1)) for v in operands), Expr.const(0))
        worth = worth_copying(space, self.facts, elements, room, self.max_workspace)
        together = None if worth is None else self.paired(op, space, operands, stored, layouts, row_major, name)
        for number, value in enumerate(operands):
            source, layout, alloc = stored[value], layouts[value], made[value]
            place = space.contraction.ins.index(value)
            if worth is None or space.contraction.accesses[place] is not None or layout.rank < 2:
                continue
            axes = operand_axes(space, place, self.arch)
            along = alloc.order[-1]
            other = own_axis(space, place) if reads_along_sum(space, self.arch) else alloc.order[-2]
            hint = value.name_hint or f"operand{place}"
            direct = direct_layouts(space, place, layouts, self.base.get(source, ""), self.facts, self.arch)
            if any(not asked for _, asked in direct):
                remark(op, "lin-to-tile", f"%{hint} is never copied: tensor maps can move it as it is")
                continue
            copied = " and ".join(map(str, worth)) or "always"
            remark(
                op,
                "lin-to-tile",
                f"%{hint} is copied into rows of multiples of {alloc.row_multiple} elements where tensor maps cannot "
                f"move it as it is: {copied}",
            )
            one, strides = Expr.const(1), list(layout.strides or ())
            names = ["rows", "columns", *(f"axis {axis}" for axis in axes[2:])]
            cases: list[tuple[str, tuple[Relation, ...], Region]] = [
                (names[axes.index(axis)], asked, Region(Block([host.YieldOp(source)]))) for axis, asked in direct
            ]
            copies = {
                turned: copy_kernel(
                    f"{name}_{'turn' if turned else 'pad'}{number}", value, layout, alloc, turned=turned, other=other
                )
                for turned in (False, True)
            }
            for kernel in copies.values():
                self.take_kernel(kernel, op, [source, alloc.res])
            for case, turned, when in (
                ("padded", False, (Relation(strides[along], "==", one),)),
                ("turned", True, (Relation(strides[other], "==", one),)),
                ("gathered", False, ()),
            ):
                scratch = alloc.clone()
                scratch.res.name_hint = f"{hint}_copy"
                launch = host.LaunchOp(copies[turned].sym_name.data, [source, scratch.res], assumes=when)
                launch.attributes[WIDENS] = ArrayAttr([])
                cases.append((case, (*when, *worth), Region(Block([scratch, launch, host.YieldOp(scratch.res)]))))
            cases.append(("as it is", (), Region(Block([host.YieldOp(source)]))))
            if together is not None:
                # First, and under the same predicates for both: what the first one gets, the second one's launch fills.
                body = [together.launch()] if number == 1 else []
                scratch = together.scratch[number]
                cases.insert(0, ("paired", (*together.when, *worth), Region(Block([*body, host.YieldOp(scratch.res)]))))
            dispatch = host.DispatchOp(cases, source.type)
            dispatch.attributes[CHOOSES] = UnitAttr()
            self.body.add_op(dispatch)
            assert dispatch.res is not None
            dispatch.res.name_hint = f"{hint}_used"
            stored[value] = dispatch.res
            layouts[value] = self.bind(dispatch.res, f"{hint}_used")

    def paired(
        self,
        op: Operation,
        space: GroupSpace,
        operands: Sequence[SSAValue],
        stored: Mapping[SSAValue, SSAValue],
        layouts: Mapping[SSAValue, BufType],
        made: Mapping[SSAValue, host.AllocOp],
        name: str,
    ) -> Paired | None:
        """One launch that copies both operands, for matrices whose rows are contiguous and begin where tensor maps
        cannot read them; None where the two are not such, or never."""
        if len(operands) != 2 or any(a is not None for a in space.contraction.accesses):
            return None
        assumed: list[Relation] = []
        odd: list[Relation] = []
        for value in operands:
            layout, base = layouts[value], self.base.get(stored[value], "")
            if layout.rank != 2 or layout.strides is None or not base:
                return None
            axes = operand_axes(space, space.contraction.ins.index(value), self.arch)
            if any(not asked for _, asked in mapped_layouts(layout, base, axes, self.facts)):
                return None  # it is never copied
            multiple = MAP_BYTES // element_bytes(layout.element)
            assumed.append(Relation(layout.strides[1], "==", Expr.const(1)))
            odd.append(Relation(mod(layout.strides[0], multiple), ">=", Expr.const(1)))
        if any(self.facts.prove(r) is Answer.DISPROVED for r in (*assumed, *odd)):
            return None
        if reads_along_sum(space, self.arch) and all(own_axis(space, n) == 1 for n in range(2)):
            return None  # no copy would be contiguous along the sum
        kernel = paired_kernel(f"{name}_pads", [(v, layouts[v], made[v]) for v in operands])
        scratch = [host.AllocOp(made[v].res.type, made[v].row_multiple) for v in operands]
        for value, each in zip(operands, scratch, strict=True):
            each.res.name_hint = f"{value.name_hint or 'operand'}_pair"
            self.body.add_op(each)
        arguments = [*(stored[v] for v in operands), *(each.res for each in scratch)]
        self.take_kernel(kernel, op, arguments)
        return Paired(kernel.sym_name.data, arguments, scratch, tuple(assumed), (*assumed, *odd))

    def take_kernel(self, kernel: KernelOp, origin: Operation, arguments: Sequence[SSAValue]) -> None:
        """Keeps a kernel, whose ops come from `origin` and which is launched on `arguments`."""
        kernel.properties["bases"] = ArrayAttr([StringAttr(self.base.get(a, "")) for a in arguments])
        for inner in kernel.walk():
            inner.location = origin.location
        self.kernels.append(kernel)

    def launch(
        self,
        found: Sequence[Schedule],
        arguments: Sequence[SSAValue],
        read: Sequence[SSAValue] = (),
        at: Mapping[SSAValue, SSAValue] | None = None,
    ) -> Operation:
        """The launch of the only schedule, or the dispatch over several; `read` are the group's values that the
        arguments hold, in the same order, and `at` says where each value of the group is."""
        bodies: list[list[Operation]] = []
        for schedule in found:
            if schedule.split is not None:
                bodies.append(self.launch_parts(schedule, schedule.split, at or {}))
                continue
            launch = host.LaunchOp(schedule.kernel.sym_name.data, arguments, assumes=schedule.when)
            if schedule.mapped or schedule.plain:
                others = [n for n, v in enumerate(read) if v not in schedule.mapped and not schedule.plain]
                launch.attributes[WIDENS] = ArrayAttr([i64_attr(n) for n in others])
            if schedule.serves is not None:
                launch.attributes[SERVES] = StringAttr(schedule.serves)
            bodies.append([launch])
        if len(found) == 1:
            return bodies[0][0]
        dispatch = host.DispatchOp(
            [(s.name, (*s.when, *s.prefers), Region(Block(ops))) for s, ops in zip(found, bodies, strict=True)]
        )
        if any(schedule.prefers for schedule in found):
            dispatch.attributes[CHOOSES] = UnitAttr()
        return dispatch

    def launch_parts(self, schedule: Schedule, split: Split, at: Mapping[SSAValue, SSAValue]) -> list[Operation]:
        """Scratch for the sums of parts, the kernel that makes them, and the one that adds them."""
        scratch = split.scratch.clone()
        scratch.res.name_hint = "partial"
        read = [*(at[v] for v in split.read_first), scratch.res, *(at[v] for v in split.scalars_first)]
        first = host.LaunchOp(split.first.sym_name.data, read, assumes=schedule.when)
        if schedule.mapped or schedule.plain:
            first.attributes[WIDENS] = ArrayAttr([i64_attr(len(split.read_first))])
        second = host.LaunchOp(split.second.sym_name.data, [scratch.res, *(at[v] for v in split.read_second)])
        second.attributes[WIDENS] = ArrayAttr([])
        return [scratch, first, second]

    def copy_result(self, value: SSAValue, output: SSAValue, number: int) -> None:
        """A result that is an argument, or the same value as another result."""
        self.copy_value(value, output, self.layout[output], str(number))

    def copy_value(self, value: SSAValue, target: SSAValue, layout: BufType, number: str) -> None:
        """A kernel that copies a stored value."""
        type_ = as_tensor(value.type)
        dims = tuple(range(len(dims_of(type_))))
        generic = GenericOp.build_from([value], [dims], dims, None, type_, lambda _, args: args[0])
        space = analyse([generic], [generic.result])
        name = f"{self.function.sym_name.data}_{number}"
        request = Request(
            name,
            space,
            [(value, self.layout[value])],
            [(generic.result, layout)],
            self.facts,
            (),
            self.function,
        )
        found = schedules(request)
        arguments = [self.storage[value], target]
        for schedule in found:
            self.take_kernel(schedule.kernel, self.function, arguments)
        self.body.add_op(self.launch(found, arguments))
        generic.drop_all_references()
