"""The dialect as IR: round trips, what is refused, shape checks and facts read off a module."""

from __future__ import annotations

from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, Builtin, FileLineColLoc, IntAttr, ModuleOp, StringAttr, TensorType, f32
from xdsl.dialects.func import Func
from xdsl.dialects.test import Test
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.sym import (
    Answer,
    ApplyOp,
    CastOp,
    Expr,
    IndexScope,
    RequireOp,
    Sym,
    SymbolOp,
    check_consistent,
    check_dims,
    declared_symbols,
    dims_of,
    index_expr,
    module_facts,
    parse_dims_from,
    parse_expr,
    parse_relation,
    symbolic_tensor,
)

PROGRAM = """\
builtin.module {
  sym.symbol @M {min = 1, max = 8192, multiple_of = 8, likely = [128, 2048], source = "arg"}
  sym.symbol @N
  sym.symbol @S {min = 0}
  sym.symbol @ld {source = "stride"}
  sym.require S >= N
  sym.require S mod 16 == 0 {note = "tile"}
  func.func @f(%x: tensor<?x?x512xf32, #sym.dims<M, 2*S + 1, 512>>, %i: index) {
    %y = sym.cast %x : tensor<?x?x512xf32, #sym.dims<M, 2*S + 1, 512>> to tensor<?x5x512xf32, #sym.dims<N, 5, 512>>
    %a = sym.apply S + 128*i where i = %i
    %b = sym.apply M ceildiv 128
    %c = sym.apply 2*p + q where p = %b, q = %a
    "test.op"() {a = #sym.expr<S mod 4>, d = #sym.dims<>, r = #sym.rel<S <= -1 + N>} : () -> ()
    sym.require M < 100
    func.return
  }
}
"""


def context() -> Context:
    ctx = Context()
    for dialect in (Builtin, Arith, Func, Test, Sym):
        ctx.load_dialect(dialect)
    return ctx


def parse(text: str) -> ModuleOp:
    module = Parser(context(), text, "k.mlir").parse_module()
    module.verify()
    return module


def text_of(module: ModuleOp, generic: bool = False) -> str:
    out = StringIO()
    Printer(out, print_generic_format=generic).print_op(module)
    return out.getvalue()


def test_custom_and_generic_form_round_trip() -> None:
    module = parse(PROGRAM)
    printed = text_of(module)
    assert printed == PROGRAM.replace("S <= -1 + N", "S <= N - 1").rstrip("\n")
    for again in (parse(printed), parse(text_of(module, generic=True))):
        assert again.is_structurally_equivalent(module)
        assert text_of(again) == printed


def test_spellings_of_a_shape_are_one_type() -> None:
    module = parse("""
    func.func @f(%x: tensor<?xf32, #sym.dims<1 + S*2>>) -> tensor<?xf32, #sym.dims<S + 1 + S>> {
      func.return %x : tensor<?xf32, #sym.dims<2*S + 1>>
    }""")
    assert "1 + S" not in text_of(module)


