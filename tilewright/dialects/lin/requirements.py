"""What an op needs of the sizes: proved from the module's facts, refused, or left as a `sym.require`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.shapes import is_tensor, partial_shape
from tilewright.dialects.sym import Answer, Facts, Relation, RequireOp, module_facts


def facts_around(op: Operation) -> Facts:
    """What the module around an op states; nothing outside of a module."""
    module = op
    while (parent := module.parent_op()) is not None:
        module = parent
    return module_facts(module) if isinstance(module, ModuleOp) else Facts()


def unproved(op: Operation, relations: Sequence[Relation]) -> list[Relation]:
    """Those that do not follow from the facts around `op`; TilewrightError for one that cannot hold."""
    open_ = [r for r in relations if r.symbols or not r.holds({})]
    if not open_:
        return []
    facts, left = facts_around(op), list[Relation]()
    for relation in open_:
        answer = facts.prove(relation)
        if answer is Answer.DISPROVED:
            raise TilewrightError(f"{op.name}: expected {relation}, which never holds here")
        if answer is not Answer.PROVED:
            left.append(relation)
    return left


def require(op: Operation, builder: Builder, relations: Sequence[Relation]) -> None:
    """Insert a `sym.require` for each of the relations that the facts around `op` do not prove."""
    for relation in unproved(op, relations):
        builder.insert(RequireOp(relation))


def verify_possible(op: Operation, relations: Callable[[], Sequence[Relation]]) -> None:
    """VerifyException for a relation that cannot hold; before infer-shapes nothing is asked."""
    if any(size is None for v in op.operands if is_tensor(v.type) for size in partial_shape(v.type)):
        return
    try:
        unproved(op, relations())
    except TilewrightError as error:
        raise VerifyException(error.message.removeprefix(f"{op.name}: ")) from None
