"""One function or kernel of a module alone, so that a pass sees nothing else: no sibling, broken or not.

    before: module { sym @N; func @f; func @g }     run on @g:  module { sym @N; func @g }
    after:  module { sym @N; func @f; func @g' }

Sizes are declared at module level, so the module that a pass gets holds copies of the `sym` ops beside the one op. What
the pass makes of that op goes back where it was; what it does to the copies is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.passes import ModulePass


def targets(module: ModuleOp, op_names: Iterable[str]) -> list[Operation]:
    """Return the ops of these names that stand in the module itself, in order."""
    wanted = set(op_names)
    return [op for op in module.body.block.ops if op.name in wanted]


def run_alone(module_pass: ModulePass, ctx: Context, module: ModuleOp, target: Operation) -> Operation:
    """Run the pass on `target`, which stands in `module`, and return what stands in its place then.

    Whatever the pass raises is passed on, with the target back in its place. Raises TilewrightError if the pass leaves
    other than one op, of the same name, beside the declarations: such a pass has to see the module.
    """
    block = module.body.block
    following = target.next_op
    copies: dict[SSAValue, SSAValue] = {}
    declarations = [op.clone(copies) for op in block.ops if is_declaration(op)]
    target.detach()
    alone = ModuleOp([*declarations, target], attributes=dict(module.attributes))
    alone.location = module.location
    name = symbol_of(target)
    result = target
    try:
        module_pass.apply(ctx, alone)
        left = [op for op in alone.body.block.ops if not is_declaration(op)]
        if len(left) == 1 and left[0].name == target.name:
            result = left[0]
        else:
            made = ", ".join(f"'{op.name}'" for op in left) or "nothing"
            raise TilewrightError(
                f"expected one '{target.name}' as before, got {made}: run the pass on the module", location_of(target)
            )
        if symbol_of(result) != name:
            raise TilewrightError(
                f"it would rename @{name} to @{symbol_of(result)}: run the pass on the module", location_of(target)
            )
        added = [op for op in alone.body.block.ops if is_declaration(op) and op not in declarations]
        if added:
            raise TilewrightError(
                f"it would add '{added[0].name}' to the module: run the pass on the module", location_of(target)
            )
    finally:
        if result.parent is alone.body.block:
            result.detach()
            if following is None:
                block.add_op(result)
            else:
                block.insert_op_before(result, following)
    return result


def is_declaration(op: Operation) -> bool:
    """Return whether a function alone still needs the op beside it."""
    return op.name.startswith("sym.")


def symbol_of(op: Operation) -> str | None:
    """Return the name of a function, kernel or module, without the `@`, or None."""
    name = op.properties.get("sym_name", op.attributes.get("sym_name"))
    data = getattr(name, "data", None)
    return data if isinstance(data, str) else None
