"""Runs a `host.func` over tile kernels: binds symbols, checks guards, takes a case, launches kernels in order.

The plan may be complete, or as lin-to-tile leaves it: grids and index widths are not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import (
    AllocOp,
    BindOp,
    DispatchOp,
    FuncOp,
    GuardOp,
    LaunchOp,
    LetOp,
    OutputOp,
    YieldOp,
)
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.location import location_of
from tilewright.dialects.sym import Expr, dims_of
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType
from tilewright.runtime.binding import Environment, Layout, Source, normalised, size_steps, solve_sizes
from tilewright.runtime.numerics import Array, expect_possible, storage_dtype
from tilewright.runtime.tile_interpreter.kernel import interpret

SCRATCH_BASE = 256
"""Base address of what the runtime allocates itself, as far as alignment goes."""


@dataclass
class _Call:
    """One call of an entry."""

    kernels: Mapping[str, KernelOp]
    results: dict[int, Array]
    environment: Environment = field(default_factory=Environment)
    values: dict[SSAValue, Any] = field(default_factory=dict[SSAValue, Any])
    bases: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    memory: dict[SSAValue, Array] = field(default_factory=dict[SSAValue, Array])
    """Scratch with the padding of its rows."""

    def block(self, block: Block) -> None:
        """The ops of a block, in order."""
        for op in block.ops:
            step = _STEPS.get(type(op))
            if step is None:
                raise TilewrightError(f"a launch plan cannot hold {op.name}", location_of(op))
            step(self, op)

    def bind(self, op: BindOp) -> None:
        """Symbols for strides (of dims of size 1: as if contiguous) and for the base address."""
        layout = layout_of(self.values[op.value], self.bases.get(op.value))
        strides = normalised(layout.shape, layout.strides)
        for dim, (symbol, stride) in enumerate(zip(op.strides, strides, strict=True)):
            self.environment.bind(symbol.data, stride, Source(str(op.value.name_hint), "stride", dim))
        self.environment.bind(op.base.data, layout.pointer, Source(str(op.value.name_hint), "base"))

    def let(self, op: LetOp) -> None:
        """A symbol of the plan."""
        value = op.value.data
        source = Source("", "let", equation=f"host.let {op.symbol.data} = {value}")
        self.environment.bind(op.symbol.data, value.evaluate(self.environment.values), source)

    def guard(self, op: GuardOp) -> None:
        """A relation that must hold."""
        relation = op.relation.data
        if not relation.holds(self.environment.values):
            described = self.environment.describe(sorted(relation.symbols))
            raise TilewrightError(f"{op.message.data}, got {described}", location_of(op))

    def output(self, op: OutputOp) -> None:
        """A result, made here unless the caller gave it."""
        number = op.number.value.data
        if number not in self.results:
            self.results[number] = self.fresh(op.res)
            self.bases[op.res] = SCRATCH_BASE
        given = self.results[number]
        shape = self.shape(op.res)
        if given.shape != shape:
            raise TilewrightError(f"result {number}: expected shape {shape}, got {given.shape}")
        self.values[op.res] = given

    def alloc(self, op: AllocOp) -> None:
        """Scratch."""
        shape = self.shape(op.res)
        dims, order = op.memory_dims, op.order
        lying = self.fresh(op.res, [dims[d] for d in order])
        self.memory[op.res] = lying.transpose([order.index(d) for d in range(len(order))])
        self.values[op.res] = self.memory[op.res][(*(slice(n) for n in shape), ...)]
        self.bases[op.res] = SCRATCH_BASE

    def dispatch(self, op: DispatchOp) -> None:
        """The first case whose predicates hold."""
        for _, predicates, body in op.arms:
            if all(r.holds(self.environment.values) for r in predicates):
                self.block(body.block)
                last = body.block.last_op
                if op.res is not None and isinstance(last, YieldOp):
                    self.values[op.res] = self.values[last.value]
                    if last.value in self.bases:
                        self.bases[op.res] = self.bases[last.value]
                return

    def launch(self, op: LaunchOp) -> None:
        """All blocks of a kernel; what the launch assumes is checked."""
        name = op.kernel.string_value()
        kernel = self.kernels.get(name)
        if kernel is None:
            raise TilewrightError(f"there is no tile.kernel @{name}", location_of(op))
        symbols = self.environment.values
        for relation in (*op.assumes.data, *kernel.assumes.data):
            if not relation.data.holds(symbols):
                described = self.environment.describe(sorted(relation.data.symbols))
                raise TilewrightError(f"@{name} assumes {relation.data}, got {described}", location_of(op))
        formals = [a.type for a in kernel.arguments]
        tensors = [
            self.seen_by(a, formal) for a, formal in zip(op.arguments, formals, strict=False) if is_tensor(a.type)
        ]
        scalars = [self.values[a] for a in op.arguments if not is_tensor(a.type)]
        interpret(kernel, tensors, scalars, symbols)

    def seen_by(self, value: SSAValue, formal: Attribute) -> Array:
        """A tensor as a kernel argument of this type: scratch with its padding where the sizes say so, or with its dims
        in another order."""
        memory = self.memory.get(value)
        if memory is not None and isinstance(formal, BufType):
            symbols = self.environment.values
            if all(d.symbols <= symbols.keys() for d in formal.dims):
                sizes = tuple(d.evaluate(symbols) for d in formal.dims)
                if sizes == memory.shape:
                    return memory
            if isinstance(value.owner, AllocOp) and formal.strides is not None:
                order = value.owner.order_of(formal.dims, formal.strides)
                if order is not None:
                    return memory.transpose(order)
        return self.values[value]

    def shape(self, value: SSAValue) -> tuple[int, ...]:
        """The sizes of a tensor."""
        return tuple(d.evaluate(self.environment.values) for d in dims_of(value.type))

    def fresh(self, value: SSAValue, dims: Sequence[Expr] | None = None) -> Array:
        """A contiguous tensor of these sizes (default: of the type), undefined: NaN, or bytes of 0xA5."""
        dtype = storage_dtype(cast("TensorType[Attribute]", value.type).element_type)
        sizes = dims_of(value.type) if dims is None else dims
        shape = tuple(d.evaluate(self.environment.values) for d in sizes)
        expect_possible(shape, prod(shape) * dtype.itemsize)
        if dtype.kind == "b":
            return np.ones(shape, dtype)
        # 0xFF in every byte is NaN in each float type.
        raw = np.full(prod(shape) * dtype.itemsize, 0xA5 if dtype.kind == "i" else 0xFF, np.uint8)
        return raw.view(dtype).reshape(shape)


_STEPS: dict[type[Operation], Callable[[_Call, Any], None]] = {
    AllocOp: _Call.alloc,
    BindOp: _Call.bind,
    DispatchOp: _Call.dispatch,
    GuardOp: _Call.guard,
    LaunchOp: _Call.launch,
    LetOp: _Call.let,
    OutputOp: _Call.output,
    YieldOp: lambda call, op: None,  # the dispatch looks at it
}


def layout_of(tensor: Array, base: int | None = None) -> Layout:
    """Sizes, element strides and address of an array; `base` in place of its own address."""
    strides = tuple(s // tensor.itemsize for s in tensor.strides)
    return Layout(tensor.shape, strides, tensor.ctypes.data if base is None else base)


def interpret_host(
    module: ModuleOp,
    entry: str | None,
    inputs: Sequence[Array | int | float | bool],
    outputs: Sequence[Array] | None = None,
) -> list[Array]:
    """Call an entry of a module whose kernels are at the tile level; returns its results.

    `entry` names a `host.func`; None is the only one. `inputs` are arrays in storage dtypes with any strides, and
    Python numbers for scalars, in argument order; `outputs`, if given, are written instead of new arrays. Raises
    TilewrightError for arguments that do not fit, a guard that fails, an assumption of a launch that does not hold, and
    whatever a kernel raises.
    """
    function = _entry(module, entry)
    arguments = function.body.block.args
    if len(inputs) != len(arguments):
        raise TilewrightError(f"@{function.sym_name.data}: expected {len(arguments)} arguments, got {len(inputs)}")
    kernels = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, KernelOp)}
    call = _Call(kernels, dict(enumerate(outputs or ())))
    layouts: dict[int, Layout] = {}
    for number, (argument, value) in enumerate(zip(arguments, inputs, strict=True)):
        call.values[argument] = value
        if is_tensor(argument.type):
            if not isinstance(value, np.ndarray) or value.ndim != len(dims_of(argument.type)):
                raise TilewrightError(f"argument {number}: expected an array of type {argument.type}, got {value!r}")
            layouts[number] = layout_of(value)
    solve_sizes(size_steps(function), layouts, call.environment)
    call.block(function.body.block)
    return [call.results[n] for n in sorted(call.results)]


def _entry(module: ModuleOp, name: str | None) -> FuncOp:
    found = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    if name is not None:
        found = [op for op in found if op.sym_name.data == name]
    if len(found) != 1:
        what = "one host.func" if name is None else f"a host.func @{name}"
        raise TilewrightError(f"expected {what}, got {len(found)}")
    return found[0]
