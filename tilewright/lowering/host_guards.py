"""The guards of an entry: what is declared or required of symbols and does not follow from the arguments' shapes alone.

In the order in which facts build on one another, and each guard left out where the ones before it prove it
(`host_requirements`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.host.ops import FuncOp, GuardOp
from tilewright.dialects.sym import Answer, Facts
from tilewright.lowering.host_requirements import bound_symbols, check_together, entry_requirements, settle


@dataclass
class GuardList:
    """Guards in order, and what holds once they have passed."""

    facts: Facts = field(default_factory=Facts)
    guards: list[GuardOp] = field(default_factory=list[GuardOp])


def entry_guards(module: ModuleOp, func: FuncOp) -> GuardList:
    """The guards that every call of the entry passes before anything else happens.

    They cover `min`, `max` and `multiple_of` of its symbols, each `sym.require`, and sizes of results and scratch that
    might be negative. Raises `TilewrightError` where no call could pass them, or could not check them.
    """
    settled, facts = settle(func, entry_requirements(module, func))
    check_together(module, func)
    result = GuardList(facts)
    for each in settled:
        if each.answer is Answer.PROVED:
            continue
        guard = GuardOp(each.requirement.relation, each.requirement.message)
        guard.location = each.requirement.origin.location
        result.guards.append(guard)
    return result


__all__ = ["GuardList", "bound_symbols", "entry_guards"]
