"""Each operator makes the fault that it names, everywhere it fits, and nowhere else."""

from __future__ import annotations

import pytest

from tests.mutants.headers import Header
from tests.mutants.mutants import SAMPLE, sites
from tests.mutants.operators import Operator
from tests.mutants.source import Source
from tests.mutants.table import OPERATORS

BY_NAME: dict[str, Operator] = {operator.name: operator for operator in OPERATORS}

CASES = [
    ("boundary", "ok = a < b", {"ok = a <= b"}),
    ("boundary", "ok = low <= x < high", {"ok = low < x < high", "ok = low <= x <= high"}),
    ("boundary", 'r = Relation(a, "<=", b)', {'r = Relation(a, "<", b)'}),
    ("boundary", 'c = compare("slt", a, b)', {'c = compare("sle", a, b)'}),
    ("plus-one", "x = n * 16", {"x = n * 17"}),
    ("plus-one", "x = n * True", set()),
    ("minus-one", "x = range(0, n)", {"x = range((-1), n)"}),
    ("swapped-operands", "x = a - b.c", {"x = b.c - a"}),
    ("swapped-operands", "x = (a + 1) // b", set()),
    ("swapped-operands", "x = arith.SubiOp(a, b)", {"x = arith.SubiOp(b, a)"}),
    ("wrong-arithmetic", "x = a + b * c", {"x = a - b * c", "x = a + b + c"}),
    ("wrong-arithmetic", "x += n", {"x -= n"}),
    ("wrong-arithmetic", "x = [a] + [b]", set()),
    ("rounding", "x = a // b", {"x = (-(-a // b))"}),
    ("rounding", "x = -(-a // b)", {"x = (a // b)"}),
    ("rounding", "x = ceildiv(a - b, c)", {"x = ((a - b) // c)"}),
    ("dropped-mask", "def f():\n    load(p, mask=m)", {"def f():\n    load(p, mask=None)"}),
    ("dropped-mask", "def f():\n    return w.both(a, b)", {"def f():\n    return a"}),
    ("dropped-mask", 'def f():\n    return ["clip"]', {'def f():\n    return ["proved"]'}),
    ("dropped-barrier", "add(BarrierOp())", {"pass"}),
    ("dropped-barrier", "add(LoadOp())", set()),
    ("wrong-identity", "identity = make(0, t)", {"identity = make(1, t)"}),
    (
        "wrong-identity",
        "values = {1: -math.inf, 2: math.inf}",
        {"values = {1: math.inf, 2: math.inf}", "values = {1: -math.inf, 2: -math.inf}"},
    ),
    ("pitch", "def f():\n    return row * pitch", {"def f():\n    return row * (pitch - 1)"}),
    ("wrong-stage", 'P = ("a", "b", "c")', {'P = ("b", "a", "c")', 'P = ("a", "c", "b")'}),
    ("dropped-guard", "def f():\n    if a:\n        return", {"def f():\n    if False:\n        return"}),
    ("dropped-guard", "def f():\n    if a:\n        g()", set()),
    ("negated-condition", "if a is b:\n    c", {"if a is not b:\n    c"}),
    ("negated-condition", "x = not (a + b)", {"x = (a + b)"}),
    ("negated-condition", "if f(a):\n    c", {"if not f(a):\n    c"}),
    ("dropped-conjunct", "x = a and (b or c)", {"x = (b or c)", "x = a"}),
    ("and-or", "x = a or b", {"x = a and b"}),
    ("and-or", "x = all(a)", {"x = any(a)"}),
    ("believed", "x = p(r) is Answer.PROVED", {"x = p(r) is not Answer.DISPROVED"}),
    ("believed", "x = s.proved(r)", {"x = True", "x = False"}),
    ("min-max", "x = min(a, b)", {"x = max(a, b)"}),
    ("min-max", "x = arith.MaxSIOp", {"x = arith.MinSIOp"}),
    ("wrong-dim", "x = sizes[0] + sizes[:-1]", {"x = sizes[1] + sizes[:-1]", "x = sizes[0] + sizes[1:]"}),
    ("wrong-order", "for d in reversed(s):\n    d", {"for d in list(s):\n    d"}),
    ("dropped-call", "block.add_op(x)", {"pass"}),
    ("dropped-call", "y = block.add_op(x)", set()),
    ("wrong-op", "x = arith.DivUIOp(a, b)", {"x = arith.RemUIOp(a, b)"}),
    ("wrong-width", "x = w.constant(n, I32)", {"x = w.constant(n, I64)"}),
    ("wrong-width", "width = 32", {"width = 64"}),
    ("wrong-width", "threads = 32", set()),
    ("emitted-sign", 'import simt_to_cuda\nx = f"{a} < {b}"', {'import simt_to_cuda\nx = f"{a} <= {b}"'}),
    ("twins", "x = op.source", {"x = op.target"}),
    ("twins", "def f(lower, upper):\n    return lower", {"def f(lower, upper):\n    return upper"}),
    ("twins", "def f(lower):\n    return lower", set()),
]


def programs(operator: Operator, text: str) -> set[str]:
    """What an operator makes of a program."""
    return {text[: e.start] + e.new + text[e.end :] for e in operator.sites(Source(text))}


@pytest.mark.parametrize(("name", "text", "expected"), CASES)
def test_faults(name: str, text: str, expected: set[str]) -> None:
    assert programs(BY_NAME[name], text) == expected


def test_every_operator_has_a_case_and_says_what_it_stands_for() -> None:
    assert {name for name, _, expected in CASES if expected} == BY_NAME.keys()
    assert len(BY_NAME) == len(OPERATORS) >= 12
    assert all(operator.summary().endswith(".") for operator in OPERATORS)


def test_the_quotas_make_the_sample() -> None:
    assert sum(operator.quota for operator in OPERATORS) == SAMPLE


PROSE = '''
"""Bound 1 < 2, and 3 - 4."""
from __future__ import annotations
import a
__all__ = ["a", "b"]
Pair: TypeAlias = "tuple[1, 2]"
if TYPE_CHECKING:
    x = 1 < 2
@decorator(1 + 2)
def f(x: Literal[1, 2] = None) -> Literal[3 - 4]:
    """Not min(a, b)."""
    assert a < b and c - d == 3
    if x:
        raise error_at(op, "a" + str(1 - 2))
    remark(op, name, 1 + 2)
    op.name_hint = "a" or "b"
'''


def test_words_and_types_are_passed_over() -> None:
    made = {(s.operator.name, s.edit.new) for s in sites("passes/some.py", PROSE)}
    # What is left of it: the condition of the error.
    assert made == {("negated-condition", "not x")}


HEADER = """// a < b
#ifdef __CUDACC__
int f(int a) { return a < 1; }
#else
template <int N>
int f(int a) {
  const char *s = "a < b";
  return a < N + 2;
}
#endif
"""


def test_headers_show_what_this_machine_runs() -> None:
    header = Header(HEADER)
    assert len(header.code) == len(HEADER)
    edits = list(BY_NAME["boundary"].header_sites(header))
    assert [header.line_of(e.start) for e in edits] == [8]
    assert [(e.new, header.scope_of(e.start)) for e in edits] == [("<=", "f")]
    assert [e.new for e in BY_NAME["plus-one"].header_sites(header)] == ["3"]
