"""`matrix_kernels()`: products that matrix instructions can take, in small tiles, with something after them.

The passes for matrix instructions act on kernels whose `arch` has them, in tiles that lin-to-tile chooses for large
products alone: of at least 64 rows for the warpgroups of sm_90a. These programs are drawn at the tensor level, lowered
in tiles of a given size, and stand as kernels of the tile level, each with the program that it was as its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

import hypothesis.strategies as st
from xdsl.dialects.builtin import StringAttr

from tilewright.api.testing.chance import Chance
from tilewright.api.testing.execute import context
from tilewright.api.testing.lin_bodies import block
from tilewright.api.testing.lin_elementwise import add_cast, add_clamp, add_map
from tilewright.api.testing.lin_generics import at, generic_text
from tilewright.api.testing.lin_programs import SEEDS
from tilewright.api.testing.lin_text import LinText, Value
from tilewright.api.testing.program import Lane
from tilewright.api.testing.tile_kernels import TileProgram
from tilewright.dialects.assembly import int_array
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.sym import Expr
from tilewright.dialects.tile.structure import KernelOp
from tilewright.lowering import pipelines
from tilewright.lowering.lin_to_tile import LinToTilePass
from tilewright.passes.pipeline import run_pipeline

ARCHS = ("sm_90a", "sm_90a", "sm_80")
"""Warpgroups multiply, or warps."""
MAX_ELEMENTS = 1 << 16

SIZES = (64, 8, 0, 1, 63, 65, 72, 128, 136, 200)
"""Of rows where they are no contiguous dim: none, one, and tiles with tails."""
EIGHTHS = (64, 8, 0, 72, 128, 136, 16, 200)
"""Of dims along which 16 bytes must divide a row."""
ODD = (7, 65, 100)
"""Of the same, once in a while: no tensor map moves these rows. Warps multiply them all the same."""
TILES = ((64, 64, 64), (64, 64, 64), (64, 128, 64), (128, 64, 64), (64, 64, 128), (64, 32, 16), (64, 8, 64))
"""Rows, columns, depth."""


@dataclass(frozen=True)
class _Dims:
    """The dims of a product: batch or "", rows, columns, sum; each a letter in the orders of operands and result."""

    left: str
    right: str
    result: str

    @property
    def contiguous(self) -> str:
        """The dims along which an operand or the result is contiguous."""
        return self.left[-1] + self.right[-1] + self.result[-1]


def _dims(chance: Chance) -> _Dims:
    """Operands and result in any order of dims, the batch anywhere but last."""
    left, right, result = chance.choose(("ik", "ki")), chance.choose(("kj", "jk")), "ij"
    if chance.flag(6):
        result = "ji"
    if chance.flag(4):
        left, right, result = (_with_batch(chance, dims) for dims in (left, right, result))
    return _Dims(left, right, result)


def _with_batch(chance: Chance, dims: str) -> str:
    place = chance.choose((0, 0, 1))
    return dims[:place] + "b" + dims[place:]


def _product(chance: Chance, text: LinText, dims: _Dims, element: str) -> Value:
    """The contraction, with sums in f32."""
    size = {name: Expr.symbol(name.upper()) for name in "bijk"}
    x, y = (text.argument([size[d] for d in each], element) for each in (dims.left, dims.right))
    shape = tuple(size[d] for d in dims.result)
    magnitude = x.magnitude * y.magnitude * max(1, text.sizes["K"])
    made = Value("", shape, "f32", magnitude)
    lines = [f"%{n}w = arith.extf %{n} : {element} to f32" for n in "pq"]
    body = block([("p", element), ("q", element)], [*lines, "%r = arith.mulf %pw, %qw : f32"], "%r", "f32")
    content = generic_text(
        [*dims.result, "k"], [(x, at(dims.left)), (y, at(dims.right))], list(dims.result), "sum", made, body
    )
    return text.define("lin.generic", content, [x, y], shape, "f32", magnitude)


@st.composite
def matrix_kernels(draw: st.DrawFn, *, lane: Lane | None = None) -> TileProgram:
    """Kernels of products of bf16 or f16 for sm_90a or sm_80, free of decisions, and up to two elementwise ops on them.

    Operands, result and batch lie in any order. Sizes are mostly such that tensor maps can move the operands; nothing
    says so in the text, so that the variants of the host plan decide. Both lanes of values unless one is given.
    """
    chance = Chance(draw)
    dims = _dims(chance)
    element, arch = chance.choose(("bf16", "bf16", "f16")), chance.choose(ARCHS)
    text = LinText((element, "f32"), MAX_ELEMENTS)
    for name in "ijk":
        table = EIGHTHS if name in dims.contiguous else SIZES
        text.symbol(name.upper(), chance.choose(ODD if chance.flag(24 if arch == "sm_90a" else 4) else table))
    if "b" in dims.result:
        text.symbol("B", chance.choose((2, 1, 3)))
    value = _product(chance, text, dims, element)
    if not chance.flag(4):
        value = _narrow(text, value, element)
    for _ in range(chance.choose((0, 1, 1, 2))):
        add = chance.choose((add_map, add_map, add_clamp, add_cast))
        value = add(chance, text, value) or value
    content, sizes = text.finish([value])
    rows, columns, depth = chance.choose(TILES)
    tile = {"b": 1, "i": rows, "j": columns}
    if dims.result.index("j") < dims.result.index("i"):
        tile["i"], tile["j"] = columns, rows
    lanes: tuple[Lane, ...] = ("ordinary", "special") if lane is None else (lane,)
    # Clusters are of the two dims that come last, which the product has its rows and columns along.
    along = chance.choose((None, None, -2, -1)) if arch == "sm_90a" else None
    kernel = lowered(content, [*(tile[d] for d in dims.result), depth], arch, along)
    return TileProgram(kernel, sizes, chance.integer(0, SEEDS - 1), chance.choose(lanes), level="tile", meaning=content)


def _narrow(text: LinText, x: Value, element: str) -> Value:
    """The element type of the operands."""
    made = Value("", x.shape, element, x.magnitude)
    content = f"lin.cast {x.name} : {x.type} -> {made.type}"
    return text.define("lin.cast", content, [x], x.shape, element, x.magnitude)


def lowered(content: str, tiles: list[int], arch: str, along: int | None = None) -> str:
    """The text of a program's kernels in tiles of these sizes, for an architecture, before host-plan; `along` is a grid
    dim along which two blocks each are to be a cluster."""
    module = parse_module(content, "program.mlir", context())
    before = pipelines.TENSOR[: pipelines.TENSOR.index("lin-to-tile")]
    run_pipeline(module, context(), [*pipelines.make_passes(before), LinToTilePass(tuple(tiles), arch)])
    for kernel in module.ops:
        if isinstance(kernel, KernelOp):
            kernel.properties["arch"] = StringAttr(arch)
            if along is not None:
                cluster = [1] * len(kernel.grid.data)
                cluster[along] = 2
                kernel.properties["cluster"] = int_array(cluster)
    return str(module)
