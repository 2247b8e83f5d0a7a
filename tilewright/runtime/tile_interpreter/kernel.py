"""Runs a `tile.kernel`, free or scheduled: the oracle for every pass at the tile level, and for tile-to-simt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType
from tilewright.runtime.numerics import Array, storage_dtype
from tilewright.runtime.scalar_ops import carrier_dtype, quiet
from tilewright.runtime.tile_interpreter.channels import check_shared, finish
from tilewright.runtime.tile_interpreter.flow import run_to_end
from tilewright.runtime.tile_interpreter.values import Frame

PERSISTENT_BLOCKS = 3
"""Blocks that run a persistent kernel at most."""


def interpret(
    kernel: KernelOp,
    tensors: Sequence[Array],
    scalars: Sequence[int | float | bool] = (),
    symbols: Mapping[str, int] | None = None,
) -> None:
    """Run all blocks of a kernel, one after the other, on NumPy views; the outputs are written in place.

    `tensors` has one array for each buffer argument, in order, with the sizes that its type has under `symbols` and
    any strides; `scalars` one value for each other argument. Buffers of the block start as NaN (integers: a bit
    pattern), so that reading what nobody wrote shows. Of a persistent kernel up to three blocks share the tiles.
    Raises TilewrightError, at the op, for a copy that breaks a bound said to be proved, an offset below 0, a channel
    whose slots are not used in turn, blocks of a cluster that share different copies, roles that wait for each other,
    or an op that tile kernels do not have.
    """
    symbols = dict(symbols or {})
    arguments = _bind(kernel, tensors, scalars, symbols)
    grid = [size.evaluate(symbols) for size in kernel.grid.data]
    if kernel.persistent is not None:
        # A block that takes the next tile in turn must leave no trace of the last: few blocks, several tiles each.
        size = kernel.cluster_size
        grid = [min(grid[0], -(-PERSISTENT_BLOCKS // size) * size)]
    with quiet():
        together: list[Frame] = []
        for coordinates in product(*(range(n) for n in grid)):
            frame = Frame(symbols, run_to_end, prod(grid), dict(arguments))
            frame.env.update(zip(kernel.coordinates, coordinates, strict=True))
            run_to_end(frame, kernel.body.block)
            finish(frame)
            together.append(frame)
            if len(together) == kernel.cluster_size:
                check_shared(together)
                together = []


def _bind(
    kernel: KernelOp, tensors: Sequence[Array], scalars: Sequence[int | float | bool], symbols: Mapping[str, int]
) -> dict[SSAValue, Array | int]:
    """The values of the arguments, checked against their types."""
    name = kernel.sym_name.data
    buffers = [a for a in kernel.arguments if isinstance(a.type, BufType)]
    others = [a for a in kernel.arguments if not isinstance(a.type, BufType)]
    if len(tensors) != len(buffers) or len(scalars) != len(others):
        raise TilewrightError(
            f"@{name}: expected {len(buffers)} buffers and {len(others)} scalars, got {len(tensors)} and {len(scalars)}"
        )
    found: dict[SSAValue, Array | int] = {}
    for number, (argument, tensor) in enumerate(zip(buffers, tensors, strict=True)):
        assert isinstance(argument.type, BufType)
        found[argument] = _view(f"@{name} buffer {number}", argument.type, tensor, symbols)
    for argument, value in zip(others, scalars, strict=True):
        if isinstance(argument.type, IndexType):
            found[argument] = int(value)
        else:
            found[argument] = np.asarray(value).astype(carrier_dtype(argument.type, "typed"))
    return found


def _view(what: str, type_: BufType, tensor: Array, symbols: Mapping[str, int]) -> Array:
    """The tensor with the sizes of the buffer's type: itself, or a contiguous one seen with other dims."""
    if tensor.dtype != storage_dtype(type_.element):
        raise TilewrightError(f"{what}: expected dtype {storage_dtype(type_.element)}, got {tensor.dtype}")
    sizes = tuple(e.evaluate(symbols) for e in type_.dims)
    if tensor.shape == sizes:
        _expect_strides(what, type_, tensor, symbols)
        return tensor
    if tensor.size != int(np.prod(sizes, dtype=np.int64)) or not tensor.flags.c_contiguous:
        raise TilewrightError(f"{what}: expected sizes {list(sizes)}, got {list(tensor.shape)}")
    view = tensor.reshape(sizes)
    _expect_strides(what, type_, view, symbols)
    return view


def _expect_strides(what: str, type_: BufType, tensor: Array, symbols: Mapping[str, int]) -> None:
    """The strides that the type's layout says, wherever they address something and their symbols have values."""
    if type_.strides is None or tensor.size == 0:
        return
    for dim, (stride, size) in enumerate(zip(type_.strides, tensor.shape, strict=True)):
        if size <= 1 or not stride.symbols <= symbols.keys():
            continue
        expected, got = stride.evaluate(symbols), tensor.strides[dim] // tensor.itemsize
        if expected != got:
            raise TilewrightError(f"{what}: expected stride {stride} = {expected} in dim {dim}, got {got}")
