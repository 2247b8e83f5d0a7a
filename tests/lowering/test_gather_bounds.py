"""The bounds that 32-bit index arithmetic of a gather rests on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp

from tilewright.api import frontend as tw
from tilewright.api.build import build_module
from tilewright.dialects.host.ops import DispatchOp
from tilewright.dialects.registry import make_context
from tilewright.dialects.sym import Expr, floordiv, mod, smax, smin
from tilewright.dialects.sym.index import dim, name_of
from tilewright.lowering import pipelines
from tilewright.lowering.gather_bounds import magnitude

S, T = Expr.symbol("S"), Expr.symbol("T")
EXPRS = [
    dim(0) * S - dim(1),
    floordiv(dim(0) * T + dim(1), S) - 3,
    mod(dim(0) + dim(1), S),
    smin(dim(0) - S, dim(1)),
    smax(S - dim(0), T * dim(1) - 7),
]


@given(
    st.sampled_from(EXPRS), st.integers(1, 50), st.integers(0, 50), st.integers(0, 30), st.integers(0, 30), st.data()
)
def test_no_index_exceeds_its_magnitude(e: Expr, s: int, t: int, high0: int, high1: int, data: st.DataObject):
    bounds = {name_of(dim(0)): Expr.const(high0), name_of(dim(1)): Expr.const(high1)}
    values = {
        "S": s,
        "T": t,
        name_of(dim(0)): data.draw(st.integers(0, high0)),
        name_of(dim(1)): data.draw(st.integers(0, high1)),
    }
    assert abs(e.evaluate(values)) <= magnitude(e, bounds).evaluate({"S": s, "T": t})


def narrow_relations(value: tw.Tensor) -> list[str]:
    """What the plan asks before it takes the first variant with 32-bit indices, without strides' own conditions."""
    module = build_module(value)
    pipelines.run(module, make_context(), pipelines.TENSOR)
    assert not any(isinstance(op, FuncOp) for op in module.ops)
    dispatch = next(op for op in module.walk() if isinstance(op, DispatchOp))
    name, relations, _ = next(arm for arm in dispatch.arms if arm[0].endswith("32"))
    assert name
    return [str(r) for r in relations if "2147483647" in str(r)]


def test_a_far_slice_asks_for_its_own_bound():
    (m,) = tw.symbols("M")
    relations = narrow_relations(tw.placeholder((1000 * m,))[::1000])
    # Blocks of 2048 elements, read 1000 apart: the last one may form the address 1000 * 2048 * blocks and a tile more.
    assert any("2048000*" in r for r in relations)


def test_an_index_from_memory_is_trusted_up_to_the_table():
    m, n = tw.symbols("M N")
    relations = narrow_relations(tw.gather(tw.placeholder((m, 4)), tw.placeholder((n,), "int32")))
    assert relations
