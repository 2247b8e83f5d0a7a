"""Pass `verify-dims`: the shapes in types are what they claim to be."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.sym.verify import check_dims
from tilewright.passes.core import TilewrightPass, error_at


@dataclass(frozen=True)
class VerifyDimsPass(TilewrightPass):
    """Checks what xDSL does not about symbolic shapes in types; changes nothing.

    The rank of `#sym.dims`, `?` exactly where the size is no constant, static sizes that are the stated ones, and
    symbols that the module declares, once. Raises at the first op with a fault, and says how many more there are.
    """

    name = "verify-dims"
    level = "any"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise_faults(op)


def raise_faults(module: ModuleOp, *, open_sizes: bool = False) -> None:
    """Raise TilewrightError at the first op whose types claim a wrong shape; `open_sizes` as in `check_dims`."""
    faults = check_dims(module, open_sizes=open_sizes)
    if faults:
        first, message = faults[0]
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise error_at(first, message + more)
