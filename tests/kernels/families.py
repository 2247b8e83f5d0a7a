"""The kernels that are compiled and checked: every program of the examples and of the tests of tile passes, what lowers
otherwise by element type or by sizes that are known, and the kernels written by hand; each in all of its variants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from examples import batch_matmul, digits, elementwise_chain, matmul_bias_relu, row_softmax, transpose
from tests.lowering import support as hand_written
from tests.passes.tile.matrix_programs import PRODUCTS, TF32_PRODUCTS
from tests.passes.tile.programs import CASES
from tests.regressions.support import map_program
from tilewright.api import frontend as tw
from tilewright.api.build import build_module
from tilewright.api.tensor import Tensor
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import KernelOp
from tilewright.runtime.variants import CompiledEntry


@dataclass(frozen=True)
class Lowered:
    """One variant of one kernel at the simt level."""

    kernel: str
    variant: str
    op: KernelOp


@dataclass(frozen=True)
class Family:
    """A program, and how it gets to its kernels."""

    name: str
    text: Callable[[], str]
    """All that the kernels are made from, besides Tilewright itself."""
    lower: Callable[[], Iterator[Lowered]]
    """Every variant of every kernel, in the plan's order."""
    arch: str | None = None
    """The only architecture that it is for; None for all, with kernels lowered for sm_80."""


def of_module(name: str, build: Callable[[], ModuleOp]) -> Family:
    """The family of a module with one function at the tensor level."""

    def lower() -> Iterator[Lowered]:
        module = build()
        (entry,) = (op.sym_name.data for op in module.ops if isinstance(op, func.FuncOp))
        compiled = CompiledEntry(module, entry, "sm_80")
        for site in compiled.sites.values():
            yield Lowered(site.kernel, site.variant, compiled.lower(site).kernel)

    return Family(name, lambda: str(build()), lower)


def of_warpgroups(name: str, build: Callable[[], ModuleOp]) -> Family:
    """The kernels on matrix instructions of sm_90a, and the copies before them, of a module with one function."""

    def lower() -> Iterator[Lowered]:
        module = build()
        (entry,) = (op.sym_name.data for op in module.ops if isinstance(op, func.FuncOp))
        compiled = CompiledEntry(module, entry, "sm_90a")
        for site in compiled.sites.values():
            if not site.kernel.endswith(("large", "small", "split32x32_parts")):
                yield Lowered(site.kernel, site.variant, compiled.lower(site).kernel)

    return Family(name, lambda: str(build()), lower, "sm_90a")


def of_text(name: str, text: str, *symbols: str) -> Family:
    """The family of a function as text; symbols as `M` or `M {multiple_of = 8}` are declared in front of it."""
    whole = "\n".join([*(f"sym.symbol @{each}" for each in symbols), text])
    return of_module(name, lambda: parse_module(whole, f"{name}.mlir", make_context()))


def of_hand(name: str) -> Family:
    """The family of a scheduled kernel of `tests/lowering/kernels`, in both index widths."""

    def lower() -> Iterator[Lowered]:
        for width in (32, 64):
            yield Lowered(name, f"hand{width}", hand_written.lowered(hand_written.kernel_text(name, width)))

    return Family(f"hand_{name}", lambda: hand_written.kernel_text(name), lower)


M, N, K = tw.symbols("M N K")


def _add(dtype: str) -> Tensor:
    return tw.placeholder((M, N), dtype) + tw.placeholder((M, N), dtype)


def _known(*sizes: int) -> Tensor:
    """A product whose sizes are all numbers: one variant, chosen when it is compiled."""
    m, n, k = sizes
    return tw.relu(tw.matmul(tw.placeholder((m, k)), tw.placeholder((k, n))) + tw.placeholder((n,)))


def _built(build: Callable[[], Tensor | list[Tensor]]) -> Callable[[], ModuleOp]:
    return lambda: build_module(build())


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": tw.gelu, "log": tw.log, "sigmoid": tw.sigmoid, "sqrt": tw.sqrt, "tanh": tw.tanh,
}  # fmt: skip


FUSED = "%z = math.fma %p0, %p1, %p2 : f32\n    lin.yield %z : f32"


def _families() -> Iterator[Family]:
    for module in (matmul_bias_relu, row_softmax, transpose, batch_matmul, elementwise_chain, digits):
        yield of_module(f"example_{module.__name__.rpartition('.')[2]}", _built(module.build))
    for module in (matmul_bias_relu, row_softmax, transpose, elementwise_chain):
        for dtype in ("float16", "bfloat16"):
            yield of_module(
                f"example_{module.__name__.rpartition('.')[2]}_{dtype}",
                lambda m=module, t=dtype: build_module(m.build(t)),
            )
    for name, case in CASES.items():
        yield of_module(name, lambda c=case: build_module(c.build()))
    for name in ("batched", "wide_result", "row_sums", "column_max"):
        yield of_module(f"warps_{name}", lambda p=PRODUCTS[name]: build_module(p.build()))
    for make, what in ((of_module, "warps"), (of_warpgroups, "groups")):
        yield make(f"{what}_tf32", lambda p=TF32_PRODUCTS["right_across"]: build_module(p.build()))
    for dtype in ("float32", "float16", "bfloat16", "int32"):
        yield of_module(f"add_{dtype}", lambda t=dtype: build_module(_add(t)))
        yield of_module(f"sum_{dtype}", lambda t=dtype: build_module(tw.sum(tw.placeholder((M, N), t), 1)))
    for name, function in FUNCTIONS.items():
        yield of_module(name, lambda f=function: build_module(f(tw.placeholder((M, N)))))
    yield of_module("not_bool", lambda: build_module(tw.logical_not(tw.placeholder((M, N), "bool"))))
    for element in ("f64", "i8", "i16", "i64"):
        yield of_text(f"copy_{element}", map_program("M, N").replace("f32", element), "M", "N")
    for element in ("f16", "bf16", "f64"):
        yield of_text(f"fma_{element}", map_program("M, N", 3, FUSED).replace("f32", element), "M", "N")
    for sizes in ((256, 256, 64), (64, 64, 64), (250, 254, 62), (31, 33, 17)):
        yield of_module(f"known_{'x'.join(map(str, sizes))}", lambda s=sizes: build_module(_known(*s)))
    for name in hand_written.NAMES:
        yield of_hand(name)


FAMILIES: dict[str, Family] = {family.name: family for family in _families()}
"""By name, in the order in which they are checked."""
