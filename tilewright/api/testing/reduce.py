"""Makes a failing program smaller on its own text: fewer ops and results, smaller sizes, plain symbols.

Hypothesis shrinks what a strategy drew; this goes on from there, whatever strategy a program comes from: it returns
an earlier value, replaces an op by one of its operands or by a new argument, and drops what is unused. Each try is a
whole program, which `still_fails` judges.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from textwrap import dedent

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilewright.api.cli.sizes import entry_symbols
from tilewright.api.testing.execute import context
from tilewright.api.testing.program import Program
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.sym import RequireOp, SymbolOp, dims_of
from tilewright.dialects.verify import verify_module

SMALL = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65)
"""Sizes that are tried for a symbol, in this order: 1 and 2 say more than 0, where a fault shows in them."""


def reduce_program(program: Program, still_fails: Callable[[Program], bool], seconds: float) -> Program:
    """A program that is as small as the tries of `seconds` make it, and of which `still_fails` is true.

    `program` itself must fail; it comes back where nothing smaller does.
    """
    end = time.monotonic() + seconds
    best = program
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate in _candidates(best):
            if time.monotonic() > end:
                break
            if _size(candidate) < _size(best) and still_fails(candidate):
                best, progress = candidate, True
                break
    return best


def _size(program: Program) -> tuple[int, int, int, int]:
    """What is made smaller: the text, then the sizes, then what the values are."""
    sizes = sum(10 if size == 0 else size for size in program.sizes.values())
    return len(program.text), sizes, int(program.lane == "special"), program.seed


def _candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, those that drop most first."""
    if program.level == "tensor":
        for module in _smaller_modules(program.text):
            made = _printed(program, module)
            if made is not None:
                yield made
    for name, size in program.sizes.items():
        for smaller in SMALL:
            if (10 if smaller == 0 else smaller) < size:
                yield replace(program, sizes={**program.sizes, name: smaller})
    if program.lane == "special":
        yield replace(program, lane="ordinary")
    for seed in (0, 1, 2, 3):
        if seed < program.seed:
            yield replace(program, seed=seed)


def _printed(program: Program, module: ModuleOp) -> Program | None:
    """The program of a changed module without what is unused; None where it is not a program."""
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    _drop_unused(module, function)
    try:
        verify_module(module)
        names = entry_symbols(function)
    except TilewrightError:
        return None
    sizes = {name: program.sizes[name] for name in names if name in program.sizes}
    if len(sizes) != len(names):
        return None
    return replace(program, text=plain_text(module), sizes=sizes)


def plain_text(module: ModuleOp) -> str:
    """The text of a module without the `builtin.module` around it."""
    return dedent("\n".join(str(module).splitlines()[1:-1])) + "\n"


def _smaller_modules(text: str) -> Iterator[ModuleOp]:
    """Changed copies of the module of a text."""

    def fresh() -> tuple[ModuleOp, func.FuncOp]:
        module = parse_module(text, "program.mlir", context())
        (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
        return module, function

    yield fresh()[0]  # printed anew, without what is unused
    base, function = fresh()  # only read: what is yielded is changed by the caller
    count = len(function.body.block.ops) - 1
    returned = len(_terminator(function).operands)
    for number in range(count):
        for result in range(len(_op(function, number).results)):
            module, changed = fresh()
            _return(changed, [_op(changed, number).results[result]])
            yield module
    if returned > 1:
        for number in range(returned):
            module, changed = fresh()
            _return(changed, [_terminator(changed).operands[number]])
            yield module
    for number in reversed(range(count)):
        op = _op(function, number)
        if len(op.results) != 1:
            continue
        for operand, value in enumerate(op.operands):
            if value.type == op.results[0].type:
                module, changed = fresh()
                old = _op(changed, number)
                old.results[0].replace_all_uses_with(old.operands[operand])
                yield module
        if is_tensor(op.results[0].type):
            module, changed = fresh()
            old = _op(changed, number)
            block = changed.body.block
            made = block.insert_arg(old.results[0].type, len(block.args))
            old.results[0].replace_all_uses_with(made)
            yield module
    for index, declared in enumerate(base.ops):
        if isinstance(declared, RequireOp):
            module, _ = fresh()
            _erase(list(module.ops)[index])
            yield module
        elif isinstance(declared, SymbolOp) and declared.properties.keys() - {"sym_name"}:
            module, _ = fresh()
            old = list(module.ops)[index]
            for name in [n for n in old.properties if n != "sym_name"]:
                del old.properties[name]
            yield module


def _op(function: func.FuncOp, number: int) -> Operation:
    return list(function.body.block.ops)[number]


def _terminator(function: func.FuncOp) -> Operation:
    last = function.body.block.last_op
    assert last is not None  # the module has been verified
    return last


def _return(function: func.FuncOp, values: Iterable[SSAValue]) -> None:
    old = _terminator(function)
    function.body.block.insert_op_before(func.ReturnOp(*values), old)
    _erase(old)


def _drop_unused(module: ModuleOp, function: func.FuncOp) -> None:
    """Erase ops, arguments, symbols and requirements that nothing needs; the type of the function follows."""
    block = function.body.block
    for op in reversed(list(block.ops)[:-1]):
        if op.results and not any(result.uses for result in op.results):
            _erase(op)
    for argument in reversed(list(block.args)):
        if not argument.uses and not _binds_needed(argument, function):
            block.erase_arg(argument)
    types = FunctionType.from_lists([a.type for a in block.args], [v.type for v in _terminator(function).operands])
    function.properties["function_type"] = types
    used = str(function)
    for op in [op for op in module.ops if isinstance(op, RequireOp)]:
        if not any(_mentions(used, name) for name in op.relation.data.symbols):
            _erase(op)
    used += "".join(str(op) for op in module.ops if isinstance(op, RequireOp))
    for op in [op for op in module.ops if isinstance(op, SymbolOp)]:
        if not _mentions(used, op.symbol):
            _erase(op)


def _binds_needed(argument: BlockArgument, function: func.FuncOp) -> bool:
    """Whether an argument's shape has a symbol that no other argument's has, and that an op needs."""
    others = _names([a for a in function.body.block.args if a is not argument])
    body = "".join(str(op) for op in function.body.block.ops)
    return any(_mentions(body, name) for name in _names([argument]) - others)


def _names(values: Iterable[SSAValue]) -> set[str]:
    """The symbols in the shapes of values."""
    return {name for v in values if is_tensor(v.type) for dim in dims_of(v.type) for name in dim.symbols}


def _mentions(text: str, symbol: str) -> bool:
    """Whether a text has the symbol as a whole word."""
    start = text.find(symbol)
    while start >= 0:
        end = start + len(symbol)
        before, after = text[start - 1 : start], text[end : end + 1]
        if not (before.isalnum() or before in ("_", "%", "^")) and not (after.isalnum() or after == "_"):
            return True
        start = text.find(symbol, end)
    return False


def _erase(op: Operation) -> None:
    op.detach()
    op.erase(safe_erase=False)
