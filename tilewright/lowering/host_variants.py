"""Which variants of a kernel are worth having, and when each may run: index width times vectorised or general.

A variant is a list of relations that its code relies on. What the facts prove is not asked at run time; what they
refute is not made.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType
from xdsl.ir import Attribute, SSAValue

from tilewright.dialects.sym import Answer, Expr, Facts, Relation, mod, smax
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import ForOp, KernelOp
from tilewright.dialects.tile.types import BufType
from tilewright.lowering.gather_bounds import gather_magnitudes
from tilewright.lowering.host_requirements import cost

INDEX_LIMIT: Final = 2**31 - 1
"""Greatest i32, and the greatest number of blocks along x (CUDA C++ Programming Guide, compute capabilities)."""
VECTOR_BYTES: Final = 16
"""The widest access of one thread (PTX ISA, ld.global.v4.b32)."""


Serves: TypeAlias = Literal["aligned", "rows", "wide"]
"""What a schedule has variants for, where others have the rest: indices of 32 bits and vectors; indices of 32 bits and
rows that begin anywhere; all else."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel as one launch uses it: for each argument the symbol of its base address, "" for scratch, which is
    aligned to 256 bytes."""

    kernel: KernelOp
    bases: tuple[str, ...]
    widens: tuple[int, ...] | None = None
    """The arguments whose accesses variants may widen; None for all."""


@dataclass(frozen=True, slots=True)
class Variant:
    """`predicates` are asked at run time. `assumes` is what the code may rely on, proved or asked; that an index of
    32 bits is wide enough is said by `index_width` alone."""

    name: str
    index_width: int
    predicates: tuple[Relation, ...]
    assumes: tuple[tuple[Relation, ...], ...]
    """For each launch what is of use to its own kernel: one that gains nothing by a fact does not depend on it."""


def element_bytes(element: Attribute) -> int:
    """Bytes of one element in memory; i1 takes one, index eight."""
    if isinstance(element, AnyFloat):
        return element.bitwidth // 8
    if isinstance(element, IntegerType):
        return max(1, cast("IntegerType[int]", element).width.data // 8)
    if isinstance(element, IndexType):
        return 8
    raise TypeError(f"no element of a buffer: {element}")


def make_variants(
    launched: Sequence[Launched], facts: Facts, max_variants: int, serves: Serves | None = None
) -> list[Variant]:
    """The variants for launches that run one after the other, in the order in which they are tried, best first.

    The last one always has no predicates. At most `max_variants`: the general 64-bit variant is kept in any case (the
    32-bit one where that is proved), then vectorised 32-bit, general 32-bit and vectorised 64-bit, in this order. Where
    contiguous rows alone make a difference, these are asked for in the place of the general 32-bit variant.

    `serves` narrows them down: to 32 bits with vectors, or to 32 bits without, where none need apply; or to what these
    leave.
    """
    narrow = {r: a for each in launched for r, a in _narrow_relations(each.kernel, facts).items()}
    vectors = [_vector_relations(each, facts) for each in launched]
    rows = [_row_relations(each, facts) for each in launched]
    open_ = {r for found in (narrow, *vectors, *rows) for r, answer in found.items() if answer is not Answer.PROVED}
    narrow_possible = Answer.DISPROVED not in narrow.values()
    narrow_proved = open_.isdisjoint(narrow)
    nothing: list[dict[Relation, Answer]] = [{} for _ in launched]
    kinds = [("vector", vectors)] if any(vectors) else []
    kinds.append(("rows", rows) if any(rows) else ("general", nothing))
    tried = [(name, each, is_narrow) for is_narrow in (True, False) for name, each in kinds]
    tried.append(("general", nothing, False))
    if serves in ("aligned", "rows"):
        tried = [each for each in tried if each[2] and (each[0] == "vector") is (serves == "aligned")]
    elif serves == "wide":
        tried = [("general", nothing, True)] if narrow_proved else [each for each in tried if not each[2]]
    made: list[tuple[str, list[dict[Relation, Answer]], bool]] = []
    for name, of_launches, is_narrow in tried:
        if is_narrow and not narrow_possible:
            continue
        made.append((name, of_launches, is_narrow))
        if open_.isdisjoint(_all_of(of_launches, narrow if is_narrow else {})):
            break  # it always applies, so nothing after it ever would
    kept = [*made[: max(0, max_variants - 1)], *made[max(0, max_variants - 1) :][-1:]]
    result: list[Variant] = []
    for kind, of_launches, is_narrow in kept:
        width = 32 if is_narrow else 64
        relations = [r for r in _all_of(of_launches, narrow if is_narrow else {}) if r in open_]
        predicates = _asked(relations, narrow, facts)
        result.append(Variant(f"{kind}{width}", width, predicates, tuple(tuple(each) for each in of_launches)))
    return result


def _all_of(of_launches: Sequence[dict[Relation, Answer]], narrow: dict[Relation, Answer]) -> list[Relation]:
    """The relations of a variant, each once."""
    return list(dict.fromkeys(r for each in (*of_launches, narrow) for r in each))


def _asked(relations: Sequence[Relation], bounds: Container[Relation], facts: Facts) -> tuple[Relation, ...]:
    """The predicates that say as much as the relations: cheap ones first, none that those before it prove, and sizes
    that an earlier one fixes as numbers. `bounds` are those that intervals decide."""
    known = facts.child()
    fixed: dict[str, Expr | int] = {}
    seen: set[str] = set()
    result: list[Relation] = []
    for relation in sorted(relations, key=cost):
        asked = Relation(relation.lhs.substitute(fixed), relation.op, relation.rhs)
        limit = asked.rhs.constant
        if relation in bounds and limit is not None:
            if at_most(asked.lhs, limit, known) is not Answer.PROVED:
                result.append(asked)
            continue
        # Predicates about other symbols add nothing to what the facts left open.
        if not asked.symbols.isdisjoint(seen) and known.prove(asked) is Answer.PROVED:
            continue
        result.append(asked)
        known.add(asked)
        seen |= asked.symbols
        if asked.op == "==" and asked.rhs.constant is not None and str(asked.lhs) in asked.symbols:
            fixed[str(asked.lhs)] = asked.rhs
    return tuple(result)


def _buffers(kernel: KernelOp) -> list[tuple[int, SSAValue, BufType]]:
    """Position, value and type of each global buffer that the kernel takes."""
    return [(i, a, a.type) for i, a in enumerate(kernel.arguments) if isinstance(a.type, BufType)]


def _tile_sizes(buffer: SSAValue, rank: int) -> list[int]:
    """For each dim the largest tile that a copy moves between the buffer and the block; 1 without copies."""
    sizes = [1] * rank
    for use in buffer.uses:
        if isinstance(use.operation, CopyOp):
            sizes = [max(a, b) for a, b in zip(sizes, use.operation.tile_type.sizes, strict=True)]
    return sizes


def at_most(expr: Expr, limit: int, facts: Facts) -> Answer:
    """Whether `expr <= limit`, by intervals. The full prover would split every max in a sum of strides times sizes,
    at tens of milliseconds a relation, and find no more; a symbol that may be anything makes even these pointless."""
    if any(facts.range(Expr.symbol(name)) == (None, None) for name in expr.symbols):
        return Answer.UNKNOWN
    low, high = facts.range(expr)
    if high is not None and high <= limit:
        return Answer.PROVED
    return Answer.DISPROVED if low is not None and low > limit else Answer.UNKNOWN


def compare_costs(relation: Relation, facts: Facts) -> Answer:
    """Whether one cost is at most another, `a <= b`, by intervals: a proof about rounded quotients would be slow, and
    hardly ever found."""
    (low, high), (least, most) = facts.range(relation.lhs), facts.range(relation.rhs)
    if high is not None and least is not None and high <= least:
        return Answer.PROVED
    return Answer.DISPROVED if low is not None and most is not None and low > most else Answer.UNKNOWN


def _narrow_relations(kernel: KernelOp, facts: Facts) -> dict[Relation, Answer]:
    """What makes 32-bit index arithmetic exact: a bound on every element offset that a block forms, masked ones too.

    An offset along a dim is less than the size rounded up to a tile, hence less than size + tile. A stride counts at
    least 1, so that the sum bounds each coordinate as well, under a stride of 0 too. Computed indices have bounds of
    their own.
    """
    result: dict[Relation, Answer] = {}
    for _, buffer, type_ in _buffers(kernel):
        assert type_.strides is not None  # the plan has compared them with the argument's
        total, least = Expr.const(0), Expr.const(0)
        for size, stride, tile in zip(type_.dims, type_.strides, _tile_sizes(buffer, type_.rank), strict=True):
            total = total + _magnitude(stride, facts) * (size + tile)
            least = least + size + tile
        totals = [total]
        for indices in gather_magnitudes(kernel, buffer):
            terms = (_magnitude(s, facts) * i for s, i in zip(type_.strides, indices, strict=True))
            totals.append(sum(terms, Expr.const(0)))
        for total in totals:
            if total.constant is None or total.constant > INDEX_LIMIT:
                answer = at_most(total, INDEX_LIMIT, facts)
                if answer is Answer.UNKNOWN and at_most(least, INDEX_LIMIT, facts) is Answer.DISPROVED:
                    answer = Answer.DISPROVED  # sizes alone are too large, whatever the strides
                result[Relation(total, "<=", Expr.const(INDEX_LIMIT))] = answer
    for end in _loop_ends(kernel, facts):
        result[Relation(end, "<=", Expr.const(INDEX_LIMIT))] = at_most(end, INDEX_LIMIT, facts)
    return result


def _loop_ends(kernel: KernelOp, facts: Facts) -> list[Expr]:
    """How far the variables of loops get whose bounds depend on the block, and what these bounds are computed from: the
    parts of a sum, rounded up to whole steps, go beyond it."""
    last: dict[SSAValue, Expr] = {c: size - 1 for c, size in zip(kernel.coordinates, kernel.grid.data, strict=True)}
    found: dict[Expr, None] = {}
    for op in kernel.walk():
        if not isinstance(op, ForOp):
            continue
        greatest: dict[str, Expr | int] = {name: last[v] for name, v in op.where.items() if v in last}
        for bound in (op.upper.data, op.lower.data):
            for end in _alternatives(bound):
                if not end.symbols.isdisjoint(greatest):
                    most = end.substitute(greatest) + op.step.data
                    if not any(at_most(most - other, 0, facts) is Answer.PROVED for other in found):
                        found[most] = None
    return list(found)


def _alternatives(expr: Expr) -> list[Expr]:
    """What an expression is the least of: itself, unless it is a min."""
    if len(expr.terms) != 1:
        return [expr]
    ((monomial, factor),) = expr.terms
    is_min = factor == 1 and len(monomial) == 1 and monomial[0].kind == "min"
    return [e for part in monomial[0].args for e in _alternatives(part)] if is_min else [expr]


def _magnitude(stride: Expr, facts: Facts) -> Expr:
    """max(|stride|, 1), in the simplest form that the facts allow."""
    low = facts.range(stride)[0]
    if low is not None and low >= 1:
        return stride
    return smax(stride, 1) if low is not None and low >= 0 else smax(stride, -stride, 1)


def _vector_relations(launched: Launched, facts: Facts) -> dict[Relation, Answer]:
    """What makes wide accesses legal: of each buffer that is moved in tiles along a contiguous dim.

    That is the last dim, unless the facts name another: its stride is 1; its size, the other strides and the base
    address are multiples of the vector.

    A buffer that can never fit any vector is left out (it is moved element by element), and of the vectors that might
    fit the widest is taken.
    """
    result: dict[Relation, Answer] = {}
    for position, buffer, type_ in _buffers(launched.kernel):
        base = launched.bases[position]
        if not type_.rank or type_.strides is None or (launched.widens is not None and position not in launched.widens):
            continue
        size = element_bytes(type_.element)
        along = _contiguous_dim(type_, facts)
        tile = _tile_sizes(buffer, type_.rank)[along]
        vector = VECTOR_BYTES // size
        while vector > 1:
            relations = _vector_of(type_, base, along, vector, size, facts)
            if tile % vector == 0 and Answer.DISPROVED not in relations.values():
                result.update(relations)
                break
            vector //= 2
    return result


def _row_relations(launched: Launched, facts: Facts) -> dict[Relation, Answer]:
    """What makes wide stores of results possible whose rows begin anywhere: that they are contiguous.

    Asked of what matrix instructions compute in elements of less than 4 bytes (the others of their launches are what
    variants may widen), since threads store it from shared memory.
    """
    result: dict[Relation, Answer] = {}
    for position, buffer, type_ in _buffers(launched.kernel):
        if launched.widens is None or position not in launched.widens or not type_.rank or type_.strides is None:
            continue
        written = any(isinstance(u.operation, CopyOp) and u.operation.target is buffer for u in buffer.uses)
        if written and element_bytes(type_.element) < 4:
            one = Relation(type_.strides[-1], "==", Expr.const(1))
            if one.symbols:
                result[one] = facts.prove(one)
    return {} if Answer.DISPROVED in result.values() else result


def _contiguous_dim(type_: BufType, facts: Facts) -> int:
    """The dim whose stride the facts say is 1, where a schedule asked for it; else the last."""
    for d, stride in enumerate(type_.strides or ()):
        if facts.prove(Relation(stride, "==", Expr.const(1))) is Answer.PROVED:
            return d
    return type_.rank - 1


def _vector_of(type_: BufType, base: str, along: int, vector: int, size: int, facts: Facts) -> dict[Relation, Answer]:
    strides, zero = list(type_.strides or ()), Expr.const(0)
    one = Relation(strides[along], "==", Expr.const(1))
    result = {one: facts.prove(one)}
    multiples = [(stride, vector) for d, stride in enumerate(strides) if d != along] + [(type_.dims[along], vector)]
    if base:
        multiples.append((Expr.symbol(base), vector * size))
    for expr, divisor in multiples:
        result[Relation(mod(expr, divisor), "==", zero)] = facts.divisible(expr, divisor)
    # What holds for constants is no fact about anything.
    return {r: a for r, a in result.items() if r.symbols or a is not Answer.PROVED}
