"""Which kernels of one product a set of shapes would compile, without a GPU.

    python -m benchmarks.variants [--shapes random] [--seeds 0] [--dtype bf16] [--arch sm_90a]

The launch plan is asked for each shape, with contiguous operands at aligned addresses, as `tilewright bench gemm` has
them. Kernels that differ in names alone count once; how many there are ahead of time is the last line.
"""

from __future__ import annotations

import argparse
from collections import Counter

import tilewright as tw
from tilewright.api.bench.shapes import DTYPES, Shape, make_items, random_shapes
from tilewright.lowering.instantiate import instantiate
from tilewright.lowering.same_kernels import canonical_form
from tilewright.runtime.binding import Layout
from tilewright.runtime.plan import Site
from tilewright.runtime.variants import CompiledEntry


def product(dtype: str, arch: str) -> CompiledEntry:
    """`a @ b` with symbolic sizes."""
    m, n, k = tw.symbols("M N K")
    word = DTYPES[dtype]
    result = tw.matmul(tw.placeholder((m, k), word, name="a"), tw.placeholder((k, n), word, name="b"))
    return CompiledEntry(tw.build_module(result), "main", arch)


def form_of(entry: CompiledEntry, site: Site) -> str:
    """What a variant's code depends on, names aside."""
    return canonical_form(instantiate(entry.planned[0], site.launch, entry.arch))[0]


def launched(entry: CompiledEntry, shape: Shape) -> list[Site]:
    """The variants that a call with contiguous operands launches."""
    operands = [Layout((shape.m, shape.k), (shape.k, 1), 0), Layout((shape.k, shape.n), (shape.n, 1), 0)]
    return [entry.plan.sites[launch.site] for launch in entry.plan.decide(operands).launches]


def main() -> int:
    """Print each kernel with how many shapes launch it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", default="random")
    parser.add_argument("--seeds", default="0", help="of the random shapes")
    parser.add_argument("--dtype", default="bf16", choices=sorted(DTYPES))
    parser.add_argument("--arch", default="sm_90a")
    arguments = parser.parse_args()
    if arguments.shapes == "random":
        shapes = [shape for seed in arguments.seeds.split(",") for shape in random_shapes(seed=int(seed))]
    else:
        shapes = [item.shape for item in make_items(arguments.shapes.split(","), [arguments.dtype])]
    entry = product(arguments.dtype, arguments.arch)
    forms = {f"{site.kernel}/{site.variant}": form_of(entry, site) for site in entry.sites.values()}
    names: dict[str, str] = {}
    for name, form in forms.items():
        names.setdefault(form, name)
    used = Counter(
        name for s in shapes for name in {names[forms[f"{site.kernel}/{site.variant}"]] for site in launched(entry, s)}
    )
    for name, count in used.most_common():
        print(f"{count:5}  {name}")
    print(f"{len(used)} kernels for {len(shapes)} shapes; {len(names)} ahead of time, for {len(forms)} variants")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
