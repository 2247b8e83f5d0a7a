"""The fragments of `ldmatrix` and `mma.sync` as C++ tables, for the cores of this machine."""

from __future__ import annotations

from functools import cache

from tilewright.dialects.simt.fragments import LANES, MMA_SHAPES, M, N, ldmatrix_elements

_LDMATRIX = ((1, False), (2, False), (4, False), (2, True))
"""Bytes of an element, and whether the matrices are transposed."""


@cache
def fragment_maps() -> str:
    """C++ of `TwMma<k, bytes of an element>` and `TwLdmatrix<bytes, transposed>`, by lane and register.

    For a product the place in the row-major matrix; for ldmatrix the lane that names the row, and the element in it.
    """
    parts = ["template <int K, int Bytes>\nstruct TwMma;\ntemplate <int Bytes, bool Transposed>\nstruct TwLdmatrix;\n"]
    for (_, bits), shape in MMA_SHAPES.items():
        operands = (("a", shape.a, shape.k), ("b", shape.b, N), ("c", shape.c, N))
        lines = [f"  static constexpr int rows = {M}, columns = {N}, depth = {shape.k};"]
        for name, places, pitch in operands:
            values = [[row * pitch + column for row, column in lane] for lane in places]
            lines.append(f"  static constexpr int {name}_count = {len(values[0])};")
            lines.append(f"  static constexpr unsigned char {name}[{LANES}][{len(values[0])}] = {_braces(values)};")
        parts.append(f"template <>\nstruct TwMma<{shape.k}, {bits // 8}> {{\n" + "\n".join(lines) + "\n};\n")
    for size, transposed in _LDMATRIX:
        values = [[list(place) for place in lane] for lane in ldmatrix_elements(4, size, transposed)]
        array = f"  static constexpr unsigned char places[{LANES}][{len(values[0])}][2] = {_braces(values)};"
        head = f"template <>\nstruct TwLdmatrix<{size}, {'true' if transposed else 'false'}> {{"
        parts.append(f"{head}\n{array}\n}};\n")
    return "".join(parts)


def _braces(values: object) -> str:
    """Nested lists of integers as a C++ initialiser."""
    return str(values).replace("[", "{").replace("]", "}").replace(" ", "")
