"""Fusion where it must look twice: cycles, two maps, sizes that only one operand gives, roles of dims that swap."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.passes.support import ops_named, parse, preserves
from tilewright.passes.remarks import collecting_remarks

SIZES = {"M": 3, "N": 4, "K": 5}
FUSE = ["infer-shapes", "canonicalize", "decompose", "fuse-elementwise", "fuse-groups", "verify-dims"]

TYPES = {
    "!MN": "tensor<?x?xf32, #sym.dims<M, N>>",
    "!MK": "tensor<?x?xf32, #sym.dims<M, K>>",
    "!KN": "tensor<?x?xf32, #sym.dims<K, N>>",
    "!MM": "tensor<?x?xf32, #sym.dims<M, M>>",
    "!1N": "tensor<1x?xf32, #sym.dims<1, N>>",
    "!M": "tensor<?xf32, #sym.dims<M>>",
    "!N": "tensor<?xf32, #sym.dims<N>>",
    "!K": "tensor<?xf32, #sym.dims<K>>",
    "!S": "tensor<f32, #sym.dims<>>",
}


def program(signature: str, body: str, facts: str = "") -> ModuleOp:
    """The module of one function after `facts`; `!MN` and the like stand for the types of the table."""
    text = f"func.func @f{signature} {{\n{body}\n}}\n"
    for short in sorted(TYPES, key=len, reverse=True):
        text = text.replace(short, TYPES[short])
    return parse("sym.symbol @M\nsym.symbol @N\nsym.symbol @K\n" + facts + text)


def body(op: str, count: int = 1) -> str:
    """A scalar body: one op on its first one or two arguments."""
    names = ["%p", "%q"][:count]
    arguments = ", ".join(f"{n}: f32" for n in names)
    return f"{{\n  ^bb0({arguments}):\n    %r = {op} {', '.join(names)} : f32\n    lin.yield %r : f32\n  }}"


def groups(module: ModuleOp) -> list[int]:
    """How many generics each group has."""
    return [len(ops_named(group, "lin.generic")) for group in ops_named(module, "lin.group")]


def test_a_producer_may_name_its_dims_in_another_order_than_its_result() -> None:
    module = program(
        "(%x: !MM, %y: !MM) -> !MM",
        f"  %a = lin.generic (i, j) ins(%x[i, j] : !MM) out[j, i] : !MM {body('math.exp')}\n"
        f"  %b = lin.map ins(%a, %y : !MM, !MM) -> !MM {body('arith.addf', 2)}\n"
        "  func.return %b : !MM",
    )
    after = preserves(FUSE, module, SIZES)
    assert len(ops_named(after, "lin.generic")) == 1


def test_a_group_that_would_wait_for_itself_is_not_made() -> None:
    """a -> matmul -> row sum -> c, and c walks the dims of a: {a, c} would need the sum, which needs a."""
    module = program(
        "(%x: !MK, %w: !KN) -> !MK",
        f"  %a = lin.map ins(%x : !MK) -> !MK {body('math.exp')}\n"
        "  %b = lin.matmul %a, %w : !MK, !KN -> !MN\n"
        "  %d = lin.reduce sum %b axes [1] : !MN -> !M\n"
        f"  %c = lin.generic (i, j) ins(%a[i, j] : !MK, %d[i] : !M) out[i, j] : !MK {body('arith.addf', 2)}\n"
        "  func.return %c : !MK",
    )
    with collecting_remarks() as remarks:
        after = preserves(FUSE, module, SIZES)
    assert groups(after) == [1, 2, 1]
    assert any("goes through another kernel" in r.message for r in remarks)


def test_groups_come_in_an_order_in_which_each_has_what_it_needs() -> None:
    """The exponential joins the sum that stands after the matmul that needs the exponential: the group moves up."""
    module = program(
        "(%x: !MK, %w: !KN) -> (!MN, !MK)",
        f"  %a = lin.map ins(%x : !MK) -> !MK {body('math.exp')}\n"
        "  %b = lin.matmul %a, %w : !MK, !KN -> !MN\n"
        f"  %c = lin.map ins(%a, %x : !MK, !MK) -> !MK {body('arith.addf', 2)}\n"
        "  func.return %b, %c : !MN, !MK",
    )
    after = preserves(FUSE, module, SIZES)
    assert groups(after) == [2, 1]


@pytest.mark.parametrize(("op", "kernels"), [("arith.negf", [1]), ("math.exp", [1, 1])])
def test_a_producer_read_through_two_maps(op: str, kernels: list[int]) -> None:
    """A cheap one is computed at both places; a costly one is computed once, in a kernel of its own."""
    module = program(
        "(%x: !MM) -> !MM",
        f"  %a = lin.map ins(%x : !MM) -> !MM {body(op)}\n"
        f"  %s = lin.generic (i, j) ins(%a[i, j] : !MM, %a[j, i] : !MM) out[i, j] : !MM {body('arith.subf', 2)}\n"
        "  func.return %s : !MM",
    )
    assert groups(preserves(FUSE, module, SIZES)) == kernels


def test_an_operand_that_only_gives_a_size_stays() -> None:
    """The sum over k of x[i] is K times x[i], and only y says what K is."""
    module = program(
        "(%x: !M, %y: !K) -> !M",
        "  %s = lin.generic (i, k) ins(%x[i] : !M, %y[k] : !K) out[i] combine sum : !M {\n"
        "  ^bb0(%p: f32, %q: f32):\n    lin.yield %p : f32\n  }\n  func.return %s : !M",
    )
    after = preserves(FUSE, module, SIZES)
    assert len(ops_named(after, "lin.generic")[0].operands) == 2


def test_a_broadcast_whose_size_the_sum_needs_is_not_fused() -> None:
    """A value stretched over k, then summed over k: fused, nothing would say how often it is added."""
    module = program(
        "(%x: !M) -> !M",
        "  %b = lin.generic (i, k) ins(%x[i] : !M) out[i, k] : !MK {\n  ^bb0(%p: f32):\n    lin.yield %p : f32\n  }\n"
        "  %s = lin.reduce sum %b axes [1] : !MK -> !M\n  func.return %s : !M",
    )
    after = preserves(FUSE, module, SIZES)
    assert len(ops_named(after, "lin.generic")) == 2


@pytest.mark.parametrize("kind", ["!MN", "!MM"])
def test_rows_of_one_reduction_are_columns_of_the_next(kind: str) -> None:
    """Also with equal sizes, and with the value between in a kernel of its own right."""
    column = "!N" if kind == "!MN" else "!M"
    module = program(
        f"(%x: {kind}) -> ({kind}, {column})",
        f"  %m = lin.reduce max %x axes [1] : {kind} -> !M\n"
        f"  %d = lin.generic (i, j) ins(%x[i, j] : {kind}, %m[i] : !M) out[i, j] : {kind} {body('arith.subf', 2)}\n"
        f"  %s = lin.reduce sum %d axes [0] : {kind} -> {column}\n  func.return %d, %s : {kind}, {column}",
    )
    after = preserves(FUSE, module, SIZES)
    assert groups(after) == [2, 1]


def test_an_exponential_of_an_operand_stays_out_of_the_contraction() -> None:
    module = program(
        "(%x: !MK, %w: !KN) -> !MN",
        f"  %a = lin.map ins(%x : !MK) -> !MK {body('math.exp')}\n"
        "  %b = lin.matmul %a, %w : !MK, !KN -> !MN\n  func.return %b : !MN",
    )
    assert groups(preserves(FUSE, module, SIZES)) == [1, 1]


def test_the_dot_product_of_rows_is_no_matmul() -> None:
    """The product stays a generic of its own, in one group with the sum and what divides by it."""
    module = program(
        "(%x: !MN, %y: !MN) -> !MN",
        f"  %prod = lin.map ins(%x, %y : !MN, !MN) -> !MN {body('arith.mulf', 2)}\n"
        "  %s = lin.reduce sum %prod axes [1] : !MN -> !M\n"
        f"  %d = lin.generic (i, j) ins(%x[i, j] : !MN, %s[i] : !M) out[i, j] : !MN {body('arith.divf', 2)}\n"
        "  func.return %d : !MN",
    )
    assert groups(preserves(FUSE, module, SIZES)) == [3]


def test_a_chain_of_six_maps_with_broadcasting_is_one_group_of_one_generic() -> None:
    module = program(
        "(%x: !MN, %b: !N, %row: !1N) -> !MN",
        f"  %1 = lin.map ins(%b : !N) -> !N {body('math.exp')}\n"
        f"  %2 = lin.map ins(%x, %1 : !MN, !N) -> !MN {body('arith.addf', 2)}\n"
        f"  %3 = lin.map ins(%2, %row : !MN, !1N) -> !MN {body('arith.mulf', 2)}\n"
        f"  %4 = lin.map ins(%3 : !MN) -> !MN {body('math.tanh')}\n"
        f"  %5 = lin.map ins(%4, %x : !MN, !MN) -> !MN {body('arith.maximumf', 2)}\n"
        f"  %6 = lin.map ins(%5, %b : !MN, !N) -> !MN {body('arith.subf', 2)}\n"
        "  func.return %6 : !MN",
    )
    assert groups(preserves(FUSE, module, SIZES)) == [1]


def test_a_reduction_of_everything_does_not_hold_its_users_to_one_thread_block() -> None:
    module = program(
        "(%x: !MN) -> !MN",
        "  %s = lin.reduce sum %x axes [0, 1] : !MN -> !S\n"
        f"  %d = lin.map ins(%x, %s : !MN, !S) -> !MN {body('arith.divf', 2)}\n  func.return %d : !MN",
    )
    assert groups(preserves(FUSE, module, SIZES)) == [1, 1]


def test_softmax_of_a_matmul_is_two_kernels_and_the_narrow_value_goes_between() -> None:
    """bf16 leaves the first kernel, not the f32 accumulator."""
    module = parse(
        "sym.symbol @M\nsym.symbol @N\nsym.symbol @K\n"
        "func.func @f(%a: tensor<?x?xbf16, #sym.dims<M, K>>, %b: tensor<?x?xbf16, #sym.dims<K, N>>)"
        " -> tensor<?x?xbf16, #sym.dims<M, N>> {\n"
        "  %c = lin.matmul %a, %b : tensor<?x?xbf16, #sym.dims<M, K>>, tensor<?x?xbf16, #sym.dims<K, N>>"
        " -> tensor<?x?xbf16, #sym.dims<M, N>>\n"
        "  %y = lin.softmax %c axis 1 : tensor<?x?xbf16, #sym.dims<M, N>> -> tensor<?x?xbf16, #sym.dims<M, N>>\n"
        "  func.return %y : tensor<?x?xbf16, #sym.dims<M, N>>\n}\n"
    )
    after = preserves(FUSE, module, SIZES)
    assert groups(after) == [2, 4]
    first = ops_named(after, "lin.group")[0]
    assert [str(r.type) for r in first.results] == ["tensor<?x?xbf16, #sym.dims<M, N>>"]


def test_i1_between_two_bodies_stays_i1() -> None:
    module = parse(
        "sym.symbol @M\n"
        "func.func @f(%x: tensor<?xf32, #sym.dims<M>>) -> tensor<?xf32, #sym.dims<M>> {\n"
        "  %c = lin.map ins(%x : tensor<?xf32, #sym.dims<M>>) -> tensor<?xi1, #sym.dims<M>> {\n"
        "  ^bb0(%p: f32):\n    %z = arith.constant 0.0 : f32\n    %r = arith.cmpf ogt, %p, %z : f32\n"
        "    lin.yield %r : i1\n  }\n"
        "  %y = lin.map ins(%c, %x : tensor<?xi1, #sym.dims<M>>, tensor<?xf32, #sym.dims<M>>)"
        " -> tensor<?xf32, #sym.dims<M>> {\n"
        "  ^bb0(%p: i1, %q: f32):\n    %n = arith.negf %q : f32\n    %r = arith.select %p, %q, %n : f32\n"
        "    lin.yield %r : f32\n  }\n  func.return %y : tensor<?xf32, #sym.dims<M>>\n}\n"
    )
    assert groups(preserves(FUSE, module, SIZES)) == [1]


def test_a_read_at_index_0_of_what_facts_alone_make_one_row_is_not_fused() -> None:
    """The one row of the value may be read at 0; the rows of the operand, which are M, may not."""
    module = program(
        "(%x: !MN) -> !N",
        f"  %a = lin.generic (i, j) ins(%x[i, j] : !MN) out[i, j] : !1N {body('arith.negf')}\n"
        f"  %b = lin.generic (j) ins(%a[0, j] : !1N) out[j] : !N {body('math.exp')}\n"
        "  func.return %b : !N",
        "sym.require M == 1\n",
    )
    after = preserves(["fuse-elementwise"], module, {"M": 1, "N": 4})
    assert len(ops_named(after, "lin.generic")) == 2


def test_a_transposed_copy_of_a_square_is_not_the_square() -> None:
    module = program(
        "(%x: !MM) -> !MM",
        "  %t = lin.generic (i, j) ins(%x[j, i] : !MM) out[i, j] : !MM {\n"
        "  ^bb0(%p: f32):\n    lin.yield %p : f32\n  }\n  func.return %t : !MM",
    )
    assert len(ops_named(preserves(["canonicalize"], module, SIZES), "lin.generic")) == 1


def test_transposes_compose_in_order() -> None:
    """With permutations that do not commute."""
    cube = "tensor<2x3x4xf32, #sym.dims<2, 3, 4>>"
    between = "tensor<3x2x4xf32, #sym.dims<3, 2, 4>>"
    last = "tensor<3x4x2xf32, #sym.dims<3, 4, 2>>"
    module = parse(
        f"func.func @f(%x: {cube}) -> {last} {{\n"
        f"  %a = lin.transpose %x perm [1, 0, 2] : {cube} -> {between}\n"
        f"  %b = lin.transpose %a perm [0, 2, 1] : {between} -> {last}\n  func.return %b : {last}\n}}\n"
    )
    assert len(ops_named(preserves(["canonicalize"], module, {}), "lin.transpose")) == 1
