"""Running passes in order on a module."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.verify import verify_module
from tilewright.passes.statistics import running_pass

OnAfter = Callable[[ModulePass, ModuleOp], None]
"""Called after each pass with the pass and the module as it is then."""


def run_pipeline(
    module: ModuleOp,
    ctx: Context,
    passes: Sequence[ModulePass],
    *,
    verify_each: bool = False,
    on_after: OnAfter | None = None,
) -> None:
    """Run the passes in order on `module`, in place.

    `verify_each` verifies the module after each pass, dominance included, and names the pass that broke it.
    `on_after` is called after each pass, before that check, so that a broken module can be looked at.
    """
    for each in passes:
        with running_pass(each.name):
            each.apply(ctx, module)
        if on_after is not None:
            on_after(each, module)
        if verify_each:
            try:
                verify_module(module)
            except TilewrightError as error:
                raise TilewrightError(f"after pass {each.name}: {error.message}", error.location) from error
