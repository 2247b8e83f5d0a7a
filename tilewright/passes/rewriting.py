"""Rewrite patterns as decorated functions, and the driver that applies them.

    @pattern(lin.CastOp)
    def cast_to_same_type(op: lin.CastOp, rewriter: Rewriter) -> None:
        \"\"\"A cast to the type that the operand has already is the operand.\"\"\"
        if op.operand.type == op.result.type:
            rewriter.replace(op, (), (op.operand,))

    changed = apply_patterns(module, (cast_to_same_type,))

What xDSL's own walker does not do, this one does: it looks patterns up by the op's class, stops when patterns undo one
another and says which, gives new ops the location of the op they come from, and reports errors at an op.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.passes.effects import is_dead
from tilewright.passes.statistics import count_statistic, current_pass

_OpT = TypeVar("_OpT", bound=Operation)
_OpCoT = TypeVar("_OpCoT", bound=Operation, covariant=True)

_REPORTED = (TilewrightError, VerifyException, DiagnosticException, ValueError, TypeError, LookupError)
"""What a pattern may raise that ends as an error at the op; any other exception is a fault of the compiler."""

_LEAST_LIMIT = 10_000
_REWRITES_PER_OP = 8

_RECENT = 64  # how many of the last rewrites are looked at to name the patterns that undo one another


class Rewriter(PatternRewriter):
    """xDSL's rewriter, which also tells the driver about blocks that are inlined."""

    def inline_block(self, block: Block, insertion_point: InsertPoint, arg_values: Sequence[SSAValue] = ()) -> None:
        """Move the ops of `block` to the insertion point, its arguments replaced; the ops are visited again."""
        moved = tuple(block.ops)
        super().inline_block(block, insertion_point, arg_values)
        for op in moved:
            self.handle_operation_modification(op)


@dataclass(frozen=True, slots=True)
class Pattern(Generic[_OpCoT]):
    """A rewrite with the classes of ops it looks at; `rewrite` changes IR through the rewriter, or does nothing."""

    name: str
    op_classes: tuple[type[Operation], ...]
    rewrite: Callable[[Any, Rewriter], None]


def pattern(
    *op_classes: type[_OpT],
) -> Callable[[Callable[[_OpT, Rewriter], None]], Pattern[_OpT]]:
    """Declare a function `(op, rewriter) -> None` a rewrite pattern of ops of these classes and their subclasses.

    Without a class it looks at every op: `@pattern()`. The function's name is the pattern's, in errors and statistics.
    It inspects `op`, and either does nothing or changes IR through the rewriter (`replace`, `insert`, `erase`,
    `inline_block`, ...; what it changes directly, such as an attribute, it tells by `notify_op_modified`).
    """
    for each in op_classes:
        if not isinstance(each, type):  # pyright: ignore[reportUnnecessaryIsInstance]  # a decorator without its ()
            raise TypeError(f"expected classes of ops as in @pattern(AddOp), got {each!r}")

    def declare(function: Callable[[_OpT, Rewriter], None]) -> Pattern[_OpT]:
        name = getattr(function, "__name__", "pattern")
        return Pattern(name, op_classes or (Operation,), cast(Callable[[Any, Rewriter], None], function))

    return declare


