"""Arrays to call a function with, made from a seed: what `tilewright run` and the tests of passes both use.

Each argument has a stream of its own, of the seed and its position, so that the same seed gives the same array in every
process, whatever the other arguments are.

Lanes:
- `ordinary`: numbers for which the reference's error bounds mean something. Half of the floats are multiples of 1/4 up
  to 2 (ties in max, exact sums), the others lie beside them; integers go from -8 to 8, truth values are fair.
- `special`: the same with NaN, infinities, -0.0, subnormal numbers, the least normal and the largest finite number
  among them; integers also have the extremes of their type. Few kinds and mostly few elements an array: what is all
  NaN shows nothing.

i32 arguments that pick rows (of `lin.gather`, or a generic's read at a computed position) lie in the table, one in ten
outside; in the special lane every third, the extremes of i32 among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Literal

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import FuncOp
from tilewright.dialects.lin.gather import GatherOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.shapes import is_tensor, partial_shape, scalar_type
from tilewright.dialects.sym import Expr
from tilewright.dialects.sym.index import members
from tilewright.runtime import dtypes
from tilewright.runtime.backends.base import aligned_empty
from tilewright.runtime.numerics import Array, FloatFormat, float_format
from tilewright.runtime.plan import parameter_of

Lane = Literal["ordinary", "special"]
"""Which values inputs have."""
LANES: tuple[Lane, ...] = ("ordinary", "special")
MAX_BYTES = 8 << 30
"""Size of one array above which it is refused: a typing error is likelier than the wish."""


def make_inputs(
    function: func.FuncOp | FuncOp, sizes: Mapping[str, int], seed: int, lane: Lane = "ordinary", *, first: int = 0
) -> list[Any]:
    """One array for each argument from number `first` on, contiguous and aligned; a NumPy scalar for one by value.

    `sizes` are the values of the symbols. Dtypes are those of `runtime.dtypes` (bf16 is ml_dtypes.bfloat16). Raises
    TilewrightError for an unknown lane, a negative seed, and an array above `MAX_BYTES`.
    """
    if lane not in LANES:
        raise TilewrightError(f"lane: expected one of {', '.join(LANES)}, got {lane!r}")
    if seed < 0:
        raise TilewrightError(f"seed: expected a number of at least 0, got {seed}")
    rows = picked_rows(function, sizes) if isinstance(function, func.FuncOp) else {}
    made: list[Any] = []
    for position, argument in enumerate(function.body.block.args):
        if position < first:
            continue
        random = np.random.default_rng([seed, position])
        name = argument.name_hint or f"arg{position}"
        made.append(_one(random, argument.type, name, sizes, lane, rows.get(position)))
    return made


def picked_rows(function: func.FuncOp, sizes: Mapping[str, int]) -> dict[int, int]:
    """For the number of each integer argument that picks rows, how many rows its table has (the fewest of several)."""
    found: dict[int, int] = {}
    for op in function.walk():
        for ids, table_dim in _picks(op):
            for argument in _origins(ids, function):
                rows = table_dim.evaluate(sizes)
                found[argument.index] = min(found.get(argument.index, rows), rows)
    return found


def _picks(op: Operation) -> list[tuple[SSAValue, Expr]]:
    """The ids that an op reads, each with the size of the dim that they index."""
    if isinstance(op, GatherOp):
        found = [(op.ids, partial_shape(op.table.type)[0])]
    elif isinstance(op, GenericOp):
        found = [
            (op.ins[v], size)
            for table, access in zip(op.ins, op.accesses, strict=True)
            if access is not None
            for index, size in zip(access.indices, partial_shape(table.type), strict=True)
            for v in members([index], "v")
        ]
    else:
        return []
    # A `?` that infer-shapes has not resolved yet says nothing.
    return [(ids, size) for ids, size in found if size is not None]


def _origins(value: SSAValue, function: func.FuncOp) -> list[BlockArgument]:
    """The arguments of the function from whose integers a value's come."""
    pending, seen, found = [value], set[SSAValue](), list[BlockArgument]()
    while pending:
        each = pending.pop()
        if each in seen or scalar_type(each.type) != i32:
            continue
        seen.add(each)
        if isinstance(each, OpResult):
            pending.extend(each.op.operands)
        elif isinstance(each, BlockArgument) and each.owner is function.body.block:
            found.append(each)
    return found


