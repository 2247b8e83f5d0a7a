"""`tile.copy`: each thread moves its elements, `width` at a time, between memory and registers.

The address of an element is `sum (offset_d + place_d) * stride_d`; the part of it that is the same for all elements of
a thread is computed once, outside the loops. An element of a `clip` dim is moved where `offset_d + place_d < size_d`;
with width > 1 the first of an access decides for all, since the size is a multiple of the width (a fact the schedule
rests on). An `unaligned` access is told how much of the row lies before it and from it on instead. Where load and store
differ in width, a group of the wider one is several accesses of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.async_copy import CpAsyncOp
from tilewright.dialects.simt.memory import (
    UNALIGNED_BYTES,
    LoadOp,
    MisalignedOp,
    Reach,
    RegsAllocOp,
    RegsLoadOp,
    RegsStoreOp,
    StoreOp,
)
from tilewright.dialects.simt.types import RegsType, regs_type
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.types import AnyDistribution, BufType, buffer_type
from tilewright.lowering.tile_to_simt.builder import I32, Builder, Int, constant_of
from tilewright.lowering.tile_to_simt.channels import lower_mapped_copy, lower_matrix_store, panel_of
from tilewright.lowering.tile_to_simt.elements import each_local, first_copy, thread_place
from tilewright.lowering.tile_to_simt.state import Kernel, Slot, element_bytes, element_type, registers_of
from tilewright.passes.core import error_at


@dataclass(frozen=True, slots=True)
class _Access:
    """Where one access goes."""

    address: SSAValue
    mask: SSAValue | None
    reach: Reach | None
    """Of an unaligned one: how many elements of the row lie before it, and from it on."""


@dataclass(slots=True)
class _Memory:
    """The memory side of a copy while loops are entered: the address and the mask so far."""

    pointer: SSAValue
    integer: Int
    """The type of its addresses and strides."""
    strides: list[SSAValue]
    remaining: list[SSAValue | None]
    """For each clipped dim: how far the thread's first element lies before the end."""
    address: SSAValue
    mask: SSAValue | None = None
    group: tuple[int, SSAValue] | None = None
    """The vector dim and the group's place in it, when a group takes several accesses, each with its own mask."""
    row: tuple[int, SSAValue, SSAValue] | None = None
    """Of unaligned accesses: the vector dim, the place in the buffer's row, and how many elements a row has."""
    panel: tuple[int, int, int] | None = None
    """The dim that panels of a slot cut, the elements of a panel along it, and those of a whole panel."""
    inner: bool = False
    """Whether all words that unaligned accesses may touch are known to lie in their rows."""

    def enter(self, builder: Builder, dim: int, place: SSAValue, *, whole: bool = True) -> None:
        """Go on to the local elements at `place` in a dim; not `whole` when `access` splits them further."""
        if not whole:
            self.group = (dim, place)
        elif self.row is None or self.row[0] != dim:
            self.mask = builder.both(self.mask, self._inside(builder, dim, place))
        if self.row is not None and self.row[0] == dim:
            _, first, size = self.row
            self.row = dim, builder.add_int(first, builder.convert(place, self.integer)), size
        self.address = self._at(builder, dim, place)

    def _at(self, builder: Builder, dim: int, place: SSAValue) -> SSAValue:
        return builder.add_int(self.address, self.step(builder, dim, place))

    def step(self, builder: Builder, dim: int, place: SSAValue) -> SSAValue:
        """How far `place` elements along a dim are from its first, where that is a thread's place or a local one."""
        if self.panel is not None and self.panel[0] == dim:
            # Places are powers of two, so that those of thread and register carry nothing into one another's panel.
            _, span, whole = self.panel
            panel = builder.div_unsigned(place, builder.constant(span, I32))
            inner = builder.mod_unsigned(place, builder.constant(span, I32))
            return builder.add_int(builder.mul_int(panel, builder.constant(whole, I32)), inner)
        return builder.mul_int(builder.convert(place, self.integer), self.strides[dim])

    def _inside(self, builder: Builder, dim: int, place: SSAValue) -> SSAValue | None:
        remaining = self.remaining[dim]
        return None if remaining is None else builder.compare("slt", builder.widen(place), remaining)

    def count(self, builder: Builder, width: int) -> SSAValue:
        """How many elements of a group of `width` lie inside, of one whose first does."""
        dim, place = self.group or (0, builder.constant(0, I32))
        remaining = None if self.group is None else self.remaining[dim]
        if remaining is None:
            return builder.constant(width)
        return builder.minimum(builder.sub_int(remaining, builder.widen(place)), builder.constant(width))

    def access(self, builder: Builder, offset: SSAValue, width: int) -> _Access:
        """The access to `width` elements, `offset` elements into the group."""
        address, mask = self.address, self.mask
        if self.group is not None:
            dim, place = self.group
            address = self._at(builder, dim, offset)
            if self.row is None:
                mask = builder.both(mask, self._inside(builder, dim, builder.add_int(place, offset)))
        if self.row is None:
            return _Access(address, mask, None)
        if self.inner:
            return _Access(address, mask, (builder.constant(width), builder.constant(2 * width)))
        _, before, size = self.row
        if self.group is not None:
            before = builder.add_int(before, builder.convert(offset, self.integer))
        return _Access(address, mask, (before, builder.sub_int(size, before)))


