"""Which kernels are the same but for the names of their symbols and their own: these are compiled once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from tilewright.dialects.sym import Expr, RequireOp, SymbolOp
from tilewright.dialects.sym.analysis import declared_symbols
from tilewright.dialects.tile.structure import KernelOp
from tilewright.lowering.specialise import substitute_symbols

_WORD: Final = re.compile(r"(?<![%@\w$.])[A-Za-z_][\w$.]*")
"""A word of IR text that may be a symbol: no name of an SSA value or of a function."""


def canonical_form(module: ModuleOp) -> tuple[str, tuple[str, ...]]:
    """What the pipeline makes code from, under names that say nothing, and the symbols in the order of these names.

    `module` is a kernel that `instantiate` made, with the symbols and requirements of its program; it stays as it is.
    Two with equal texts become the same code once the symbols of one are read as those of the other, place by place.
    The text has the declarations of the kernel's symbols, and the requirements that bear on them.
    """
    kernel = next(op for op in module.ops if isinstance(op, KernelOp)).clone()
    kernel.properties["sym_name"] = StringAttr("k")
    for op in kernel.walk():
        for value in (*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)):
            value.name_hint = None
    declared = declared_symbols(module)
    used = [word for word in dict.fromkeys(_words(kernel)) if word in declared]
    requires = [op for op in module.ops if isinstance(op, RequireOp)]
    bearing: list[RequireOp] = []
    while found := [op for op in requires if op not in bearing and not op.relation.data.symbols.isdisjoint(used)]:
        bearing += found
        used = list(dict.fromkeys([*used, *(w for op in found for w in sorted(op.relation.data.symbols))]))
    names: dict[str, Expr | int] = {name: Expr.symbol(f"s{number}_") for number, name in enumerate(used)}
    for op in kernel.walk():
        substitute_symbols(op, names)
    bases = cast("ArrayAttr[StringAttr]", kernel.properties.get("bases", ArrayAttr([])))
    kernel.properties["bases"] = ArrayAttr([StringAttr(str(names.get(base.data, base.data))) for base in bases])
    lines = [str(kernel), *(_declaration(declared[name]) for name in used)]
    for op in bearing:
        copy = op.clone()
        substitute_symbols(copy, names)
        lines.append(str(copy))
    # A symbol that is left where nothing substitutes it, or is called like a word of the language, keeps its meaning.
    left = [word for word in dict.fromkeys(_words(kernel)) if word in declared]
    return "\n".join([*lines, *left]), tuple(used)


def _words(kernel: KernelOp) -> Iterable[str]:
    return (match.group() for match in _WORD.finditer(str(kernel)))


def _declaration(op: SymbolOp) -> str:
    copy = op.clone()
    copy.properties["sym_name"] = StringAttr("s")
    return str(copy)
