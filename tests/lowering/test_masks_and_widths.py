"""Read off the text: masks only where bounds are not proved, widths from divisibility, index width from addresses."""

from __future__ import annotations

import re

import pytest

from tilewright.dialects.host.ops import DispatchOp
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.binding import Layout, contiguous
from tilewright.runtime.variants import CompiledEntry

ADD = """
#mn = #sym.dims<M, N>
func.func @main(%x : tensor<SHAPExELT, #mn>, %y : tensor<SHAPExELT, #mn>) -> tensor<SHAPExELT, #mn> {
  %r = lin.map ins(%x, %y : tensor<SHAPExELT, #mn>, tensor<SHAPExELT, #mn>) -> tensor<SHAPExELT, #mn> {
  ^bb0(%p: ELT, %q: ELT):
    %z = arith.addf %p, %q : ELT
    lin.yield %z : ELT
  }
  func.return %r : tensor<SHAPExELT, #mn>
}
"""
MATMUL = """
func.func @main(%x : tensor<?x?xf32, #sym.dims<M, K>>, %w : tensor<?x?xf32, #sym.dims<K, N>>)
    -> tensor<?x?xf32, #sym.dims<M, N>> {
  %y = lin.matmul %x, %w : tensor<?x?xf32, #sym.dims<M, K>>, tensor<?x?xf32, #sym.dims<K, N>>
      -> tensor<?x?xf32, #sym.dims<M, N>>
  func.return %y : tensor<?x?xf32, #sym.dims<M, N>>
}
"""
SOFTMAX = """
#mn = #sym.dims<M, N>
func.func @main(%x : tensor<?x?xf32, #mn>) -> tensor<?x?xf32, #mn> {
  %y = lin.softmax %x axis 1 : tensor<?x?xf32, #mn> -> tensor<?x?xf32, #mn>
  func.return %y : tensor<?x?xf32, #mn>
}
"""
TOTAL = """
func.func @main(%x : tensor<?x?xf32, #sym.dims<M, N>>) -> tensor<?xf32, #sym.dims<M>> {
  %y = lin.reduce sum %x axes [1] : tensor<?x?xf32, #sym.dims<M, N>> -> tensor<?xf32, #sym.dims<M>>
  func.return %y : tensor<?xf32, #sym.dims<M>>
}
"""


def compiled(text: str, element: str = "f32", **declared: str) -> CompiledEntry:
    """The entry with symbols declared as the keywords say; one declared as a number is that constant."""
    numbers = {name: size for name, size in declared.items() if size.isdecimal()}
    for name, size in numbers.items():
        text = re.sub(rf"\b{name}\b", size, text)
    shape = "x".join(numbers.get(name, "?") for name in "MN")
    text = text.replace("SHAPE", shape).replace("ELT", element)
    symbols = "\n".join(f"sym.symbol @{n} {d}" for n, d in declared.items() if n not in numbers)
    return CompiledEntry(parse_module(f"{symbols}\n{text}", "p.mlir", make_context()), "main", "sm_80")


def sources(entry: CompiledEntry) -> dict[str, str]:
    """CUDA source of each variant, from its __global__ function on, without comments and heads of loops."""
    found: dict[str, str] = {}
    for name, site in entry.sites.items():
        source = emit_kernel(entry.lower(site).kernel, "sm_80")
        found[name] = re.sub(r"for \([^)]*\)", "for", source[source.index("__global__") :])
    return found


def comparisons(source: str) -> list[str]:
    """Lines that compare or choose; the angle brackets of casts and of access widths are no comparisons."""
    plain = re.sub(r"\w+_cast<[^<>]+>|tw_\w+<[\w, ]+>", "", source)
    return [line.strip() for line in plain.splitlines() if re.search(r"[<>?]|[=!]=|\bif\b|\b(?:min|max)\(", line)]


def widths(entry: CompiledEntry) -> dict[str, set[int]]:
    """For each variant the widths of its copies with global memory."""
    found: dict[str, set[int]] = {}
    name = ""
    for line in entry.ir("scheduled").splitlines():
        kernel = re.search(r"tile\.kernel @(\w+)", line)
        if kernel:
            name = kernel[1]
        elif "bounds [" in line:
            width = re.search(r" width (\d+)", line)
            found.setdefault(name, set()).add(1 if width is None else int(width[1]))
    return found


def cases(entry: CompiledEntry) -> dict[str, list[str]]:
    """The predicates of each case of the plan."""
    dispatches = [op for op in entry.plan.func.walk() if isinstance(op, DispatchOp)]
    return {name: [str(p) for p in predicates] for op in dispatches for name, predicates, _ in op.arms}


