"""The dialects that a Tilewright program may use: name -> a function that imports and returns the dialect.

Nothing is imported until text (or a pass) names the dialect: defining a dialect's operations costs 1-2 ms each, and
most programs use four or five of the ten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.ir import Dialect


def _sym() -> Dialect:
    from tilewright.dialects.sym.dialect import Sym

    return Sym


def _lin() -> Dialect:
    from tilewright.dialects.lin.dialect import Lin

    return Lin


def _tile() -> Dialect:
    from tilewright.dialects.tile.dialect import Tile

    return Tile


def _simt() -> Dialect:
    from tilewright.dialects.simt.dialect import Simt

    return Simt


def _host() -> Dialect:
    from tilewright.dialects.host.dialect import Host

    return Host


def _builtin() -> Dialect:
    from xdsl.dialects.builtin import Builtin

    return Builtin


def _func() -> Dialect:
    from xdsl.dialects.func import Func

    return Func


def _arith() -> Dialect:
    from xdsl.dialects.arith import Arith

    return Arith


def _math() -> Dialect:
    from xdsl.dialects.math import Math

    return Math


def _scf() -> Dialect:
    from xdsl.dialects.scf import Scf

    return Scf


def all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Return a fresh dict, name -> factory: first Tilewright's own, from tensors down to the host plan, then xDSL's."""
    return {
        "sym": _sym,
        "lin": _lin,
        "tile": _tile,
        "simt": _simt,
        "host": _host,
        "builtin": _builtin,
        "func": _func,
        "arith": _arith,
        "math": _math,
        "scf": _scf,
    }


def make_context(*, allow_unregistered: bool = False) -> Context:
    """Return a new xDSL context in which every dialect is registered and none but `builtin` is loaded.

    With `allow_unregistered`, operations of unknown dialects parse in their generic form.
    """
    from xdsl.context import Context

    context = Context(allow_unregistered=allow_unregistered)
    for name, factory in all_dialects().items():
        context.register_dialect(name, factory)
    # Types such as f32 are spelled without a dialect name, so nothing else would load it.
    context.load_registered_dialect("builtin")
    return context
