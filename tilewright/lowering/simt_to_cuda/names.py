"""Names in generated source. No text of the IR gets there as it is: a kernel's name is mangled, values are numbered."""

from __future__ import annotations

import hashlib
import re

from tilewright.dialects.simt.structure import KernelOp

_LONGEST = 48


def mangle(name: str) -> str:
    """`tw_<letters, digits and _ of the name>_<8 hex digits of its SHA-256>`: a C identifier, one for each name."""
    readable = re.sub(r"[^A-Za-z0-9_]", "_", name)[:_LONGEST]
    return f"tw_{readable}_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def kernel_symbol(kernel: KernelOp) -> str:
    """The name of a kernel in the source and in the cubin."""
    return mangle(kernel.sym_name.data)
