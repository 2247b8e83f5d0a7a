"""`compile_module`: from a tensor-level module to a kernel that can be called."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.location import location_of
from tilewright.dialects.verify import verify_module
from tilewright.lowering.host_requirements import check_statements
from tilewright.runtime import dtypes
from tilewright.runtime.backends.base import Backend
from tilewright.runtime.backends.select import Choice, choose
from tilewright.runtime.kernel import Kernel, expect_one_of
from tilewright.runtime.variants import CompiledEntry


def entry_names(module: ModuleOp) -> list[str]:
    """The public functions of a module, in order."""
    return [
        op.sym_name.data
        for op in module.ops
        if isinstance(op, func.FuncOp)
        and not op.is_declaration
        and (op.sym_visibility is None or op.sym_visibility.data == "public")
    ]


def check_signature(function: func.FuncOp) -> None:
    """Raise unless arguments are tensors or numbers of element types that arrays have, and results are tensors."""
    name = function.sym_name.data
    for number, type_ in enumerate(function.function_type.inputs.data):
        element: Attribute = type_.element_type if is_tensor(type_) else type_
        if str(element) not in dtypes.NAMES:
            raise TilewrightError(
                f"argument {number} of @{name}: expected a tensor or number of {', '.join(dtypes.NAMES)}, got {type_}",
                location_of(function),
            )
    for number, type_ in enumerate(function.function_type.outputs.data):
        if not is_tensor(type_) or str(type_.element_type) not in dtypes.NAMES:
            raise TilewrightError(
                f"result {number} of @{name}: expected a tensor of {', '.join(dtypes.NAMES)}, got {type_}",
                location_of(function),
            )


def compile_module(module: ModuleOp, target: str = "auto", arch: str | None = None, entry: str | None = None) -> Kernel:
    """Compile one entry of a tensor-level module; the module is left as it is.

    `target` is auto, cuda, cpu, sim or reference; `arch` the architecture to lower for (the GPU's own by default, sm_80
    without one); `entry` names the function where several are public. The tensor half of the compiler and the launch
    plan run here, each kernel variant when a call first chooses it. Raises `TilewrightError`.
    """
    name = expect_one_of(entry_names(module), entry)
    choice = choose(target, arch)
    verify_module(module)
    function = next(op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == name)
    check_signature(function)
    # Before any pass uses the statements: of such that clash anything would follow.
    check_statements(module, function)
    compiled = CompiledEntry(module, name, choice.arch, choice.processors)
    if choice.backend != "reference":
        # What is wrong with the program shows when it is compiled, not when it is called.
        _ = compiled.planned
    return Kernel(compiled, _backend(choice, compiled), choice.reason)


def _backend(choice: Choice, entry: CompiledEntry) -> Backend:
    name = choice.backend
    if name == "cuda":
        from tilewright.runtime.backends.cuda import CudaBackend

        return CudaBackend(entry)
    if name == "auto":
        from tilewright.runtime.backends.auto import AutoBackend

        return AutoBackend(entry, choice.reason)
    if name == "cpu":
        from tilewright.runtime.backends.cpu import CpuBackend

        return CpuBackend(entry)
    if name == "sim":
        from tilewright.runtime.backends.sim import SimBackend

        return SimBackend(entry)
    from tilewright.runtime.backends.reference import ReferenceBackend

    return ReferenceBackend(entry)
