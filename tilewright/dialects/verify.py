"""Is a module well formed? xDSL's verifier, one located line per fault, and the SSA dominance that xDSL does not check.

Call `verify_module(module)`: it returns None, or raises TilewrightError at the operation that is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.source_text import lower_first, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdsl.dialects.builtin import ModuleOp


def verify_module(module: ModuleOp) -> None:
    """Check that each use is dominated by its value, then every operation of `module`, innermost first as xDSL does.

    Raises TilewrightError with the operation's place and a message of one line: `'arith.addi': what is wrong`.
    """
    try:
        # First, because xDSL notices a value from another function as well, but blames the function and not the use.
        _check_region_dominance(module.body, set())
        _verify_op(module)
    except RecursionError as error:
        raise TilewrightError("the module is nested too deeply to be verified", location_of(module)) from error


def verify_function(function: Operation) -> None:
    """Check one function or kernel as `verify_module` checks all: it sees no values from outside.

    What stands beside it in its module is not looked at, other than where an operation in it asks for a symbol.
    """
    try:
        for region in function.regions:
            _check_region_dominance(region, set())
        _verify_op(function)
    except RecursionError as error:
        raise TilewrightError("the function is nested too deeply to be verified", location_of(function)) from error


def _verify_op(op: Operation) -> None:
    """Verify the operations inside `op`, then `op`.

    The walk is done here and not by `op.verify()`, because xDSL's exception does not say which operation it is about.
    """
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                _verify_op(inner)
        if len(region.blocks) == 1 and region.block.is_empty and not op.has_trait(NoTerminator):
            raise _fault(op, "its region is an empty block, expected at least a terminator")
    try:
        op.verify(verify_nested_ops=False)
    except TilewrightError as error:
        raise error if error.location is not None else _fault(op, error.message) from error
    except RecursionError:
        raise
    except Exception as error:
        # xDSL prints the whole module into the exception's notes; printing an ill-formed module may fail in turn.
        reason = _verifier_message(error)
        if reason is None:
            raise _fault(op, f"its verifier failed ({type(error).__name__}: {error})") from error
        raise _fault(op, reason) from error


def _verifier_message(error: BaseException | None) -> str | None:
    """Return the message of the VerifyException or ValueError that `error` is, or arose from; None if there is none."""
    while error is not None:
        if isinstance(error, VerifyException | ValueError):
            return str(error)
        error = error.__context__
    return None


def _fault(op: Operation, message: str) -> TilewrightError:
    return TilewrightError(f"'{op.name}': {lower_first(one_line(message))}", location_of(op))


def _check_region_dominance(region: Region, visible: set[SSAValue]) -> None:
    """Check the uses in `region`; `visible` holds what dominates the region, and is as before on return.

    Walks the dominator tree, so that a block sees what the blocks on every path to it define. As in MLIR, nothing
    is asked of a block that control cannot reach.
    """
    if region.first_block is None:
        return
    children = _dominator_tree(region)

    def enter(block: Block) -> None:
        defined: list[SSAValue] = list(block.args)
        visible.update(block.args)
        for op in block.ops:
            for index, operand in enumerate(op.operands):
                if operand not in visible:
                    raise _fault(op, _undominated(op, index, operand))
            for inner in op.regions:
                _check_region_dominance(inner, visible)
            visible.update(op.results)
            defined.extend(op.results)
        for child in children.get(block, ()):
            enter(child)
        visible.difference_update(defined)

    enter(region.first_block)


def _undominated(op: Operation, index: int, operand: SSAValue) -> str:
    """Return what is wrong with operand number `index` of `op`."""
    what = f"operand {index} (%{operand.name_hint})" if operand.name_hint else f"operand {index}"
    try:
        owner = operand.owner
    except ValueError:
        return f"{what} is not defined"
    definition = owner if isinstance(owner, Operation) else owner.parent_op()
    if definition is None or definition.get_toplevel_object() is not op.get_toplevel_object():
        return f"{what} is defined by an operation that is not in the module"
    place = location_of(definition)
    at = f" at line {place.line}" if place is not None else ""
    return f"{what} does not dominate this use: it is defined by '{definition.name}'{at}"


def _dominator_tree(region: Region) -> dict[Block, list[Block]]:
    """Return block -> the blocks it immediately dominates, for the blocks that the entry reaches.

    Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm (2001): intersect along the tree until nothing moves.
    """
    entry = region.first_block
    if entry is None or entry.next_block is None:
        return {}
    order = list(_postorder(entry))
    number = {block: index for index, block in enumerate(order)}
    predecessors: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for successor in _successors(block):
            predecessors[successor].append(block)

    immediate: dict[Block, Block] = {entry: entry}

    def intersect(one: Block, other: Block) -> Block:
        while one is not other:
            while number[one] < number[other]:
                one = immediate[one]
            while number[other] < number[one]:
                other = immediate[other]
        return one

    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [predecessor for predecessor in predecessors[block] if predecessor in immediate]
            best = known[0]
            for predecessor in known[1:]:
                best = intersect(predecessor, best)
            if immediate.get(block) is not best:
                immediate[block] = best
                changed = True

    children: dict[Block, list[Block]] = {}
    for block, parent in immediate.items():
        if block is not entry:
            children.setdefault(parent, []).append(block)
    return children


def _successors(block: Block) -> tuple[Block, ...]:
    return () if block.last_op is None else tuple(block.last_op.successors)


def _postorder(entry: Block) -> Iterator[Block]:
    """Yield the blocks that `entry` reaches, successors first, `entry` last."""
    seen = {entry}
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, rest = stack[-1]
        following = next(rest, None)
        if following is None:
            stack.pop()
            yield block
        elif following not in seen:
            seen.add(following)
            stack.append((following, iter(_successors(following))))
