"""One variant of one kernel as a module of its own: what the tile pipeline starts from."""

from __future__ import annotations

from typing import Final

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from tilewright.dialects.assembly import i64_attr
from tilewright.dialects.host.ops import BindOp, FuncOp, LaunchOp
from tilewright.dialects.sym import Answer, Expr, Facts, Relation, RequireOp, SymbolOp
from tilewright.dialects.sym.analysis import module_facts
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import BufType, strided
from tilewright.passes.core import error_at

VARIANT_ATTRIBUTE: Final = "variant"
"""Discardable attribute of a `host.launch`: the name of the variant, unique among those of the kernel."""


def variant_of(launch: LaunchOp) -> str:
    """The name of the variant that a launch asks for; by its index width where the plan was written by hand."""
    named = launch.attributes.get(VARIANT_ATTRIBUTE)
    if isinstance(named, StringAttr):
        return named.data
    return "general" if launch.index_width is None else f"general{launch.index_width.value.data}"


def variant_symbol(launch: LaunchOp) -> str:
    """The name of the instantiated kernel: the same for the same kernel and variant in every process."""
    return f"{launch.kernel.string_value()}_{variant_of(launch)}"


def instantiate(module: ModuleOp, launch: LaunchOp, arch: str | None = None) -> ModuleOp:
    """A module with the symbols and requirements of `module` and one `tile.kernel`, as the launch wants it.

    The kernel carries the launch's `assumes` and `index_width`, and `arch`, whose instructions a schedule may use;
    strides of its buffers that the facts prove constant are constants; `bases` names the base address symbol of each
    argument, for facts about alignment. `launch` is an op of `module` that the host plan has completed, else
    TilewrightError.
    """
    if launch.index_width is None:
        raise error_at(launch, "expected a launch that the host plan has completed: it has no index_width")
    name = launch.kernel.string_value()
    kernel = next((k for k in module.ops if isinstance(k, KernelOp) and k.sym_name.data == name), None)
    if kernel is None:
        raise error_at(launch, f"launch of @{name}: there is no such tile.kernel in the module")
    copied: list[Operation] = []
    for op in module.ops:
        if isinstance(op, SymbolOp | RequireOp):
            copied.append(_copy(op))
    made = _copy(kernel)
    assert isinstance(made, KernelOp)
    made.properties["sym_name"] = StringAttr(variant_symbol(launch))
    made.properties["assumes"] = ArrayAttr(list(dict.fromkeys((*kernel.assumes.data, *launch.assumes.data))))
    made.properties["index_width"] = i64_attr(launch.index_width.value.data)
    if arch is not None:
        made.properties["arch"] = StringAttr(arch)
    made.properties["bases"] = ArrayAttr([StringAttr(base) for base in base_symbols(launch)])
    result = ModuleOp([*copied, made])
    result.location = module.location
    facts = module_facts(result)
    for relation in made.assumes.data:
        facts.add(relation.data, "assumed by the variant")
    for argument in tuple(made.arguments):
        if isinstance(argument.type, BufType) and argument.type.strides is not None:
            strides = [_constant(stride, facts) for stride in argument.type.strides]
            type_ = argument.type.with_layout(strided(strides))
            if type_ != argument.type:
                Rewriter.replace_value_with_new_type(argument, type_)
    return result


def base_symbols(launch: LaunchOp) -> list[str]:
    """The symbol of each launch argument's base address, from the `host.bind` ops of the function; "" for scratch
    and scalars."""
    func = launch.parent_op()
    while func is not None and not isinstance(func, FuncOp):
        func = func.parent_op()
    bases = {op.value: op.base.data for op in func.walk() if isinstance(op, BindOp)} if func is not None else {}
    return [bases.get(argument, "") for argument in launch.arguments]


def _copy(op: Operation) -> Operation:
    """A clone that keeps the locations, which `clone` drops."""
    made = op.clone()
    for old, new in zip(op.walk(), made.walk(), strict=True):
        new.location = old.location
    return made


def _constant(stride: Expr, facts: Facts) -> Expr:
    if stride.constant is not None:
        return stride
    low, high = facts.range(stride)
    if low is None or low != high:
        return stride
    exact = Relation(stride, "==", Expr.const(low))
    return Expr.const(low) if facts.prove(exact) is Answer.PROVED else stride
