"""The way of a program through the levels: two literal lists of passes, each with the reason why it stands where it is.

`TENSOR` runs once for an entry and ends in kernels with a launch plan; `TILE` runs once for each variant that is chosen
at run time, on a module with one kernel (`instantiate`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilewright.diagnostics import TilewrightError
from tilewright.lowering.registry import all_lowerings
from tilewright.passes.pipeline import OnAfter, run_pipeline
from tilewright.passes.registry import all_passes

TENSOR: tuple[str, ...] = (
    # Every later step reads sizes off the types.
    "infer-shapes",
    # Fewer ops to look at, and one form of each.
    "canonicalize",
    # Data that is moved and moved back is not moved; named ops still show which movements belong together.
    "cancel-movement",
    # Named ops become what they mean, so that nothing below has to know them.
    "decompose",
    # A value that one elementwise op hands to the next never needs memory.
    "fuse-elementwise",
    # What shares rows or a contraction's result becomes one kernel.
    "fuse-groups",
    # Kernels over a grid, and the order in which they run.
    "lin-to-tile",
    # Blocks that run as a cluster are neighbours in the grid, before anything is known of where tiles lie.
    "form-clusters",
    # Guards, variants and grids: what is left to decide when the sizes are known.
    "host-plan",
)

TILE: tuple[str, ...] = (
    # The loop that decides which operand is reused comes before what is placed inside it.
    "interchange-loops",
    # What multiplies comes before where its operands go.
    "choose-mma",
    # Results of matrix instructions leave in panels, so that an epilogue needs few registers.
    "stage-results",
    # Operands that threads share are staged through shared memory; the copies that this makes are mapped next.
    "promote-to-shared",
    # A thread holds one slice of the summed dim at a time, so registers suffice.
    "block-registers",
    # Which thread computes what; every fragment gets its layout.
    "map-threads",
    # Copies with global memory run along the contiguous dim, whatever the computation wants.
    "coalesce",
    # Accesses as wide as the facts of the variant allow.
    "vectorise",
    # Row pitches that keep shared memory free of bank conflicts, for the layouts and widths chosen by now.
    "pad-shared",
    # Masks that the facts make superfluous go away.
    "prove-bounds",
    # A block that goes on to the next tile can fetch it while the last one is stored.
    "make-persistent",
    # Slots that are filled ahead, once it is known what a copy moves...
    "pipeline-copies",
    # ... once for all blocks of a cluster where they need the same...
    "share-copies",
    # ... by warps of their own.
    "specialise-warps",
    # Whatever is still open gets its plain default; reductions over several warps get their scratch.
    "finish-schedule",
    # Order between threads that share memory, wherever it might be needed...
    "insert-barriers",
    # ... and not where it is not.
    "remove-barriers",
    # Offsets once every shared buffer is there and its size final; from here on nothing is undecided.
    "allocate-shared",
    # Translation: decides nothing.
    "tile-to-simt",
    # Index arithmetic of the translation is full of constants and repetition.
    "canonicalize",
    "cse",
)

STAGE_ENDS: dict[str, str] = {"tensor": "fuse-groups", "tile": "lin-to-tile", "scheduled": "allocate-shared"}
"""Level -> the pass after which a module is at it; `host` and `simt` are the ends of the two lists."""


def make_passes(names: Sequence[str], options: Mapping[str, Mapping[str, Any]] | None = None) -> list[ModulePass]:
    """The passes of these names, with the `options` for a name or the defaults; TilewrightError for an unknown name."""
    table = {**all_passes(), **all_lowerings()}
    unknown = [name for name in names if name not in table]
    if unknown:
        raise TilewrightError(f"pipeline: there is no pass {unknown[0]}")
    given = options or {}
    return [table[name]()(**given.get(name, {})) for name in names]


def run(
    module: ModuleOp,
    ctx: Context,
    names: Sequence[str],
    *,
    arch: str | None = None,
    processors: int | None = None,
    verify_each: bool = False,
    on_after: OnAfter | None = None,
) -> None:
    """Run the passes of these names on `module`, in place and in order, for an architecture where one is given, and a
    device of so many processors (the architecture's by default)."""
    lowering = {"arch": arch, "processors": processors}
    options = None if arch is None else {"lin-to-tile": lowering, "instantiate-variants": {"arch": arch}}
    run_pipeline(module, ctx, make_passes(names, options), verify_each=verify_each, on_after=on_after)