def test_ops_are_built_in_python() -> None:
    symbol = SymbolOp("M", min=1, multiple_of=8, likely=[64, 128], source="host")
    assert (symbol.lower_bound, symbol.upper_bound, symbol.divisor) == (1, None, 8)
    assert symbol.likely_values == (64, 128)
    three = ApplyOp(3)
    apply = ApplyOp(parse_expr("2*i + M"), {"i": three})
    module = ModuleOp([symbol, three, apply, RequireOp(parse_relation("M > 2"))])
    module.verify()
    assert text_of(parse(text_of(module))) == text_of(module)
    stride = SymbolOp("ld", source="stride")
    assert stride.lower_bound is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sym.symbol @mod", "must not be a keyword"),
        ('sym.symbol @"a b"', "must match"),
        ("sym.symbol @M {min = 3, max = 2}", "min 3 and max 2"),
        ("sym.symbol @M {min = -1}", "at least 0, got -1"),
        ("sym.symbol @M {multiple_of = 0}", "at least 1, got 0"),
        ("sym.symbol @M {min = 3, max = 7, multiple_of = 8}", "multiple of 8"),
        ('sym.symbol @M {source = "moon"}', "got 'moon'"),
        ("sym.symbol @M {likely = [1.0]}", "expected integers"),
        ("sym.symbol @M {max = 1.0}", "integer"),
        ("sym.require S", "expected one of"),
        ("sym.require S = 3", "expected '=='"),
        ("sym.require a.b > 3", "must match"),
        ("sym.require a floordiv 0 == 1", "division by zero"),
        ("sym.require " + "(" * 200, "nested too deeply"),
        ("sym.require " + "9" * 5000 + " > 0", "integer too large"),
        ("%a = sym.apply", "expected an integer"),
        ("%a = sym.apply i where i = %b", "%b"),
        ("%a = sym.apply 1 %b = sym.apply i where i = %a, i = %a", "'i' twice"),
        ("%a = sym.apply 1 %b = sym.apply 2 where mod = %a", "keyword"),
        ('"test.op"() {a = #sym.dims<M, N +>} : () -> ()', "expected an integer"),
    ],
)
def test_invalid_ir_is_refused(text: str, message: str) -> None:
    with pytest.raises((ParseError, VerifyException)) as fault:
        parse(text)
    assert message in str(fault.value)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("tensor<?xf32, #sym.dims<M>>", "tensor<?xf16, #sym.dims<M>>", "one element type"),
        ("tensor<?xf32, #sym.dims<M>>", "tensor<?x1xf32, #sym.dims<M, 1>>", "one rank"),
        ("tensor<?xf32, #sym.dims<M>>", "tensor<?xf32, #sym.dims<M + 1>>", "never are"),
        ("tensor<?xf32, #sym.dims<M>>", "tensor<?xf32>", "#sym.dims encoding"),
    ],
)
def test_casts_that_cannot_hold_are_refused(source: str, target: str, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        parse(f'%x = "test.op"() : () -> {source}\n%y = sym.cast %x : {source} to {target}')


def test_a_cast_states_what_must_hold() -> None:
    cast = next(op for op in parse(PROGRAM).walk() if isinstance(op, CastOp))
    assert cast.obligations() == (parse_relation("M == N"), parse_relation("2*S + 1 == 5"))


def test_shapes_of_types() -> None:
    dims = (Expr.symbol("B"), Expr.const(4), parse_expr("2*S + 1"))
    tensor = symbolic_tensor(f32, dims)
    assert tensor.get_shape() == (DYNAMIC_INDEX, 4, DYNAMIC_INDEX)
    assert dims_of(tensor) == dims
    assert str(tensor) == "tensor<?x4x?xf32, #sym.dims<B, 4, 2*S + 1>>"
    assert dims_of(TensorType(f32, [2, 3])) == (Expr.const(2), Expr.const(3))
    with pytest.raises(TilewrightError, match=r"#sym\.dims"):
        dims_of(TensorType(f32, [DYNAMIC_INDEX]))
    with pytest.raises(TilewrightError, match="ranked tensor"):
        dims_of(f32)
    with pytest.raises(TilewrightError, match="at least 0"):
        symbolic_tensor(f32, [-2])


def test_other_syntax_can_read_expressions() -> None:
    parser = Parser(context(), "M ceildiv 32, N - 1] step 4")
    assert parse_dims_from(parser) == (parse_expr("M ceildiv 32"), parse_expr("N - 1"))
    parser.parse_punctuation("]")
    parser.parse_keyword("step")


def test_a_sound_module_has_no_shape_fault() -> None:
    assert check_dims(parse(PROGRAM)) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('"test.op"() {t = tensor<?x4xf32, #sym.dims<M>>} : () -> ()', "rank 2 expected as many dims, got 1"),
        ('"test.op"() : () -> tensor<?xf32>', "expected a #sym.dims encoding"),
        ('"test.op"() : () -> tensor<4xf32, #sym.dims<5>>', "expected the static size 5, got 4"),
        ('"test.op"() : () -> tensor<4xf32, #sym.dims<M>>', "expected '?' for the size M"),
        ('"test.op"() : () -> tensor<?xf32, #sym.dims<4>>', "expected the static size 4 in place of '?'"),
        ('"test.op"() {t = [() -> tensor<?xf32, #sym.dims<Q>>]} : () -> ()', "symbol 'Q' is not declared"),
        (
            '"test.op"() ({ ^bb0(%x: tensor<?xf32, #sym.dims<Q>>): "test.termop"() : () -> () }) : () -> ()',
            "symbol 'Q' is not declared",
        ),
        ("func.func private @g(tensor<?xf32, #sym.dims<Q>>)", "symbol 'Q' is not declared"),
        ("sym.require Q >= 0", "symbol 'Q' is not declared"),
        ("%a = sym.apply Q", "symbol 'Q' is not declared"),
        ("%a = sym.apply 1 %b = sym.apply M where M = %a", "'M' in where is a declared symbol"),
        ('"test.op"() ({ sym.symbol @Z "test.termop"() : () -> () }) : () -> ()', "'Z' expected at the top level"),
    ],
)
def test_shape_faults_are_found(line: str, message: str) -> None:
    faults = check_dims(parse("sym.symbol @M\n" + line))
    assert len(faults) == 1
    assert message in faults[0][1]


