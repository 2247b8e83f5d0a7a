"""`tilewright run` on a module that has a `host.func` over tile kernels already, as an author or a failure file has it.

`reference` runs the kernels in the tile interpreter as they are; `sim`, with all checks, and `cpu` run what the tile
pipeline makes of them. `--check` compares with the program that the file states as the meaning (lines `//|`).
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from tilewright.api.cli.arguments import CliArguments
from tilewright.api.cli.sizes import parse_dims
from tilewright.api.diagnostics_cli import FAILURE, Console
from tilewright.api.testing.check import CheckFailed, compare_results, meaning_of
from tilewright.api.testing.execute import Backend, entry_of, execute
from tilewright.api.testing.failures import read_failure
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.sym import dims_of

_BACKENDS: dict[str, Backend] = {"auto": "sim", "sim": "sim", "cpu": "cpu", "reference": "tile"}


def run_tiles(console: Console, arguments: CliArguments, module: ModuleOp) -> int:
    """Run the module's one entry; 0, or 1 where `--check` finds a difference."""
    for option, given in (("--input", arguments.inputs), ("--bisect-shapes", arguments.bisect_shapes)):
        if given:
            raise TilewrightError(f"{option}: expected a program of the tensor level, got a host.func over kernels")
    backend = _BACKENDS.get(arguments.backend)
    if backend is None:
        raise TilewrightError(f"--backend: expected sim, cpu or reference for tile kernels, got {arguments.backend}")
    name = "<stdin>" if arguments.file == "-" else arguments.file
    stated = read_failure(console.sources[name], name).program
    program = replace(
        stated,
        sizes={**stated.sizes, **parse_dims(arguments.dims)},
        seed=arguments.seed,
        lane="special" if arguments.lane == "special" else "ordinary",
        level="tile",
    )
    missing = [name for name in _symbols(module) if name not in program.sizes]
    if missing:
        raise TilewrightError(f"expected a size for {missing[0]}: give --dim {missing[0]}=SIZE")
    say = console.stdout.write
    results = execute(module, program, backend)
    sizes = ", ".join(f"{symbol} = {size}" for symbol, size in program.sizes.items()) or "none"
    say(f"dims     {sizes}\nbackend  {'tile interpreter' if backend == 'tile' else backend}\n")
    for number, result in enumerate(results):
        say(f"result   {number}: {list(result.shape)} {result.dtype}\n")
    if not arguments.check:
        return 0
    try:
        compare_results(results, meaning_of(program), f"in the {backend}")
    except CheckFailed as error:
        say(f"FAIL     {error}\n")
        return FAILURE
    judge = "the program that the file states" if program.meaning else "what the tile interpreter computes"
    say(f"PASS     within the bounds of {judge}\n")
    return 0


def _symbols(module: ModuleOp) -> list[str]:
    """The symbols in the shapes of the entry's arguments."""
    types = [argument.type for argument in entry_of(module).body.block.args]
    return sorted({name for type_ in types if is_tensor(type_) for dim in dims_of(type_) for name in dim.symbols})
