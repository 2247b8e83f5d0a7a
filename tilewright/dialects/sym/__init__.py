"""Symbolic shapes: the algebra of sizes (plain Python), facts and proofs about them, and the `sym` dialect.

The public names below load their module on first use, so that importing the algebra does not import xDSL.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tilewright.dialects.sym.analysis import (
        IndexScope,
        check_consistent,
        declared_symbols,
        index_expr,
        location_of,
        module_facts,
    )
    from tilewright.dialects.sym.attributes import (
        DimsAttr,
        ExprAttr,
        RelationAttr,
        dims_of,
        parse_dims_from,
        parse_expr_from,
        parse_relation_from,
        print_dims,
        symbolic_tensor,
    )
    from tilewright.dialects.sym.dialect import Sym
    from tilewright.dialects.sym.expr import Expr
    from tilewright.dialects.sym.facts import Conflict, Facts
    from tilewright.dialects.sym.operators import ceildiv, floordiv, mod, smax, smin
    from tilewright.dialects.sym.ops import ApplyOp, CastOp, RequireOp, SymbolOp
    from tilewright.dialects.sym.parse import SymSyntaxError, parse_expr, parse_relation
    from tilewright.dialects.sym.prove import Answer
    from tilewright.dialects.sym.relation import Relation
    from tilewright.dialects.sym.verify import check_dims

_HOME: Final = {
    "analysis": "IndexScope check_consistent declared_symbols index_expr location_of module_facts",
    "attributes": (
        "DimsAttr ExprAttr RelationAttr dims_of parse_dims_from parse_expr_from parse_relation_from print_dims "
        "symbolic_tensor"
    ),
    "dialect": "Sym",
    "expr": "Expr",
    "facts": "Conflict Facts",
    "operators": "ceildiv floordiv mod smax smin",
    "ops": "ApplyOp CastOp RequireOp SymbolOp",
    "parse": "SymSyntaxError parse_expr parse_relation",
    "prove": "Answer",
    "relation": "Relation",
    "verify": "check_dims",
}
_MODULE_OF: Final = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = [
    "Answer",
    "ApplyOp",
    "CastOp",
    "Conflict",
    "DimsAttr",
    "Expr",
    "ExprAttr",
    "Facts",
    "IndexScope",
    "Relation",
    "RelationAttr",
    "RequireOp",
    "Sym",
    "SymSyntaxError",
    "SymbolOp",
    "ceildiv",
    "check_consistent",
    "check_dims",
    "declared_symbols",
    "dims_of",
    "floordiv",
    "index_expr",
    "location_of",
    "mod",
    "module_facts",
    "parse_dims_from",
    "parse_expr",
    "parse_expr_from",
    "parse_relation",
    "parse_relation_from",
    "print_dims",
    "smax",
    "smin",
    "symbolic_tensor",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