def _memory(
    kernel: Kernel,
    value: SSAValue,
    offsets: Sequence[SSAValue],
    places: Sequence[SSAValue],
    bounds: Sequence[str],
    unaligned: int | None,
) -> _Memory | None:
    """The memory side for a global or shared buffer, None for a fragment; `unaligned` is the dim along which global
    memory is accessed from any element on."""
    builder, type_ = kernel.builder, buffer_type(value)
    slot = kernel.slots.get(value)
    if slot is not None:
        return _slot_memory(builder, slot, type_, offsets, places)
    if type_.strides is None:
        return None
    # 32 bits hold any index into shared memory.
    integer = builder.index if type_.space.data == "global" else I32
    strides = [builder.param(s, integer) for s in type_.strides]
    starts = [builder.convert(kernel.index(o), integer) for o in offsets] or [builder.constant(0, integer)] * type_.rank
    firsts = [builder.add_int(a, builder.convert(b, integer)) for a, b in zip(starts, places, strict=True)]
    address = builder.constant(0, integer)
    for first, stride in zip(firsts, strides, strict=True):
        address = builder.add_int(address, builder.mul_int(first, stride))
    remaining: list[SSAValue | None] = [None] * type_.rank
    if type_.space.data != "global":
        return _Memory(kernel.values[value], integer, strides, remaining, address)
    for d, bound in enumerate(bounds):
        if bound == "clip" and d != unaligned:
            remaining[d] = builder.sub_int(builder.param(type_.dims[d]), firsts[d])
    row = None if unaligned is None else (unaligned, firsts[unaligned], builder.param(type_.dims[unaligned]))
    return _Memory(kernel.values[value], integer, strides, remaining, address, row=row)


def _slot_memory(
    builder: Builder, slot: Slot, type_: BufType, offsets: Sequence[SSAValue], places: Sequence[SSAValue]
) -> _Memory:
    """The memory side for a slot's buffer, whose array permutes the chunks of a row by itself."""
    layout, span, rows, panels = panel_of(type_)
    along = layout.along.data
    if offsets:
        raise TilewrightError(f"a copy by threads moves a slot as a whole, got offsets into {type_}")
    # Rows lie one after the other, the last of the other dims fastest.
    steps, row = list[int](), span
    for d in reversed(range(type_.rank)):
        steps.insert(0, 1 if d == along else row)
        row *= 1 if d == along else type_.sizes[d]
    strides = [builder.constant(step, I32) for step in steps]
    panel = None if panels == 1 else (along, span, rows * span)
    memory = _Memory(slot.array, I32, strides, [None] * type_.rank, slot.first, panel=panel)
    for d, place in enumerate(places):
        memory.address = builder.add_int(memory.address, memory.step(builder, d, place))
    return memory