class _Driver:
    """One application of patterns to one op: the worklist, and what happened so far."""

    def __init__(self, patterns: Sequence[Pattern[Operation]], *, erase_dead: bool) -> None:
        self.patterns = patterns
        self.erase_dead = erase_dead
        self.by_class: dict[type[Operation], tuple[Pattern[Operation], ...]] = {}
        self.stack: list[Operation] = []
        self.waiting: set[Operation] = set()
        self.erased: set[Operation] = set()
        self.rewrites = 0
        self.recent: deque[str] = deque(maxlen=_RECENT)
        self.times: Counter[str] = Counter()
        self.matched: Operation | None = None
        self.enqueue_changes = True

    def patterns_of(self, op_class: type[Operation]) -> tuple[Pattern[Operation], ...]:
        """The patterns for a class of ops, in the order in which they were given."""
        found = tuple(p for p in self.patterns if issubclass(op_class, p.op_classes))
        self.by_class[op_class] = found
        return found

    def push(self, op: Operation) -> None:
        if op not in self.waiting:
            self.waiting.add(op)
            self.stack.append(op)

    def push_tree(self, op: Operation) -> None:
        """The op and all ops in its regions, such that the first in the text comes off the stack first."""
        tree = [op] if not op.regions else list(op.walk())
        for inner in reversed(tree):
            self.push(inner)

    def is_gone(self, op: Operation) -> bool:
        return op in self.erased or op.parent is None

    # What the rewriter tells.
    def inserted(self, op: Operation) -> None:
        matched = self.matched
        tree = (op,) if not op.regions else tuple(op.walk())
        for inner in tree:
            self.erased.discard(inner)
            if matched is not None and inner.location == UNKNOWN_LOC:
                inner.location = matched.location
        if self.enqueue_changes:
            self.push_tree(op)

    def modified(self, op: Operation) -> None:
        if self.enqueue_changes:
            self.push(op)
            for result in op.results:
                for use in result.uses:
                    self.push(use.operation)

    def removed(self, op: Operation) -> None:
        tree = (op,) if not op.regions else tuple(op.walk())
        for inner in tree:
            self.erased.add(inner)
            if self.enqueue_changes:
                for operand in inner.operands:
                    if isinstance(operand, OpResult):
                        self.push(operand.op)

    def failed(self, name: str, op: Operation, error: Exception) -> TilewrightError:
        """The error as one line at the op; the module is not printed, and of xDSL's text the first line is kept."""
        if isinstance(error, TilewrightError):
            return TilewrightError(error.message, error.location or location_of(op))
        first_line = str(error).strip().partition("\n")[0] or type(error).__name__
        return TilewrightError(f"pattern {name} failed at {op.name}: {first_line}", location_of(op))

    def count(self, name: str, limit: int, op: Operation) -> None:
        self.rewrites += 1
        self.recent.append(name)
        self.times[name] += 1
        if self.rewrites > limit:
            seen = Counter(self.recent).most_common()
            names = ", ".join(f"{name} ({times} of the last {len(self.recent)})" for name, times in seen)
            raise TilewrightError(f"rewriting does not settle: {limit} rewrites, still going: {names}", location_of(op))

    def run(self, root: Operation, *, limit: int, recursive: bool) -> bool:
        self.enqueue_changes = recursive
        first = next((region.first_block for region in root.regions if region.first_block is not None), None)
        if first is None:
            return False
        rewriter = Rewriter(InsertPoint.at_start(first))
        rewriter.operation_insertion_handler.append(self.inserted)
        rewriter.operation_modification_handler.append(self.modified)
        rewriter.operation_removal_handler.append(self.removed)
        changed = False
        while True:
            for block in (block for region in root.regions for block in region.blocks):
                for op in reversed(tuple(block.ops)):
                    self.push_tree(op)
            # The stack is last in first out: with several blocks the later are seen first, which no pattern relies on.
            rewrites_before = self.rewrites
            self.drain(rewriter, limit)
            if self.rewrites == rewrites_before:
                return changed
            changed = True
            if not recursive:
                return True

    def drain(self, rewriter: Rewriter, limit: int) -> None:
        stack, waiting = self.stack, self.waiting
        by_class, erase_dead = self.by_class, self.erase_dead
        while stack:
            op = stack.pop()
            waiting.discard(op)
            if self.is_gone(op):
                continue
            if erase_dead and is_dead(op):
                self.matched = None
                rewriter.erase(op)
                self.count("erase_dead", limit, op)
                continue
            op_class = type(op)
            patterns = by_class.get(op_class)
            if patterns is None:
                patterns = self.patterns_of(op_class)
            for candidate in patterns:
                rewriter.has_done_action = False
                self.matched = op
                rewriter.insertion_point = InsertPoint.before(op)
                try:
                    candidate.rewrite(op, rewriter)
                except _REPORTED as error:
                    raise self.failed(candidate.name, op, error) from error
                if rewriter.has_done_action:
                    self.count(candidate.name, limit, op)
                    if self.enqueue_changes and not self.is_gone(op):
                        self.push(op)
                    break


def apply_patterns(
    root: Operation,
    patterns: Iterable[Pattern[Any]],
    *,
    max_rewrites: int | None = None,
    recursive: bool = True,
    erase_dead: bool = False,
) -> bool:
    """Apply patterns to every op inside `root` (a module, a function, ...) and say whether anything changed.

    `recursive`: again until nothing changes; otherwise each op there is now is visited once, and new ops are not
    visited. `erase_dead`: also erase ops whose results nobody uses and that have no effect. An op that a rewrite
    inserts gets the location of the op that was matched, unless it has one. Raises TilewrightError at the op
    concerned when a pattern raises, and, naming the patterns that still fire, after `max_rewrites` rewrites (10,000
    by default, or 8 for each op of a larger module). Rewrites are counted by pattern as statistics of the pass that
    runs, dead ops that are erased as `erase_dead`.
    """
    if max_rewrites is None:
        max_rewrites = max(_LEAST_LIMIT, _REWRITES_PER_OP * sum(1 for _ in root.walk()))
    patterns = tuple(patterns)
    for each in patterns:
        if not isinstance(each, Pattern):  # pyright: ignore[reportUnnecessaryIsInstance]  # a function that is not declared
            raise TypeError(f"expected patterns as @pattern(AddOp) declares them, got {each!r}")
    driver = _Driver(patterns, erase_dead=erase_dead)
    changed = driver.run(root, limit=max_rewrites, recursive=recursive)
    pass_name = current_pass()
    if pass_name is not None:
        for name, times in driver.times.items():
            count_statistic(pass_name, name, times)
    return changed
