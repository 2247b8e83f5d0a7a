"""Register arrays: where each access falls, for every iteration of the loops around it.

Register indices are made of constants and `simt.unroll` variables, so all of them are known before the kernel runs.
The storage of an array is (registers, blocks, threads). An access of vectorised loops is mostly a strided view of it:
`acc[i, j]` over two loops is all of the array, transposed, without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.simt.matrix import LdmatrixOp, MmaSyncOp
from tilewright.dialects.simt.memory import LoadOp, RegsAllocOp, RegsLoadOp, RegsStoreOp, StoreOp
from tilewright.dialects.simt.structure import UnrollOp
from tilewright.dialects.simt.sync import ShuffleOp
from tilewright.dialects.simt.types import RegsType
from tilewright.dialects.simt.wgmma import WgmmaOp, WgmmaRegsOp, WgmmaWaitOp
from tilewright.runtime.numerics import Array
from tilewright.runtime.scalar_ops import SCALAR_OPS, carrier_dtype, quiet
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler, Loop
from tilewright.runtime.sim.state import State

POISON = -0x21524111
"""What integer registers hold before they are written (0xDEADBEEF); floats hold NaN."""


def index_values(value: SSAValue, loops: Sequence[UnrollOp]) -> Array:
    """The values of a static register index: one axis a loop, the outermost first, size 1 where it does not matter."""
    owner = value.owner
    if isinstance(owner, Block):
        around = owner.parent_op()
        axis = next(i for i, loop in enumerate(loops) if loop is around)
        shape = [1] * len(loops)
        shape[axis] = loops[axis].count.value.data
        return np.arange(shape[axis], dtype=np.int32).reshape(shape)
    with quiet():
        found = SCALAR_OPS[type(owner)](owner, [index_values(o, loops) for o in owner.operands], "typed")
    return found.reshape([1] * len(loops)) if isinstance(owner, arith.ConstantOp) else found


def flat_registers(regs: SSAValue, indices: Sequence[SSAValue], loops: Sequence[UnrollOp], width: int) -> Array:
    """The number of the (first) register of an access, row-major, over all iterations of the loops around it.

    Raises TilewrightError when the access leaves the array.
    """
    assert isinstance(regs.type, RegsType)
    sizes = regs.type.sizes
    flat = np.zeros([1] * len(loops), np.int64)
    for axis, (size, index) in enumerate(zip(sizes, indices, strict=True)):
        values = index_values(index, loops)
        last = width - 1 if axis == len(sizes) - 1 else 0
        if values.min() < 0 or values.max() + last >= size:
            raise TilewrightError(
                f"register index: expected 0..{size - 1} in dim {axis} of {regs.type}, got "
                f"{int(values.min())}..{int(values.max()) + last}",
            )
        flat = flat * size + values
    return np.broadcast_to(flat, [loop.count.value.data for loop in loops])


@dataclass(frozen=True, slots=True)
class _Place:
    """An access at fixed values of the sequential loops: affine (base, strides) or one register number an iteration."""

    base: int
    strides: tuple[int, ...]
    """Registers from one iteration to the next, innermost loop first; a vector access has a 1 in front."""
    numbers: Array | None
    """Register numbers when they are not affine."""


@dataclass(slots=True)
class RegisterAccess:
    """Where one op finds its registers. `slot` holds the storage."""

    slot: int
    table: Array
    """Register numbers, an axis a loop around the op, outermost first."""
    loops: tuple[Loop, ...]
    width: int
    counts: tuple[int, ...] = ()
    """Extents of the axes in front of (blocks, threads)."""
    places: dict[tuple[int, ...], _Place] = field(default_factory=dict[tuple[int, ...], _Place])
    sequential: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        counts = tuple(loop.count for loop in reversed(self.loops) if loop.vector)
        self.counts = counts if self.width == 1 else (self.width, *counts)
        self.sequential = tuple(loop.slot for loop in self.loops if not loop.vector)

    def _place(self, key: tuple[int, ...]) -> _Place:
        values = iter(key)
        part = self.table[tuple(slice(None) if loop.vector else next(values) for loop in self.loops)].T
        if self.width > 1:
            part = part[None] + np.arange(self.width).reshape(-1, *[1] * part.ndim)
        base = int(part[(0,) * part.ndim])
        strides: list[int] = []
        for axis, n in enumerate(part.shape):
            at = [0] * part.ndim
            at[axis] = min(1, n - 1)
            strides.append(int(part[tuple(at)]) - base)
        affine = base + np.tensordot(strides, np.indices(part.shape), 1)
        return _Place(base, tuple(strides), None if np.array_equal(affine, part) else part)

    def place(self, state: State) -> _Place:
        """The access at the current values of the sequential loops."""
        key = tuple(state.loops[s] for s in self.sequential)
        found = self.places.get(key)
        if found is None:
            found = self.places[key] = self._place(key)
        return found

    def numbers(self, state: State) -> Array:
        """The registers, an axis for each in `counts`."""
        place = self.place(state)
        if place.numbers is not None:
            return place.numbers
        return place.base + np.asarray(np.tensordot(place.strides, np.indices(self.counts), 1), np.int64)

    def view(self, state: State, storage: Array, place: _Place, broadcast: bool) -> Array:
        """A view (axes..., blocks, threads) of an affine access; with `broadcast`, axes without effect have size 1."""
        blocks, threads = storage.shape[1:]
        step = storage.strides[0]
        shape = [1 if broadcast and s == 0 else n for s, n in zip(place.strides, self.counts, strict=True)]
        strides = [s * step for s in place.strides]
        return np.ndarray(
            (*shape, blocks, threads), storage.dtype, storage, place.base * step, (*strides, *storage.strides[1:])
        )

    def read(self, state: State, copy: bool) -> Array:
        """The values; a view of the registers when `copy` is false and the access is affine."""
        storage = state.env[self.slot]
        place = self.place(state)
        if place.numbers is not None:
            return storage[place.numbers]
        view = self.view(state, storage, place, True)
        return view.copy() if copy else view

    def write(self, state: State, values: Array | np.bool_, mask: Array | None) -> None:
        """Overwrite the registers where the mask is true."""
        self.write_to(state, state.env[self.slot], values, mask)

    def write_to(self, state: State, storage: Array, values: Array | np.bool_, mask: Array | None) -> None:
        """The same for another storage of the same shape."""
        place = self.place(state)
        if place.numbers is not None:
            if mask is not None:
                values = np.where(mask, values, storage[place.numbers])
            storage[place.numbers] = values
            return
        view = self.view(state, storage, place, False)
        if mask is None:
            view[...] = values
        else:
            np.copyto(view, values, where=mask)


def register_access(
    compiler: Compiler, op: Operation, regs: SSAValue, indices: Sequence[SSAValue], width: int = 1
) -> RegisterAccess:
    """The access of an op, for the loops that are around it now."""
    loops = compiler.loops
    try:
        table = flat_registers(regs, indices, [loop.op for loop in loops], width)
    except TilewrightError as error:
        raise TilewrightError(error.message, location_of(op)) from error
    assert isinstance(regs.type, RegsType)
    # An array allocated inside a vectorised loop has one copy an iteration.
    step = regs.type.count
    for loop in reversed([loop for loop in compiler.allocated_in[regs] if loop.vector]):
        axis = loops.index(loop)
        iteration = np.arange(loop.count).reshape([-1 if i == axis else 1 for i in range(len(loops))])
        table = table + step * iteration
        step *= loop.count
    return RegisterAccess(compiler.slot(regs), table, tuple(loops), width)


def undefined(element: Attribute, shape: tuple[int, ...]) -> Array:
    """An array of registers before anything is written."""
    dtype = carrier_dtype(element, "typed")
    if dtype.kind == "f":
        return np.full(shape, np.nan, dtype)
    return np.full(shape, True if dtype.kind == "b" else np.int64(POISON).astype(dtype), dtype)


def compile_alloc(compiler: Compiler, op: RegsAllocOp) -> Compiled:
    """A register array, undefined."""
    type_ = op.res.type
    slot = compiler.slot(op.res)
    shadow = compiler.shadows[op.res] = compiler.new_slot() if compiler.checks else -1
    compiler.allocated_in[op.res] = tuple(compiler.loops)
    count = type_.count
    for n in compiler.vector_counts:
        count *= n
    element = type_.element
    compiler.bytes_per_thread += count * (carrier_dtype(element, "typed").itemsize + (1 if compiler.checks else 0))

    def run(state: State) -> None:
        shape = (count, state.blocks, state.threads)
        state.env[slot] = undefined(element, shape)
        if shadow >= 0:
            state.env[shadow] = np.zeros(shape, np.bool_)

    return Compiled(run, False)


_FRESH = (RegsStoreOp, ShuffleOp)


def must_copy(op: RegsLoadOp) -> bool:
    """Whether the loaded value must survive a later write to its registers; else it may be a view of them.

    A view is safe when each user makes a new array (or stores), and nothing writes the array before the last user.
    """
    block = op.parent
    last = op
    users: set[Operation] = set()
    for use in op.res.uses:
        user = use.operation
        fresh = isinstance(user, _FRESH) or (
            type(user) in SCALAR_OPS and not user.name.startswith(("arith.ext", "arith.trunc", "arith.index"))
        )
        if not fresh:
            return True
        while user.parent is not block:
            parent = user.parent_op()
            if parent is None:
                return True
            user = parent
        users.add(user)
    current = op.next_op
    left = len(users)
    while left and current is not None:
        if current in users:
            left -= 1
            last = current
        # The last user itself may be the store: NumPy assignment copes with overlap, a loop around it does not.
        if (left or current.regions) and _writes(current, op.regs):
            return True
        current = current.next_op
    return left > 0 or last.name == "scf.yield"


@dataclass(frozen=True, slots=True)
class RegisterUse:
    """`width` neighbouring registers that an op reads, writes, or both."""

    regs: SSAValue
    indices: Sequence[SSAValue]
    width: int
    writes: bool


def register_uses(op: Operation) -> list[RegisterUse]:
    """What an op does with register arrays."""
    if isinstance(op, RegsLoadOp | RegsStoreOp):
        return [RegisterUse(op.regs, op.indices, 1, isinstance(op, RegsStoreOp))]
    if isinstance(op, LoadOp | StoreOp):
        return [RegisterUse(op.regs, op.indices, op.width.value.data, isinstance(op, LoadOp))]
    if isinstance(op, LdmatrixOp):
        return [RegisterUse(op.regs, op.indices, op.registers, True)]
    if isinstance(op, MmaSyncOp):
        shape = op.mma
        return [
            RegisterUse(op.a, op.a_indices, shape.a_registers, False),
            RegisterUse(op.b, op.b_indices, shape.b_registers, False),
            RegisterUse(op.c, op.c_indices, shape.c_registers, True),
        ]
    return []


def _writes(op: Operation, regs: SSAValue) -> bool:
    for inner in op.walk():
        # Matrix instructions of warpgroups write when they are waited for.
        if isinstance(inner, WgmmaOp | WgmmaRegsOp | WgmmaWaitOp):
            return True
        if any(use.writes and use.regs is regs for use in register_uses(inner)):
            return True
    return False


def compile_load(compiler: Compiler, op: RegsLoadOp) -> Compiled:
    """`simt.regs.load`."""
    access = register_access(compiler, op, op.regs, op.indices)
    target = compiler.slot(op.res)
    copy = must_copy(op)

    def run(state: State) -> None:
        state.env[target] = access.read(state, copy)

    if not compiler.checks:
        return Compiled(run, False)
    checked = check_initialised(compiler, op, op.regs, access)
    in_flight = flight_check(compiler, op, op.regs, access)

    def run_checked(state: State) -> None:
        if in_flight is not None:
            in_flight(state)
        checked(state, None)
        run(state)

    return Compiled(run_checked, False)


def compile_store(compiler: Compiler, op: RegsStoreOp) -> Compiled:
    """`simt.regs.store`."""
    access = register_access(compiler, op, op.regs, op.indices)
    value = compiler.slot(op.value)
    if not compiler.checks:

        def run(state: State) -> None:
            access.write(state, state.env[value], state.mask)

        return Compiled(run, False)
    shadow = compiler.shadows[op.regs]
    in_flight = flight_check(compiler, op, op.regs, access)

    def run_checked(state: State) -> None:
        if in_flight is not None:
            in_flight(state)
        access.write(state, state.env[value], state.mask)
        access.write_to(state, state.env[shadow], np.True_, state.mask)

    return Compiled(run_checked, False)


def check_initialised(compiler: Compiler, op: Operation, regs: SSAValue, access: RegisterAccess):
    """A function (state, active) that reports registers read before they were written."""
    site = compiler.site(op)
    shadow = RegisterAccess(compiler.shadows[regs], access.table, access.loops, access.width)

    def check(state: State, active: Array | None) -> None:
        written = shadow.read(state, False)
        if written.all():
            return
        missing = ~written
        for condition in (active, state.mask):
            if condition is not None:
                missing = missing & condition
        state.fault("uninitialised-register", site, missing, "a register is read before it is written")

    return check


def flight_check(
    compiler: Compiler, op: Operation, regs: SSAValue, access: RegisterAccess
) -> Callable[[State], None] | None:
    """At level `check`, a function that reports registers that a matrix instruction under way has; else None."""
    if not compiler.checks or regs not in compiler.accumulators:
        return None
    site = compiler.site(op)
    slot = compiler.slot(regs)

    def check(state: State) -> None:
        state.touched.add(slot)
        flying = state.flying.get(slot)
        if flying is None or not flying.any():
            return
        if flying[access.numbers(state)].any():
            message = "an accumulator is used before a simt.wgmma.wait that names it has waited for all instructions"
            state.fault("accumulator-in-flight", site, state.active(), message)

    return check


def register_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for register arrays."""
    return {RegsAllocOp: compile_alloc, RegsLoadOp: compile_load, RegsStoreOp: compile_store}


def memory_registers(compiler: Compiler, op: LoadOp | StoreOp) -> RegisterAccess:
    """The registers of a load or store."""
    return register_access(compiler, op, op.regs, op.indices, op.width.value.data)