def _one(
    random: np.random.Generator, type_: Attribute, name: str, sizes: Mapping[str, int], lane: Lane, rows: int | None
) -> Any:
    parameter = parameter_of(type_, name)
    shape = tuple(d.evaluate(sizes) for d in parameter.dims or ())
    if prod(shape) * max(dtypes.element_type(parameter.dtype).bytes, 8) > MAX_BYTES:
        raise TilewrightError(f"argument {name!r} of shape {list(shape)}: too large to be made up")
    array = aligned_empty(shape, parameter.dtype)
    found = float_format(scalar_type(type_))
    if found is not None:
        array[...] = _floats(random, shape, found, lane)
    elif parameter.dtype == "i1":
        array[...] = random.integers(0, 2, shape).astype(np.bool_)
    elif parameter.dtype == "index":
        # Counts and places: small, and never none.
        array[...] = random.integers(1, 5, shape)
    elif rows is not None:
        array[...] = _ids(random, shape, rows, lane)
    else:
        array[...] = _integers(random, shape, np.iinfo(array.dtype), lane)
    return array if is_tensor(type_) else array[()]


def _floats(random: np.random.Generator, shape: Sequence[int], found: FloatFormat, lane: Lane) -> Array:
    values = random.integers(-8, 9, shape) / 4.0
    beside = random.random(shape) < 0.5
    values = values + np.where(beside, random.standard_normal(shape) / 64.0, 0.0)
    if lane == "special":
        subnormal = 2.0 ** (found.min_exponent - found.precision + 1)
        least, largest = 2.0**found.min_exponent, (2.0 - 2.0 ** (1 - found.precision)) * 2.0**found.max_exponent
        kinds = [[np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [-0.0, 0.0], [subnormal, -subnormal]]
        kinds += [[least, -least, least - subnormal], [largest, -largest], [-0.0]]
        values = _sprinkled(random, values, kinds)
    # NumPy warns of what is meant here: a signalling cast of NaN.
    with np.errstate(all="ignore"):
        return values.astype(found.dtype)


def _integers(random: np.random.Generator, shape: Sequence[int], info: Any, lane: Lane) -> Array:
    values = random.integers(-8, 9, shape)
    if lane == "special":
        low, high = int(info.min), int(info.max)
        # From 2^24 on f32 does not hold every integer.
        values = _sprinkled(random, values, [[high], [low], [low, high], [high - 1, low + 1], [(1 << 24) + 1, -1]])
    return values


def _ids(random: np.random.Generator, shape: Sequence[int], rows: int, lane: Lane) -> Array:
    inside = random.integers(0, max(rows, 1), shape)
    outside = [-1, rows, rows + 7]
    odds = 0.1
    if lane == "special":
        outside += [-(1 << 31), (1 << 31) - 1]
        odds = 0.3
    return np.where(random.random(shape) < odds, random.choice(np.asarray(outside), shape), inside)


def _sprinkled(random: np.random.Generator, values: Array, kinds: Sequence[Sequence[float]]) -> Array:
    """`values` with elements of one to three kinds among them, from one in two to one in sixty-four."""
    chosen = random.choice(len(kinds), random.integers(1, 4), replace=False)
    pool = np.asarray([value for kind in chosen for value in kinds[int(kind)]], values.dtype)
    odds = random.choice(np.asarray([1 / 2, 1 / 8, 1 / 8, 1 / 64]))
    return np.where(random.random(values.shape) < odds, random.choice(pool, values.shape), values)
