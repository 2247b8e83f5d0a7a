"""`tilewright run --bisect-shapes`: which symbolic size a wrong result comes from.

The same call is compiled with all sizes as constants, with one symbol symbolic at a time, and with all of them; each is
compared with the reference, and with the results for constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tilewright.api.cli.arguments import CliArguments
from tilewright.api.cli.run import Call, as_list, reference_results, spelled
from tilewright.api.diagnostics_cli import FAILURE, Console, as_diagnostic
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.sym import dims_of
from tilewright.lowering.specialise import keep_entry, specialise
from tilewright.runtime.backends.select import choose
from tilewright.runtime.compile import compile_module
from tilewright.runtime.reference import ReferenceValue, compare
from tilewright.runtime.variants import copy_module

Results = list[np.ndarray[Any, Any]]


@dataclass(frozen=True, slots=True)
class Configuration:
    """Which symbols stay symbolic."""

    name: str
    symbolic: tuple[str, ...]


def configurations(symbols: list[str]) -> Iterator[Configuration]:
    """Constants, each symbol alone, all symbols; none twice."""
    yield Configuration("all sizes constant", ())
    for symbol in symbols:
        yield Configuration(f"{symbol} symbolic", (symbol,))
    if len(symbols) > 1:
        yield Configuration("all sizes symbolic", tuple(symbols))


def bisect_shapes(console: Console, arguments: CliArguments, call: Call) -> int:
    """Run the configurations, print a line on each and the verdict: 0 for PASS, 1 where one of them differs."""
    if arguments.output is not None:
        raise TilewrightError("--output: expected without --bisect-shapes, which runs the program several times")
    choose(arguments.backend, arguments.arch)  # a backend that is not there is no difference between configurations
    say = console.stdout.write
    say(f"entry    @{call.function.sym_name.data}\ndims     {spelled(call.sizes)}\n")
    expected = reference_results(call)
    constant: Results | None = None
    failed: tuple[Configuration, str] | None = None
    for each in configurations(list(call.sizes)):
        try:
            results = _run(call, each, arguments)
        except Exception as error:
            # A pass or a kernel that breaks down is a difference like any other: the point is where it begins.
            fault = f"fails: {as_diagnostic(error).message}"
        else:
            fault = _difference(results, expected)
            constant = results if not each.symbolic else constant
            if fault is None:
                say(f"ok       {each.name}{_compared(results, constant) if each.symbolic else ''}\n")
        if fault is not None:
            say(f"differs  {each.name}: {fault}\n")
            failed = failed or (each, fault)
        console.stdout.flush()
    if failed is None:
        say("PASS     no configuration differs from the reference\n")
        return 0
    say(f"FAIL     first with {failed[0].name}: {failed[1]}\n")
    for symbol in failed[0].symbolic:
        say(f"         {symbol} = {call.sizes[symbol]} is {', '.join(_places(call.function, symbol))}\n")
    return FAILURE


def _run(call: Call, configuration: Configuration, arguments: CliArguments) -> Results:
    entry = call.function.sym_name.data
    module = _specialised(call.module, entry, {n: s for n, s in call.sizes.items() if n not in configuration.symbolic})
    return as_list(
        compile_module(module, arguments.backend, arguments.arch, entry)(*call.inputs, force=arguments.force)
    )


def _specialised(module: ModuleOp, entry: str, sizes: dict[str, int]) -> ModuleOp:
    copied = copy_module(module)
    keep_entry(copied, next(op for op in copied.ops if isinstance(op, func.FuncOp) and op.sym_name.data == entry))
    specialise(copied, sizes)
    return copied


def _difference(results: Results, expected: list[ReferenceValue]) -> str | None:
    for number, (result, value) in enumerate(zip(results, expected, strict=True)):
        mismatch = compare(result, value)
        if mismatch is not None:
            return f"result {number}: {mismatch}"
    return None


def _compared(results: Results, constant: Results | None) -> str:
    """How the results stand to those for constants; both are within the bound, so that any difference is rounding."""
    if constant is None:
        return ""
    pairs = list(zip(results, constant, strict=True))
    if all(a.tobytes() == b.tobytes() for a, b in pairs):
        return ", equal to constants bit for bit"
    with np.errstate(all="ignore"):
        most = max(float(np.nanmax(np.abs(a.astype(np.float64) - b.astype(np.float64)))) for a, b in pairs if a.size)
    return f", {most:.3g} from constants at most"


def _places(function: func.FuncOp, symbol: str) -> list[str]:
    """Every dim of arguments and results that the symbol is in: `argument 0 dim 1`, `result 0 dim 0 (2*N)`."""
    found: list[str] = []
    last = function.body.block.last_op
    groups = [("argument", list(function.body.block.args)), ("result", [] if last is None else list(last.operands))]
    for what, values in groups:
        for number, value in enumerate(values):
            if not is_tensor(value.type):
                continue
            for dim, size in enumerate(dims_of(value.type)):
                if symbol in size.symbols:
                    found.append(f"{what} {number} dim {dim}" + ("" if str(size) == symbol else f" ({size})"))
    return found
