"""Kernels that random draws have found wrong, each with the pass that was to blame."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.api.testing.execute import execute, parse
from tilewright.api.testing.program import Program
from tilewright.diagnostics import TilewrightError


def program(arguments: str, result: str, body: str) -> Program:
    """A module of one kernel over contiguous tensors of f32; shapes are such as `8x8`, empty for rank 0."""
    shapes = [shape.split("x") for shape in (*arguments.split(","), result)]
    names = [f"%x{n}" for n in range(len(shapes) - 1)] + ["%y"]
    types = [tensor_type(shape) for shape in shapes]
    buffers = ", ".join(f"{name}: {buffer_type(shape)}" for name, shape in zip(names, shapes, strict=True))
    taken = ", ".join(f"{name}: {type_}" for name, type_ in zip(names[:-1], types[:-1], strict=True))
    return Program(
        f"tile.kernel @k({buffers}) grid () = [] {{\n{body}\n}}\n"
        f"host.func @main({taken}) -> ({types[-1]}) {{\n"
        f"  %y = host.output 0 : {types[-1]}\n  host.launch @k({', '.join(names)})\n}}\n",
        level="tile",
    )


def tensor_type(shape: list[str]) -> str:
    sizes = [s for s in shape if s]
    return f"tensor<{''.join(f'{s}x' for s in sizes)}f32, #sym.dims<{', '.join(sizes)}>>"


def buffer_type(shape: list[str]) -> str:
    sizes = [int(s) for s in shape if s]
    strides = [int(np.prod(sizes[n + 1 :])) for n in range(len(sizes))]
    return f"!tile.buf<{sizes}, f32, global, #tile.strided<{strides}>>"


def fragment(*sizes: int) -> str:
    return f"tile.alloc : !tile.buf<{list(sizes)}, f32, fragment>"


def shared(*sizes: int) -> str:
    return f"tile.alloc : !tile.buf<{list(sizes)}, f32, shared>"


FOUND = {
    # interchange-loops took the recurrence for a sum, whose order is open.
    "a nest whose turns build on each other": program(
        "4x4",
        "1x1",
        f"""
        %acc = {fragment(1, 1)}
        tile.fill %acc with 0.0 : f32
        tile.for %k = 0 to 4 step 1 {{
          tile.for %l = 0 to 4 step 1 {{
            %f = {fragment(1, 1)}
            tile.copy %x0[%l, %k] to %f bounds [proved, proved]
            tile.map (d0, d1) ins(%f[d0, d1], %acc[d0, d1]) outs(%acc[d0, d1]) {{
            ^bb0(%p: f32, %q: f32):
              %half = arith.constant 0.5 : f32
              %s = arith.mulf %q, %half : f32
              %r = arith.addf %s, %p : f32
              tile.yield %r
            }}
          }}
        }}
        tile.copy %acc to %y bounds [clip, clip]
        """,
    ),
    # block-registers moved the first read of the buffer behind the second write.
    "both operands of a product through one shared buffer": program(
        "8x8,8x8",
        "8x8",
        f"""
        %s = {shared(8, 8)}
        %a = {fragment(8, 8)}
        %b = {fragment(8, 8)}
        %acc = {fragment(8, 8)}
        tile.fill %acc with 0.0 : f32
        tile.copy %x0 to %s bounds [clip, clip]
        tile.copy %s to %a
        tile.copy %x1 to %s bounds [clip, clip]
        tile.copy %s to %b
        tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %acc[d0, d1]
        tile.copy %acc to %y bounds [clip, clip]
        """,
    ),
    # pad-shared took accesses of several elements where the window starts at an odd place.
    "windows of a tile in shared memory": program(
        "9",
        "8",
        f"""
        %s = {shared(9)}
        %left = {fragment(8)}
        %right = {fragment(8)}
        %sum = {fragment(8)}
        %one = sym.apply 1
        tile.copy %x0 to %s bounds [clip]
        tile.copy %s to %left
        tile.copy %s[%one] to %right
        tile.map (d0) ins(%left[d0], %right[d0]) outs(%sum[d0]) {{
        ^bb0(%p: f32, %q: f32):
          %r = arith.addf %p, %q : f32
          tile.yield %r
        }}
        tile.copy %sum to %y bounds [clip]
        """,
    ),
    # pad-shared raised an IndexError.
    "a scalar through shared memory": program(
        ",8",
        "8",
        f"""
        %s = {shared()}
        %scale = {fragment()}
        %x = {fragment(8)}
        tile.copy %x0 to %s
        tile.copy %s to %scale
        tile.copy %x1 to %x bounds [clip]
        tile.map (d0) ins(%x[d0], %scale) outs(%x[d0]) {{
        ^bb0(%p: f32, %q: f32):
          %r = arith.mulf %p, %q : f32
          tile.yield %r
        }}
        tile.copy %x to %y bounds [clip]
        """,
    ),
}
FOUND["writes of one copy that overlap from turn to turn"] = program(
    # remove-barriers took the copy for one in which each thread writes its own elements every time.
    "256",
    "256",
    f"""
    %f = {fragment(256)}
    %g = {fragment(256)}
    %s = {shared(259)}
    %other = {shared(256)}
    tile.copy %x0 to %f bounds [clip]
    tile.for %k = 0 to 4 step 1 {{
      tile.copy %f to %s[%k]
    }}
    tile.copy %f to %other
    tile.copy %s to %g
    tile.copy %g to %y bounds [clip]
    """,
)
FOUND["both operands of a product are one fragment"] = program(
    "8x8",
    "8x8",
    f"""
    %a = {fragment(8, 8)}
    %acc = {fragment(8, 8)}
    tile.fill %acc with 0.0 : f32
    tile.copy %x0 to %a bounds [clip, clip]
    tile.mma (d0, d1, d2) %a[d0, d2], %a[d1, d2] into %acc[d0, d1]
    tile.copy %acc to %y bounds [clip, clip]
    """,
)
REFUSED = {
    # What a thread writes here, another one had to read before.
    "a fragment turned in place": ("%f[d1, d0]", "%f[d0, d1]", "expected an output to be read where it is written"),
    # Which value stays is decided by no thread alone.
    "an output that lacks a dim": ("%f[d0, d1]", "%g[d0]", "expected an output to run along every iteration dim"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    source, target, message = REFUSED[name]
    found = program(
        "8x8",
        "8x8",
        f"""
        %f = {fragment(8, 8)}
        %g = {fragment(8)}
        tile.copy %x0 to %f bounds [clip, clip]
        tile.map (d0, d1) ins({source}) outs({target}) {{
        ^bb0(%p: f32):
          tile.yield %p
        }}
        tile.copy %f to %y bounds [clip, clip]
        """,
    )
    with pytest.raises(TilewrightError, match=message):
        execute(parse(found), found, "sim")


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    found = FOUND[name]
    module = parse(found)
    for got, want in zip(execute(module, found, "sim"), execute(module, found, "tile"), strict=True):
        np.testing.assert_array_equal(got, want)
