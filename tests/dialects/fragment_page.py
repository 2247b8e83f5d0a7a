"""The page `docs/design/fragments.md`, from the table of fragments.

python -m tests.dialects.fragment_page > docs/design/fragments.md
"""

from __future__ import annotations

from tilewright.dialects.simt.fragments import MMA_SHAPES, Places, ldmatrix_elements

HEAD = """\
# Fragments

Which lane of a warp holds which element of a matrix in which register. Each cell is `lane.register`: the lane from 0 to
31, and the position of the element among the neighbouring registers that the op names. Made from
`tilewright/dialects/simt/fragments.py`, which the simulator and the C++ for the CPU use, by
`python -m tests.dialects.fragment_page > docs/design/fragments.md`; a test compares.
"""


def grid(places: Places) -> list[str]:
    """A Markdown table of a matrix; rows and columns as the fragment has them."""
    cells = {place: f"{lane}.{r}" for lane, held in enumerate(places) for r, place in enumerate(held)}
    rows, columns = (1 + max(place[axis] for place in cells) for axis in (0, 1))
    lines = ["| | " + " | ".join(str(column) for column in range(columns)) + " |", "|---" * (columns + 1) + "|"]
    for row in range(rows):
        held = " | ".join(cells[row, column] for column in range(columns))
        lines.append(f"| **{row}** | {held} |")
    return lines


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    names = {16: "f16, bf16", 32: "f32 as tf32"}
    for (name, bits), shape in MMA_SHAPES.items():
        lines += [f"## {name}, {names[bits]}", ""]
        for title, places in (("A (row, k)", shape.a), ("B (k, column)", shape.b), ("C (row, column)", shape.c)):
            lines += [f"{title}:", "", *grid(places), ""]
    for transposed in (False, True):
        what = ", transposed" if transposed else ""
        lines += [
            f"## ldmatrix x1 of 16-bit elements{what}",
            "",
            "Rows are what lanes 0 to 7 name; each further matrix has its rows at the next 8 lanes and comes in the",
            "next 2 registers.",
            "",
            *grid(ldmatrix_elements(1, 2, transposed)),
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