MASKED = re.compile(r"tw_load_readonly_or|if \([^)]*\) *\{?\s*tw_(load_readonly|store<\d>\(v[0-2] )")
"""An access to an argument under a condition."""
MASKED_STORE = re.compile(r"if \([^)]*\) *\{?\s*tw_store<\d>\(v[0-2] ")
WHOLE = "{multiple_of = 128}"


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        (ADD, {"M": WHOLE, "N": WHOLE}),
        (MATMUL, {"M": WHOLE, "N": WHOLE, "K": "{multiple_of = 64}"}),
        (SOFTMAX, {"M": "{}", "N": "{min = 4096, multiple_of = 4096}"}),
    ],
    ids=["add", "matmul", "softmax"],
)
def test_whole_tiles_have_no_masks(text: str, declared: dict[str, str]):
    entry = compiled(text, **declared)
    scheduled = entry.ir("scheduled")
    assert "bounds [" in scheduled
    # How many parts a sum has is never known, so what adds them asks; all else is whole.
    whole = [kernel for kernel in scheduled.split("tile.kernel ") if "_sum_" not in kernel.partition("(")[0]]
    clipped = [line for kernel in whole for line in kernel.splitlines() if "clip" in line]
    # Loads that run a turn ahead have nothing to load in the last one.
    assert all(re.search(r"to %next_\w+ bounds \[", line) for line in clipped)
    assert bool(clipped) == (text is MATMUL)
    for name, source in sources(entry).items():
        if "_sum/" in name:
            continue
        if text is MATMUL:
            assert not MASKED_STORE.search(source), name
            continue
        assert not MASKED.search(source), name
        # The maximum of a softmax compares, and its warps meet in shared memory; a part of a sum ends where that ends.
        if text is not SOFTMAX and "_parts" not in name:
            assert comparisons(source) == [], name


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        (ADD, {"M": "{}", "N": "{}"}),
        (ADD, {"M": WHOLE, "N": "{multiple_of = 4}"}),
        (MATMUL, {"M": WHOLE, "N": WHOLE, "K": "{}"}),
        (SOFTMAX, {"M": "{}", "N": "{}"}),
    ],
)
def test_other_sizes_have_masks_in_each_variant(text: str, declared: dict[str, str]):
    entry = compiled(text, **declared)
    assert "clip" in entry.ir("scheduled")
    for name, source in sources(entry).items():
        assert comparisons(source), name
        assert MASKED.search(source), name


def test_only_the_dim_that_may_end_within_a_tile_is_masked():
    found = re.findall(r"bounds (\[.*?\])", compiled(ADD, M=WHOLE, N="{}").ir("scheduled"))
    assert set(found) == {"[proved, clip]"}


@pytest.mark.parametrize(
    ("element", "columns", "width"),
    [("f32", "{}", 4), ("f32", "64", 4), ("f32", "66", 2), ("f16", "{}", 8), ("f16", "68", 4), ("bf16", "66", 2)],
)
def test_the_vector_variant_is_as_wide_as_sizes_allow_and_the_general_one_stands_beside_it(
    element: str, columns: str, width: int
):
    entry = compiled(ADD, element, M="{}", N=columns)
    found = widths(entry)
    assert {w for name, each in found.items() if "vector" in name for w in each} == {width}
    assert {w for name, each in found.items() if "general" in name for w in each} == {1}
    asked = cases(entry)["vector32"]
    size = {"f32": 4, "f16": 2, "bf16": 2}[element]
    assert {"x_s1 == 1", f"x_s0 mod {width} == 0", f"x_base mod {width * size} == 0"} <= set(asked)
    assert (f"N mod {width} == 0" in asked) is (columns == "{}"), "a constant is no question"


def test_an_odd_constant_has_no_vector_variant():
    entry = compiled(ADD, M="{}", N="67")
    assert {name for name in cases(entry) if "vector" in name} == set()


def chosen(entry: CompiledEntry, *layouts: Layout) -> tuple[str, int]:
    """Variant and index width that a call with these tensors takes."""
    (launch,) = entry.plan.decide(list(layouts)).launches
    site = entry.plan.sites[launch.site]
    return site.variant, site.index_width


def test_the_index_width_follows_from_addresses_not_from_the_number_of_elements():
    """A sum along rows that are all one row in memory: 2^34 elements in 2^17 places. Rows far apart: few elements."""
    entry = compiled(TOTAL, M="{}", N="{}")
    side = 1 << 17
    assert chosen(entry, Layout((side, side), (0, 1), 0))[1] == 32
    assert chosen(entry, Layout((side, side), contiguous((side, side)), 0))[1] == 64
    assert chosen(entry, Layout((4, 8), (1 << 29, 1), 0))[1] == 64
    assert chosen(entry, Layout((4, 8), (-(1 << 29), 1), 0))[1] == 64
    assert chosen(entry, Layout((1, 8), (1 << 40, 1), 0))[1] == 32, "the stride of one row is used by nothing"


def test_both_widths_are_there_and_differ_in_their_index_types():
    found = sources(compiled(ADD, M="{}", N="{}"))
    assert set(found) == {f"main_0/{kind}{width}" for kind in ("vector", "general") for width in (32, 64)}
    for name, source in found.items():
        assert ("long long" in source) is name.endswith("64"), name


@pytest.mark.parametrize(
    ("shape", "width"),
    [
        ((1 << 15, (1 << 16) - 64), 32),  # 2^31 - 2^21 elements: within reach with a tile of 16 rows to spare
        ((1 << 15, 1 << 16), 64),  # the last of 2^31 elements is
        ((1 << 31, 1), 64),
        ((1, 1 << 26), 32),
        ((1, 1 << 28), 64),  # a tile has 16 rows of 2^28, and addresses are formed before they are masked
    ],
)
def test_32_bits_serve_up_to_the_last_tile_that_they_reach(shape: tuple[int, int], width: int):
    layout = Layout(shape, contiguous(shape), 0)
    assert chosen(compiled(ADD, M="{}", N="{}"), layout, layout)[1] == width
