"""Dominance, which xDSL does not check, and one located line for what it does."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.cf import Cf
from xdsl.ir import Block, Operation

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.dialects.verify import verify_module


def context() -> Context:
    """Return a context with the control-flow dialect, which the compiler itself does not use."""
    made = make_context()
    made.register_dialect("cf", lambda: Cf)
    return made


def parse(text: str) -> ModuleOp:
    return parse_module(text, "in.mlir", context())


def fault(text: str) -> TilewrightError:
    with pytest.raises(TilewrightError) as caught:
        verify_module(parse(text))
    return caught.value


def test_use_before_definition() -> None:
    error = fault(
        "func.func @f(%a: i32) -> i32 {\n"
        "  %x = arith.addi %a, %later : i32\n"
        "  %later = arith.addi %a, %a : i32\n"
        "  func.return %x : i32\n}"
    )
    assert str(error) == (
        "in.mlir:2:3: error: 'arith.addi': operand 1 (%later) does not dominate this use: "
        "it is defined by 'arith.addi' at line 3"
    )


def test_a_cycle_in_one_block() -> None:
    error = fault("func.func @f() {\n  %a = arith.addi %b, %b : i32\n  %b = arith.addi %a, %a : i32\n  func.return\n}")
    assert "operand 0 (%b) does not dominate this use" in error.message


def test_a_value_of_a_sibling_region() -> None:
    error = fault(
        "func.func @f(%c: i1) {\n"
        "  scf.if %c {\n    %u = arith.addi %v, %v : i32\n  }\n"
        "  scf.if %c {\n    %v = arith.constant 1 : i32\n  }\n"
        "  func.return\n}"
    )
    assert str(error).startswith("in.mlir:3:5: error: 'arith.addi': operand 0 (%v) does not dominate")


def test_a_value_of_the_next_function() -> None:
    error = fault(
        "func.func @f() -> i32 {\n  func.return %x : i32\n}\n"
        "func.func @g() {\n  %x = arith.constant 1 : i32\n  func.return\n}"
    )
    assert "does not dominate" in error.message


def test_a_loop_body_sees_what_stands_before_it_only() -> None:
    good = (
        "func.func @f(%n: index) {\n"
        "  %z = arith.constant 0 : index\n  %o = arith.constant 1 : index\n"
        "  scf.for %i = %z to %n step %o {\n    %s = arith.addi %i, %n : index\n  }\n"
        "  func.return\n}"
    )
    verify_module(parse(good))
    bad = good.replace("  func.return", "  %t = arith.addi %i, %n : index\n  func.return")
    with pytest.raises(TilewrightError, match="%i is used but not defined"):
        parse(bad)


DIAMOND = (
    "func.func @f(%c: i1) -> i32 {\n"
    "  %a = arith.constant 1 : i32\n"
    "  cf.cond_br %c, ^left, ^right\n"
    "^left:\n  %l = arith.addi %a, %a : i32\n  cf.br ^join\n"
    "^right:\n  %r = arith.addi %a, %a : i32\n  cf.br ^join\n"
    "^join:\n  func.return %VALUE : i32\n}"
)


def test_a_block_sees_its_dominators() -> None:
    verify_module(parse(DIAMOND.replace("VALUE", "a")))


@pytest.mark.parametrize("name", ["l", "r"])
def test_a_join_does_not_see_one_branch(name: str) -> None:
    assert f"operand 0 (%{name}) does not dominate this use" in fault(DIAMOND.replace("VALUE", name)).message


def test_a_loop_of_blocks() -> None:
    text = (
        "func.func @f(%c: i1) -> i32 {\n  cf.br ^head\n"
        "^head:\n  %h = arith.constant 1 : i32\n  cf.cond_br %c, ^body, ^exit\n"
        "^body:\n  %b = arith.addi %h, %h : i32\n  cf.br ^head\n"
        "^exit:\n  func.return %VALUE : i32\n}"
    )
    verify_module(parse(text.replace("VALUE", "h")))
    assert "operand 0 (%b)" in fault(text.replace("VALUE", "b")).message


def test_what_control_cannot_reach_may_use_anything() -> None:
    verify_module(parse("func.func @f() {\n  func.return\n^dead:\n  %x = arith.addi %x, %x : i32\n  cf.br ^dead\n}"))


def reachable(entry: Block, without: Block | None) -> set[Block]:
    """Return the blocks that control reaches from `entry` if `without` is taken out: dominance by its definition."""
    found: set[Block] = set()
    stack = [entry]
    while stack:
        block = stack.pop()
        if block is without or block in found:
            continue
        found.add(block)
        if block.last_op is not None:
            stack.extend(block.last_op.successors)
    return found


def test_dominance_of_random_graphs_agrees_with_its_definition() -> None:
    """A dominates B when B cannot be reached without A. Each block defines a value, and one block uses one of them."""
    import random

    generator = random.Random(7)
    verdicts = {True: 0, False: 0}
    for _ in range(150):
        count = generator.randint(2, 7)
        user, definer = generator.randrange(1, count), generator.randrange(count)
        lines = ["func.func @f(%c: i1) {"]
        for number in range(count):
            if number:
                lines.append(f"^b{number}:")
            if number == user:
                lines.append(f"  %use = arith.addi %v{definer}, %v{definer} : i32")
            lines.append(f"  %v{number} = arith.constant {number} : i32")
            targets = [generator.randrange(1, count) for _ in range(2)]
            lines.append(f"  cf.cond_br %c, ^b{targets[0]}, ^b{targets[1]}")
        module = parse("\n".join([*lines, "}"]))
        blocks = list(next(iter(module.body.block.ops)).regions[0].blocks)
        unreached = blocks[user] not in reachable(blocks[0], None)
        dominated = definer != user and blocks[user] not in reachable(blocks[0], blocks[definer])
        try:
            verify_module(module)
            accepted = True
        except TilewrightError:
            accepted = False
        assert accepted == (unreached or dominated), module
        verdicts[accepted] += 1
    assert min(verdicts.values()) > 20


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("func.func @f(%a: i32) -> i64 {\n  func.return %a : i32\n}", "in.mlir:2:3: error: 'func.return': "),
        ('"arith.addi"() : () -> i32', "in.mlir:1:1: error: 'arith.addi': expected 2 operands"),
        ("func.func @f() {\n  %0 = arith.constant 1 : i32\n}", "in.mlir:2:3: error: 'arith.constant': "),
        ('func.func @f() {\n  "func.return"() {} : () -> ()\n  func.return\n}', "in.mlir:2:3: error: 'func.return': "),
    ],
)
def test_what_xdsl_finds_is_one_located_line(text: str, start: str) -> None:
    message = str(fault(text))
    assert message.startswith(start)
    assert "builtin.module" not in message


def test_the_message_of_a_large_module_stays_small() -> None:
    body = "".join(f"  %{i} = arith.constant {i} : i32\n" for i in range(500))
    assert len(str(fault(f"func.func @f() -> i64 {{\n{body}  func.return %0 : i32\n}}"))) < 300


def test_an_operand_from_outside_the_module() -> None:
    module = parse("func.func @f(%a: i32) -> i32 {\n  func.return %a : i32\n}")
    other = parse("%x = arith.constant 1 : i32")
    returned: Operation = next(op for op in module.walk() if op.name == "func.return")
    returned.operands[0] = next(iter(other.body.block.ops)).results[0]
    with pytest.raises(TilewrightError, match="is not in the module"):
        verify_module(module)