def lower_copy(kernel: Kernel, op: CopyOp) -> None:
    """Add the loads and stores of a scheduled copy."""
    if op.via is not None and op.via.data == "tma":
        lower_mapped_copy(kernel, op)
        return
    if op.via is not None and op.via.data == "stmatrix":
        lower_matrix_store(kernel, op)
        return
    builder, tile = kernel.builder, op.tile_type
    layout = op.distribution
    assert layout is not None  # `check_scheduled` has looked
    load, store = op.widths
    dims = layout.dims
    _check(op, tile, dims)
    if op.unaligned is not None and op.spaces[1] == "global":
        _Words(kernel, op, dims).lower()
        return
    places = [thread_place(builder, dim, size) for dim, size in zip(dims, tile.sizes, strict=True)]
    unaligned = None if op.unaligned is None else op.vector_dim
    source = _memory(kernel, op.source, op.source_offsets, places, op.bound_words, unaligned)
    target = _memory(kernel, op.target, op.target_offsets, places, op.bound_words, unaligned)
    if target is not None:
        target.mask = first_copy(builder, list(zip(dims, tile.sizes, strict=True)))
    for memory, width in ((source, load), (target, store)):
        if width > 1 and memory is not None and (not dims or constant_of(memory.strides[op.vector_dim]) != 1):
            what = f"width {width} needs a stride along dim {op.vector_dim} that is known to be 1"
            raise error_at(op, f"tile.copy: {what}")
    step = max(load if source is not None else 1, store if target is not None else 1)
    moves = _Moves(kernel, op, dims, load, store, step)
    whole = None if unaligned is None or source is None else moves.whole(source)
    if whole is None or source is None:
        moves.add(source, target)
        return
    inner = replace(source, remaining=[None] * tile.rank, inner=True)
    yes, no = Block(), Block()
    for block, memory in ((yes, inner), (no, source)):
        with builder.inside(block):
            moves.add(memory, None if target is None else replace(target))
            builder.add(scf.YieldOp())
    builder.add(scf.IfOp(whole, [], Region(yes), Region(no)))


@dataclass(frozen=True, slots=True)
class _Moves:
    """The loops over a thread's elements."""

    kernel: Kernel
    op: CopyOp
    dims: Sequence[AnyDistribution]
    load: int
    store: int
    step: int
    """The elements of a group: those of the wider access."""

    def whole(self, source: _Memory) -> SSAValue | None:
        """An i1 that holds where all that a thread's unaligned loads may touch lies inside; None for a single load.

        Loads that ask one by one how far they may read have a branch each, behind which the next one waits.
        """
        builder, tile = self.kernel.builder, self.op.tile_type
        places = [self._last(d) for d in range(tile.rank)]
        if not any(places) or source.row is None:
            return None
        condition: SSAValue | None = None
        for remaining, last in zip(source.remaining, places, strict=True):
            if remaining is not None:
                condition = builder.both(condition, builder.compare("slt", builder.constant(last), remaining))
        dim, first, size = source.row
        # The word in front of the first element, and the one behind that of the last group.
        before = builder.compare("sle", builder.constant(self.load - 1, source.integer), first)
        behind = builder.constant(places[dim] + 2 * self.load - 1, source.integer)
        after = builder.compare("sle", behind, builder.sub_int(size, first))
        return builder.both(condition, builder.both(before, after))

    def _last(self, dim: int) -> int:
        """How far a thread's last group lies from its first one along a dim."""
        last, weight = 0, 1
        for n, digit in enumerate(self.dims[dim].factors(self.op.tile_type.sizes[dim])):
            if not digit.is_thread:
                last += weight * (digit.count - (self.step if dim == self.op.vector_dim and n == 0 else 1))
            weight *= digit.count
        return last

    def add(self, source: _Memory | None, target: _Memory | None) -> None:
        """Add them, with what is inside."""
        kernel, op, step = self.kernel, self.op, self.step
        builder, tile = kernel.builder, op.tile_type
        with ExitStack() as loops:
            registers: list[SSAValue] = []
            for d, (dim, size) in enumerate(zip(self.dims, tile.sizes, strict=True)):
                local = loops.enter_context(each_local(builder, dim, size, step=step if d == op.vector_dim else 1))
                registers.append(local.register)
                for memory, width in ((source, self.load), (target, self.store)):
                    if memory is not None and local.place is not None:
                        whole = d != op.vector_dim or (width == step and not op.is_async)
                        memory.enter(builder, d, local.place, whole=whole)
            if op.is_async and source is not None and target is not None:
                _start(builder, source, target, step)
            elif source is not None and target is not None:
                alloc = RegsAllocOp(regs_type([step], element_type(tile.element)))
                builder.add(alloc)
                _move(builder, op, source, self.load, alloc.res, None, loads=True)
                _move(builder, op, target, self.store, alloc.res, None, loads=False)
            elif source is not None:
                places = registers_of(kernel, op.target, registers)
                _move(builder, op, source, self.load, kernel.values[op.target], places, loads=True)
            else:
                assert target is not None  # no copy is between fragments
                places = registers_of(kernel, op.source, registers)
                _move(builder, op, target, self.store, kernel.values[op.source], places, loads=False)


