"""What a simulated launch reports: counters for each access, and faults, each at the op that caused it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.diagnostics import SourceLocation


@dataclass(frozen=True, slots=True)
class Site:
    """An op of the kernel. `ordinal` counts the kernel's ops in text order, so that it names an op without a place."""

    ordinal: int
    op_name: str
    location: SourceLocation | None
    space: str
    """`global` or `shared` for a memory access, else empty."""

    def __str__(self) -> str:
        return f"{'op ' + str(self.ordinal) if self.location is None else self.location}: {self.op_name}"


@dataclass(slots=True)
class SiteCounts:
    """What one access did over the whole launch.

    A request is one warp executing the access with at least one active lane. Sectors: distinct 32-byte pieces of global
    memory that a request touches, summed. Wavefronts: passes that shared memory needs for a request, summed.
    """

    requests: int = 0
    sectors: int = 0
    wavefronts: int = 0

    @property
    def sectors_per_request(self) -> float:
        """Mean over the requests; 0 when there were none."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def wavefronts_per_request(self) -> float:
        """Mean over the requests; 0 when there were none."""
        return self.wavefronts / self.requests if self.requests else 0.0


@dataclass(slots=True)
class Diagnostic:
    """A fault of the kernel: the first thread in which this op showed it, and in how many it did."""

    kind: str
    """`out-of-bounds`, `race`, `global-race`, `uninitialised-shared`, `uninitialised-register`, `barrier-divergence`,
    `misaligned`, `index-wrap` or `deadlock`; of `cp.async` `in-flight` (an access to what a copy may still be writing),
    `source-changed` (what it reads was written before the wait) and `unfinished-copy` (no wait at all); of the units of
    sm_90a `accumulator-in-flight`, `operand-changed`, `left-in-flight`, `missed-phase`, and `mbarrier`,
    `named-barrier`, `tensor-map` and `wgmma` for wrong uses of each."""
    site: Site
    message: str
    block: int
    thread: int
    index: int | None = None
    """Element index of the access, or None."""
    count: int = 1
    """Threads (times executions) that showed it."""

    def __str__(self) -> str:
        where = f"block {self.block}, thread {self.thread}"
        if self.index is not None:
            where += f", index {self.index}"
        more = f" ({self.count} in all)" if self.count > 1 else ""
        return f"{self.site}: {self.kind}: {self.message}; {where}{more}"


@dataclass(slots=True)
class Report:
    """Counters (levels `count` and `check`) and faults (level `check`) of one launch."""

    level: str
    blocks: int
    """How many were run."""
    counts: dict[Site, SiteCounts] = field(default_factory=dict[Site, SiteCounts])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    _seen: dict[tuple[str, Site], Diagnostic] = field(default_factory=dict[tuple[str, Site], Diagnostic], repr=False)

    def add(self, diagnostic: Diagnostic) -> None:
        """Record a fault; the same kind at the same op is one entry that counts."""
        known = self._seen.get((diagnostic.kind, diagnostic.site))
        if known is None:
            self._seen[diagnostic.kind, diagnostic.site] = diagnostic
            self.diagnostics.append(diagnostic)
        else:
            known.count += diagnostic.count

    def of_kind(self, kind: str) -> list[Diagnostic]:
        """The faults of one kind, in the order found."""
        return [d for d in self.diagnostics if d.kind == kind]
