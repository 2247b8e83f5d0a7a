"""Memory effects of ops as passes need them: may this op go when nobody reads it; may two equal ones be one.

The answers come from xDSL's effect traits. The class of an op mostly decides, so that answer is kept per class.
"""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation
from xdsl.traits import (
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    NoMemoryEffect,
    SymbolOpInterface,
    get_effects,
)


@cache
def _class_is_pure(op_class: type[Operation]) -> bool | None:
    """True: never an effect; False: nothing known, or an effect always counted; None: ask the op itself."""
    effects = op_class.get_traits_of_type(MemoryEffect)
    if not effects:
        return False
    return True if all(isinstance(trait, NoMemoryEffect) for trait in effects) else None


@cache
def _class_must_stay(op_class: type[Operation]) -> bool:
    """Terminators and symbols stay whatever their effects: something else than a use of a result needs them."""
    return op_class.get_trait(IsTerminator) is not None or op_class.get_trait(SymbolOpInterface) is not None


def is_pure(op: Operation) -> bool:
    """Whether the op certainly reads and writes nothing, nor do its regions; an op of unknown effects is not pure."""
    known = _class_is_pure(type(op))
    if known is not None:
        return known
    effects = get_effects(op)
    return effects is not None and not effects


def only_reads(op: Operation) -> bool:
    """Whether the op certainly does nothing but read memory, or nothing at all."""
    effects = get_effects(op)
    return effects is not None and all(effect.kind is MemoryEffectKind.READ for effect in effects)


def may_write(op: Operation) -> bool:
    """Whether memory may be other after the op than before; true for an op of unknown effects."""
    return not only_reads(op)


def is_dead(op: Operation) -> bool:
    """Whether the op can be erased: no result is used, and it does nothing but read, or allocate what nobody uses."""
    for result in op.results:
        if result.first_use is not None:
            return False
    op_class = type(op)
    if _class_must_stay(op_class):
        return False
    known = _class_is_pure(op_class)
    if known is not None:
        return known
    effects = get_effects(op)
    if effects is None:
        return False
    results = set(op.results)
    return all(
        effect.kind is MemoryEffectKind.READ or (effect.kind is MemoryEffectKind.ALLOC and effect.value in results)
        for effect in effects
    )