def test_a_symbol_declared_twice_is_found() -> None:
    module = Parser(context(), "sym.symbol @M sym.symbol @M {min = 3}").parse_module()
    assert [message for _, message in check_dims(module)] == ["symbol 'M' is declared twice"]


def test_module_facts_carry_locations() -> None:
    module = parse("sym.symbol @S {min = 4}\nsym.symbol @W {max = 3}\nsym.require W >= S")
    for line, op in enumerate(module.ops, start=1):
        op.location = FileLineColLoc(StringAttr("k.mlir"), IntAttr(line), IntAttr(1))
    message = module_facts(module).contradiction()
    assert message is not None
    for statement in ("S >= 4 (k.mlir:1:1)", "W <= 3 (k.mlir:2:1)", "W >= S (k.mlir:3:1)"):
        assert statement in message
    assert list(declared_symbols(module)) == ["S", "W"]


def test_index_values_become_expressions_and_back() -> None:
    module = parse("""
    sym.symbol @M {multiple_of = 128}
    %i = "test.op"() : () -> index
    %j = "test.op"() : () -> index
    %c4 = arith.constant 4 : index
    %a = sym.apply 128*i + M where i = %i
    %b = arith.muli %c4, %a : index
    %d = arith.subi %b, %j : index
    "test.op"(%d, %i, %j) : (index, index, index) -> ()""")
    d, i, j = list(module.ops)[-1].operands
    scope = IndexScope(module_facts(module))
    expr = scope.expr(d)
    assert expr is scope.expr(i) * 512 + Expr.symbol("M") * 4 - scope.expr(j)
    assert index_expr(i) is scope.expr(i)
    assert scope.expr(i) is not scope.expr(j)
    rebuilt = scope.apply(expr)
    assert dict(rebuilt.where.items()) == {"i": i, "j": j}
    assert rebuilt.expr.data is parse_expr("512*i + 4*M - j")
    inner = scope.child()
    tile = inner.bounded(i, 0, parse_expr("M ceildiv 128"), "grid")
    bound = parse_relation("x + 127 < M").substitute({"x": tile * 128})
    assert inner.facts.prove(bound) is Answer.PROVED
    assert scope.facts.prove(bound) is Answer.UNKNOWN


def test_contradictory_requirements_are_an_error_at_the_last_of_them() -> None:
    program = """builtin.module {
      sym.symbol @S1 {min = 1}
      sym.symbol @S0
      sym.symbol @other {min = 4, max = 4}
      sym.require S0 == 2*S1
      func.func @f() {
        sym.require S0 == S1
        func.return
      }
    }"""
    module = parse_module(program, "k.mlir", context())
    with pytest.raises(TilewrightError) as fault:
        check_consistent(module)
    text = str(fault.value)
    assert text.startswith("k.mlir:7:9: error: requirements that cannot hold: ")
    for statement in (
        "S0 == 2*S1 (k.mlir:5:7)",
        "S0 == S1 (k.mlir:7:9)",
        "S1 >= 1 (k.mlir:2:7)",
        "S1 == 0 would follow",
    ):
        assert statement in text
    assert "other" not in text
    assert "\n" not in text


def test_requirements_of_two_functions_are_not_mixed() -> None:
    program = """builtin.module {
      sym.symbol @S
      func.func @f() {
        sym.require S == 1
        func.return
      }
      func.func @g() {
        sym.require S == 2
        func.return
      }
    }"""
    check_consistent(parse_module(program, "k.mlir", context()))