def _start(builder: Builder, source: _Memory, target: _Memory, width: int) -> None:
    """Start an asynchronous copy of one group; zeros for what lies outside, which may be a part of it."""
    zero = builder.constant(0, I32)
    read, write = source.access(builder, zero, width), target.access(builder, zero, width)
    valid = None
    if read.mask is not None:
        valid = builder.select(read.mask, builder.convert(source.count(builder, width), I32), zero)
    with builder.when(write.mask):
        builder.add(CpAsyncOp(source.pointer, read.address, target.pointer, write.address, width, valid))


def _move(
    builder: Builder,
    op: CopyOp,
    memory: _Memory,
    width: int,
    regs: SSAValue,
    registers: Sequence[SSAValue] | None,
    *,
    loads: bool,
) -> None:
    """One group of neighbouring elements between memory and registers, `width` at a time.

    `registers` None: the group fills `regs`, which has one dim. Else it sits at `registers`, neighbouring along the
    copy's vector dim; when that is not the last dim of the array, it goes through registers of its own.
    """
    assert isinstance(regs.type, RegsType)

    def access(array: SSAValue, indices: Sequence[SSAValue], offset: SSAValue) -> None:
        to = memory.access(builder, offset, width)
        if loads:
            builder.add(LoadOp(memory.pointer, to.address, array, indices, width, to.mask, op.other, to.reach))
        else:
            builder.add(StoreOp(array, indices, memory.pointer, to.address, width, to.mask))

    if registers is None:
        with builder.unroll(regs.type.sizes[0] // width) as i:
            first = builder.mul_int(i, builder.constant(width, I32))
            access(regs, [first], first)
        return
    start = builder.constant(0, I32)
    if width == 1 or op.vector_dim == len(registers) - 1:
        access(regs, registers, start)
        return
    line = RegsAllocOp(regs_type([width], regs.type.element))
    builder.add(line)

    def each(move: Callable[[SSAValue, list[SSAValue]], None]) -> None:
        with builder.unroll(width) as i:
            moved = list(registers)
            moved[op.vector_dim] = builder.add_int(moved[op.vector_dim], i)
            move(i, moved)

    def spread(i: SSAValue, place: list[SSAValue]) -> None:
        builder.add(RegsStoreOp(builder.add(RegsLoadOp(line.res, [i])).results[0], regs, place))

    def gather(i: SSAValue, place: list[SSAValue]) -> None:
        builder.add(RegsStoreOp(builder.add(RegsLoadOp(regs, place)).results[0], line.res, [i]))

    zero = [builder.constant(0, I32)]
    if loads:
        access(line.res, zero, start)
        each(spread)
    else:
        each(gather)
        access(line.res, zero, start)


class _Words:
    """A tile in shared memory, stored row by row in words that are aligned in global memory.

    The words begin `skip` elements before the thread's groups of `width` elements, where skip is how many elements the
    tile's row lies past an aligned word. A thread stores the word that its group ends in, read from any element on;
    what remains of a row, `width` elements of the first word and of the one past the last, the threads store one by
    one. All is read before anything is stored, so that no read waits behind a branch.
    """

    def __init__(self, kernel: Kernel, op: CopyOp, dims: Sequence[AnyDistribution]) -> None:
        self.builder, self.op, self.dims = kernel.builder, op, dims
        self.sizes, self.along, self.width = op.tile_type.sizes, op.vector_dim, op.widths[1]
        builder = self.builder
        self.zero = builder.constant(0, I32)
        places = [thread_place(builder, dim, n) for dim, n in zip(dims, self.sizes, strict=True)]
        self.own, places[self.along] = places[self.along], self.zero
        source = _memory(kernel, op.source, op.source_offsets, places, [], None)
        target = _memory(kernel, op.target, op.target_offsets, places, op.bound_words, self.along)
        assert source is not None
        assert target is not None
        target.mask = first_copy(builder, list(zip(dims, self.sizes, strict=True)))
        self.source, self.target = source, target
        if dims[self.along].threads < self.width:
            threads = dims[self.along].threads
            raise error_at(op, f"tile.copy: unaligned stores need {self.width} threads along a row, got {threads}")
        if panel_of(buffer_type(op.source))[3] > 1:
            raise error_at(op, f"tile.copy: unaligned stores read rows of one panel, got {op.source.type}")

    def lower(self) -> None:
        """Add the loads and stores."""
        builder, element = self.builder, element_type(self.op.tile_type.element)
        local = [dim.elements_per_thread(n) for dim, n in zip(self.dims, self.sizes, strict=True)]
        words = RegsAllocOp(regs_type(local, element))
        local[self.along] = 1
        ragged = RegsAllocOp(regs_type(local, element))
        builder.add(words)
        builder.add(ragged)
        # A word lies in two chunks of the slot's row, or in one.
        chunks = builder.constant(self.width - 1, I32), builder.constant(2 * self.width, I32)
        with self._rows() as (source, _, indices, skip):
            with self._groups() as (first, register):
                # The row's first word is not stored: read what is there.
                at = builder.add_int(source.address, builder.maximum(builder.sub_int(first, skip), self.zero))
                place = self._at(indices, register)
                builder.add(LoadOp(source.pointer, at, words.res, place, self.width, reach=chunks))
            at = builder.add_int(source.address, self._ragged(skip))
            builder.add(LoadOp(source.pointer, at, ragged.res, self._at(indices, self.zero)))
        with self._rows() as (_, target, indices, skip):
            row = target.access(builder, self.zero, self.width)
            assert row.reach is not None
            with self._groups() as (group, register):
                first = builder.convert(builder.sub_int(group, skip), target.integer)
                at, left = builder.add_int(row.address, first), builder.sub_int(row.reach[1], first)
                mask = builder.both(row.mask, builder.compare("slt", self.zero, group))
                place = self._at(indices, register)
                builder.add(StoreOp(words.res, place, target.pointer, at, self.width, mask, (first, left)))
            first = builder.convert(self._ragged(skip), target.integer)
            mask = builder.both(row.mask, builder.compare("slt", first, row.reach[1]))
            at = builder.add_int(row.address, first)
            builder.add(StoreOp(ragged.res, self._at(indices, self.zero), target.pointer, at, mask=mask))

    def _at(self, indices: Sequence[SSAValue], register: SSAValue) -> list[SSAValue]:
        """The register `register` along the vector dim of the row at `indices`."""
        return [register if d == self.along else i for d, i in enumerate(indices)]

    @contextmanager
    def _rows(self) -> Generator[tuple[_Memory, _Memory, list[SSAValue], SSAValue]]:
        """Loops over the thread's rows: both sides at the row, its register indices, and its `skip`."""
        builder, source, target = self.builder, replace(self.source), replace(self.target)
        indices: list[SSAValue] = []
        with ExitStack() as loops:
            for d, (dim, n) in enumerate(zip(self.dims, self.sizes, strict=True)):
                if d == self.along:
                    indices.append(self.zero)
                    continue
                local = loops.enter_context(each_local(builder, dim, n))
                indices.append(local.register)
                assert local.place is not None  # it was asked for
                for memory in (source, target):
                    memory.enter(builder, d, local.place)
            skip = builder.add(MisalignedOp(target.pointer, target.address, self.width)).results[0]
            yield source, target, indices, skip

    @contextmanager
    def _groups(self) -> Generator[tuple[SSAValue, SSAValue]]:
        """Loops over the thread's groups of a row: place and register of each."""
        with each_local(self.builder, self.dims[self.along], self.sizes[self.along], step=self.width) as local:
            assert local.place is not None
            yield self.builder.add_int(self.own, local.place), local.register

    def _ragged(self, skip: SSAValue) -> SSAValue:
        """The place of the thread's element of the row's ends: from the first on, then the last ones."""
        builder = self.builder
        number = builder.div_unsigned(self.own, builder.constant(self.width, I32))
        first = builder.sub_int(number, skip)
        last = builder.add_int(first, builder.constant(self.sizes[self.along], I32))
        return builder.select(builder.compare("slt", first, self.zero), last, first)


def _check(op: CopyOp, tile: BufType, dims: Sequence[AnyDistribution]) -> None:
    """Raise unless the distribution fits the tile and vector accesses go along neighbouring elements."""
    if len(dims) != tile.rank:
        raise error_at(op, f"tile.copy: expected a distribution of {tile.rank} dims, got {len(dims)}")
    for size, dim in zip(tile.sizes, dims, strict=True):
        if not dim.fits(size):
            raise error_at(
                op, f"tile.copy: size {size} is no multiple of threads {dim.threads} times vector {dim.vector}"
            )
    size = element_bytes(tile.element) * op.widths[0 if op.spaces[0] == "global" else 1]
    if op.unaligned is not None and size not in UNALIGNED_BYTES:
        expected = ", ".join(map(str, UNALIGNED_BYTES))
        raise error_at(op, f"tile.copy: unaligned accesses take {expected} bytes, got {size}")
