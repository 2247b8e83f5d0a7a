"""`tilewright.compile`: from tensors, IR text or a module to a kernel that can be called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.diagnostics import TilewrightError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilewright.api.tensor import Tensor
    from tilewright.runtime.kernel import Kernel


def compile(  # the name users expect; it shadows the builtin in this module only
    program: Tensor | Sequence[Tensor] | ModuleOp | str | Path,
    *,
    target: str = "auto",
    inputs: Sequence[Tensor] | None = None,
    arch: str | None = None,
    entry: str | None = None,
) -> Kernel:
    """Compile a program: a tensor or several (the results), IR text, a path to IR text, or a module.

    `target` is auto, cuda, cpu, sim or reference; one that is named never falls back. `inputs` orders the arguments of
    tensors (by default that in which placeholders were made). `arch` is what code is generated for (the GPU's own,
    sm_80 without one). `entry` names the function of a text or module with several. Raises `TilewrightError`.
    """
    from xdsl.dialects.builtin import ModuleOp

    from tilewright.runtime.compile import compile_module

    if isinstance(program, str | Path | ModuleOp):
        if inputs is not None:
            raise TilewrightError("compile: inputs orders the placeholders of tensors; IR has its own argument order")
        module = program if isinstance(program, ModuleOp) else module_from_text(program)
    else:
        from tilewright.api.build import build_module

        module = build_module(program, inputs)
    return compile_module(module, target, arch, entry)


def module_from_text(program: str | Path) -> ModuleOp:
    """The module of a text, or of the file at a path."""
    from tilewright.dialects.parsing import decode, parse_module
    from tilewright.dialects.registry import make_context

    if isinstance(program, str) and "\n" not in program and program.endswith(".mlir"):
        program = Path(program)  # no text is one line that ends like a file's name
    if isinstance(program, str):
        return parse_module(program, "<text>", make_context())
    try:
        data = program.read_bytes()
    except OSError as error:
        raise TilewrightError(f"cannot read '{program}': {error.strerror or error}") from error
    return parse_module(decode(data, str(program)), str(program), make_context())
