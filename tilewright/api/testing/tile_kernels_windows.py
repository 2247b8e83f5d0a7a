"""Kernels that read overlapping windows of a tile with a margin, staged in shared memory: a one-dimensional stencil."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.api.testing.tile_kernels_author import Author, Axis
from tilewright.api.testing.tile_kernels_bodies import draw_body
from tilewright.api.testing.tile_kernels_operands import Loaded, map_text, write_map
from tilewright.api.testing.tile_kernels_pointwise import free_sizes, generic
from tilewright.api.testing.tile_kernels_text import Fragment, KernelText, Place, Size, Tensor

MARGINS = (1, 2, 3)


class Window:
    """One such kernel: result[.., i, ..] is computed from x[.., i, ..], x[.., i + 1, ..] and so on along one dim."""

    def __init__(self, author: Author, source: Tensor | None, place: Place) -> None:
        del source
        self.author = author
        self.sizes = free_sizes(author, 1, 2)
        self.slid = author.choice(range(len(self.sizes)))
        self.margin = author.choice(MARGINS)
        # The window that slides must lie inside: the source is that much longer.
        dim = self.sizes[self.slid]
        longer = dim.constant is not None
        total = str(dim.value + self.margin) if longer else f"{dim.text} + {self.margin}"
        self.order = author.permutation(len(self.sizes))
        dims = [Size(total, dim.value + self.margin) if d == self.slid else self.sizes[d] for d in self.order]
        self.x = author.tensor(dims, author.element(), "argument")
        self.axes = author.axes(self.sizes)
        self.shifts = sorted({0, self.margin, author.choice(range(self.margin + 1))})
        types = [self.x.element] * len(self.shifts)
        self.body, (self.value,) = draw_body(author.draw, types, [author.element()], most=1)
        self.out = author.permutation(len(self.sizes))
        self.y = author.tensor([self.sizes[d] for d in self.out], self.value.type, place)

    def run(self, kernel: KernelText) -> list[Tensor]:
        """Both texts."""
        reads: list[str] = []
        for shift in self.shifts:
            at = ", ".join(f"d{d} + {shift}" if d == self.slid else f"d{d}" for d in self.order)
            reads.append(f"%{self.x.name} at [{at}] : {self.x.type}")
        count = len(self.sizes)
        operands = f"ins({', '.join(reads)})"
        generic(self.author, self.y.name, count, operands, map_text(self.out), self.y.type, self.body.lin(self.value))
        with self.author.walking(kernel, self.axes) as offsets:
            staged = self._stage(kernel, offsets)
            inputs = [self._window(kernel, staged, shift) for shift in self.shifts]
            made = kernel.alloc("f", [self.axes[d].tile for d in self.out], self.y.element)
            write_map(kernel, count, inputs, [(made, self.out)], self.body.tile([self.value], offsets))
            self.author.store(kernel, made, self.y, self.out, self.axes, offsets)
        return [self.y]

    def _stage(self, kernel: KernelText, offsets: Sequence[str]) -> Fragment:
        """The tile and its margin, in shared memory."""
        author, axes = self.author, self.axes
        sizes = [axes[d].tile + (self.margin if d == self.slid else 0) for d in self.order]
        staged = author.shared(kernel, sizes, self.x.element, author.choice(["shared", "laid"]))
        source = kernel.use(self.x) + author.place(kernel, self.order, offsets)
        # A tile that hangs over by what the margin lacks is clipped.
        open_axes = [Axis(Size("0", 0), a.tile, "whole") if d == self.slid else a for d, a in enumerate(axes)]
        bounds = author.bounds(self.order, open_axes)
        other = f"{author.choice(['0', '5']) if self.x.element == 'i32' else '0.0'} : {self.x.element}"
        kernel.add(f"tile.copy {source} to {staged.name}{bounds} other {other}{author.via()}{author.dist(sizes)}")
        author.sync(kernel)
        return staged

    def _window(self, kernel: KernelText, staged: Fragment, shift: int) -> Loaded:
        """The tile that starts `shift` elements into the staged one."""
        part = kernel.alloc("f", [self.axes[d].tile for d in self.order], self.x.element)
        at = ""
        if shift or self.author.seldom(2):
            places = [kernel.apply(str(shift if d == self.slid else 0)) for d in self.order]
            at = f"[{', '.join(places)}]"
        kernel.add(f"tile.copy {staged.name}{at} to {part.name}{self.author.via()}")
        return Loaded(part.name, tuple(self.order))


def window(author: Author, kernel: KernelText, source: Tensor | None, place: Place) -> list[Tensor]:
    """Draws one kernel into both texts; returns its results."""
    return Window(author, source, place).run(kernel)
