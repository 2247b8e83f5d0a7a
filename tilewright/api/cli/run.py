"""`tilewright run`: sizes, inputs, one call, and what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tilewright.api.cli.arguments import CliArguments
from tilewright.api.cli.program import entry_of, read_module
from tilewright.api.cli.sizes import choose_sizes, parse_dims
from tilewright.api.diagnostics_cli import FAILURE, Console
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import FuncOp
from tilewright.runtime.arguments import intake
from tilewright.runtime.backends.reference import ReferenceBackend
from tilewright.runtime.compile import compile_module
from tilewright.runtime.inputs import Lane, make_inputs
from tilewright.runtime.plan import Parameter, parameter_of
from tilewright.runtime.reference import ReferenceValue, compare
from tilewright.runtime.variants import CompiledEntry


@dataclass(frozen=True, slots=True)
class Call:
    """A program with the arguments of one call."""

    module: ModuleOp
    function: func.FuncOp
    parameters: list[Parameter]
    sizes: dict[str, int]
    inputs: list[Any]


def prepare(module: ModuleOp, arguments: CliArguments) -> Call:
    """Take the program's entry, choose its sizes, and load or make up the arguments."""
    function = entry_of(module, arguments)
    parameters = [parameter_of(a.type, a.name_hint or f"arg{n}") for n, a in enumerate(function.body.block.args)]
    given = [_load(path, p, n) for n, (path, p) in enumerate(zip(arguments.inputs, parameters, strict=False))]
    if len(arguments.inputs) > len(parameters):
        raise TilewrightError(f"--input: expected at most {len(parameters)} arrays, got {len(arguments.inputs)}")
    if arguments.seed < 0:
        raise TilewrightError(f"--seed: expected a number of at least 0, got {arguments.seed}")
    sizes = choose_sizes(module, function, _pinned(parse_dims(arguments.dims), parameters, given))
    lane: Lane = "special" if arguments.lane == "special" else "ordinary"
    inputs = [*given, *make_inputs(function, sizes, arguments.seed, lane, first=len(given))]
    return Call(module, function, parameters, sizes, inputs)


def execute(console: Console, arguments: CliArguments) -> int:
    """Run the program; 0, or 1 where `--check` or `--bisect-shapes` finds a difference."""
    module = read_module(console, arguments)
    if any(isinstance(op, FuncOp) for op in module.ops):
        from tilewright.api.cli.run_tiles import run_tiles

        return run_tiles(console, arguments, module)
    call = prepare(module, arguments)
    if arguments.bisect_shapes:
        from tilewright.api.cli.bisect_shapes import bisect_shapes

        return bisect_shapes(console, arguments, call)
    module, function, sizes = call.module, call.function, call.sizes

    say = console.stdout.write
    started = time.perf_counter()
    kernel = compile_module(module, arguments.backend, arguments.arch, function.sym_name.data)
    compiling = time.perf_counter() - started
    say(f"entry    @{kernel.name}\n")
    say(f"dims     {spelled(sizes)}\n")
    console.stdout.flush()
    lowering = kernel.compile_seconds
    started = time.perf_counter()
    results = as_list(kernel(*call.inputs, force=arguments.force))
    took = time.perf_counter() - started
    lowering = kernel.compile_seconds - lowering
    # With backend auto the sizes have a say in it.
    say(f"backend  {kernel.backend} ({kernel.backend_reason})\n")
    for number, (result, type_) in enumerate(zip(results, function.function_type.outputs.data, strict=True)):
        say(f"result   {number}: {list(result.shape)} {parameter_of(type_, '').dtype}\n")
    say(f"compile  {compiling + lowering:.3f} s\nrun      {max(0.0, took - lowering):.6f} s\n")
    if arguments.output is not None:
        _save(results, Path(arguments.output))
    return _check(console, call, results) if arguments.check else 0


def spelled(sizes: dict[str, int]) -> str:
    """`M = 24, N = 64`, or `none`."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items()) or "none"


def as_list(returned: Any) -> list[np.ndarray[Any, Any]]:
    """What a kernel returned as a list of results."""
    return list(cast("tuple[np.ndarray[Any, Any], ...]", returned)) if isinstance(returned, tuple) else [returned]


def reference_results(call: Call) -> list[ReferenceValue]:
    """The results of the call by the reference."""
    reference = ReferenceBackend(CompiledEntry(call.module, call.function.sym_name.data, "sm_80"))
    pairs = zip(call.inputs, call.parameters, strict=True)
    return reference.evaluate([intake(x, p.dtype, p.name, index=n) for n, (x, p) in enumerate(pairs)])


def _check(console: Console, call: Call, results: list[np.ndarray[Any, Any]]) -> int:
    """Compare with the reference and print the verdict."""
    for number, (result, value) in enumerate(zip(results, reference_results(call), strict=True)):
        mismatch = compare(result, value)
        if mismatch is not None:
            console.stdout.write(f"FAIL     result {number}: {mismatch}\n")
            return FAILURE
    console.stdout.write("PASS     within the reference's error bound\n")
    return 0


def _load(path: str, expected: Parameter, number: int) -> np.ndarray[Any, Any]:
    try:
        found: Any = np.load(path, allow_pickle=False)
    except OSError as problem:
        raise TilewrightError(f"--input {path}: cannot be read: {problem.strerror or problem}") from None
    except (ValueError, EOFError):
        # NumPy takes whatever has no .npy header for a pickle, and its message advises to load that.
        raise TilewrightError(f"--input {path}: expected a .npy file with one array of numbers") from None
    if not isinstance(found, np.ndarray):
        raise TilewrightError(f"--input {path}: expected a .npy file with one array")
    rank = len(expected.dims or ())
    # Checks element type and rank, and reads two opaque bytes an element as bf16 where the argument is bf16.
    array = intake(cast("object", found), expected.dtype, expected.name, index=number, rank=rank).array
    assert array is not None
    return array


def _pinned(dims: dict[str, int], parameters: list[Parameter], given: list[np.ndarray[Any, Any]]) -> dict[str, int]:
    """The sizes that the user gave: with `--dim`, and as the sizes of input arrays."""
    known, origin = dict(dims), dict.fromkeys(dims, "--dim")
    for number, (expected, array) in enumerate(zip(parameters, given, strict=False)):
        for axis, (dim, size) in enumerate(zip(expected.dims or (), array.shape, strict=True)):
            name = str(dim)
            if name not in dim.symbols:
                continue
            where = f"--input {number} dim {axis}"
            if known.setdefault(name, size) != size:
                raise TilewrightError(f"{name} = {known[name]} from {origin[name]}, {size} from {where}")
            origin.setdefault(name, where)
    return known


def _save(results: list[np.ndarray[Any, Any]], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, result in enumerate(results):
            # A .npy file cannot name bf16: two opaque bytes an element, as --input reads it.
            np.save(folder / f"out{number}.npy", result.view("V2") if result.dtype.name == "bfloat16" else result)
    except OSError as problem:
        raise TilewrightError(f"--output {folder}: {problem.strerror or problem}") from None
