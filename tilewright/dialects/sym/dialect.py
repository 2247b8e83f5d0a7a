"""The xDSL dialect object of `sym`."""

from xdsl.ir import Dialect

from tilewright.dialects.sym.attributes import DimsAttr, ExprAttr, RelationAttr
from tilewright.dialects.sym.index import IndexAttr
from tilewright.dialects.sym.ops import ApplyOp, CastOp, RequireOp, SymbolOp

Sym = Dialect("sym", [SymbolOp, RequireOp, ApplyOp, CastOp], [ExprAttr, DimsAttr, RelationAttr, IndexAttr])
