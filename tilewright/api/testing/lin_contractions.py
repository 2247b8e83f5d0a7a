"""Random contractions: `lin.matmul`, `lin.batch_matmul`, `lin.conv2d`, and generics with their dims in any order."""

from __future__ import annotations

from tilewright.api.testing.chance import Chance
from tilewright.api.testing.lin_bodies import block
from tilewright.api.testing.lin_generics import ITERATORS, at, generic_text
from tilewright.api.testing.lin_text import FLOATS, MAGNITUDE, LinText, Value
from tilewright.dialects.lin.convolution import window_count
from tilewright.dialects.sym import Expr


def _sizes(text: LinText) -> list[Expr]:
    """Sizes for a new dim: symbols that are known by now or declared, then numbers."""
    return [*(Expr.symbol(s) for s in text.sizes), Expr.const(3), Expr.const(1)]


def _may_multiply(x: Value) -> bool:
    """Whether its products mean something: truth values have none, integers that may be off by one have any."""
    return x.element in FLOATS or (x.element == "i32" and x.exact)


def _product_magnitude(x: Value, y: Value, length: int) -> float:
    return x.magnitude * y.magnitude * max(length, 1)


def _result_element(chance: Chance, text: LinText, element: str, magnitude: float) -> str | None:
    """The element type of a product: the operands', or another float; None if none holds it."""
    if element not in FLOATS:
        return element
    options = [e for e in dict.fromkeys((element, *text.dtypes)) if e in FLOATS and magnitude <= MAGNITUDE[e]]
    if not options:
        return None
    return options[0] if not chance.flag(4) else chance.choose(options)


def add_matmul(chance: Chance, text: LinText, x: Value) -> Value | None:
    """[M, K] x [K, N] with a value that is there or a new argument; of more dims, `lin.batch_matmul`.

    Where `x` is no matrix, of two new arguments.
    """
    if x.rank < 2 or not _may_multiply(x):
        elements = [e for e in text.dtypes if e != "i1"]
        shape = [chance.choose(_sizes(text)) for _ in range(2)]
        if not elements or not text.fits(shape):
            return None
        x = text.argument(shape, chance.choose(elements))
    batch, inner = x.shape[:-2], x.shape[-1]
    found = [
        v
        for v in text.values
        if v.element == x.element and v.rank == x.rank and v.shape[:-2] == batch and v.shape[-2] is inner
        if _may_multiply(v)
    ]
    if found and chance.flag(2):
        y = chance.choose(found)
    else:
        size = chance.choose(_sizes(text))
        if not text.fits((*batch, inner, size)) or not text.fits((*x.shape[:-1], size), inner):
            return None
        y = text.argument((*batch, inner, size), x.element)
    dims = (*x.shape[:-1], y.shape[-1])
    magnitude = _product_magnitude(x, y, text.size(inner))
    element = _result_element(chance, text, x.element, magnitude)
    if element is None or not text.fits(dims, inner):
        return None
    op = "lin.batch_matmul" if batch else "lin.matmul"
    made = Value("", dims, element, magnitude)
    content = f"{op} {x.name}, {y.name} : {x.type}, {y.type} -> {made.type}"
    return text.define(op, content, [x, y], dims, element, magnitude, x.exact and y.exact and element == "i32")


def add_contraction(chance: Chance, text: LinText, x: Value) -> Value | None:
    """A generic over one or two shared dims of `x` and a new argument, which may share further dims as a batch."""
    if not x.rank or not _may_multiply(x) or x.rank > len(ITERATORS) - 1:
        return None
    summed = chance.subset(x.rank)[:2]
    shared = [a for a in range(x.rank) if a not in summed and chance.flag(4)]
    iterators = list(ITERATORS[: x.rank])
    names = [iterators[a] for a in (*summed, *shared)]
    dims = [x.shape[a] for a in (*summed, *shared)]
    kept = [a for a in range(x.rank) if a not in summed]
    out = [(iterators[a], x.shape[a]) for a in kept]
    if not chance.flag(4):
        iterators.append(ITERATORS[x.rank])
        names.append(iterators[-1])
        dims.append(chance.choose(_sizes(text)))
        out.append((iterators[-1], dims[-1]))
    order = chance.order(len(names))
    out = [out[o] for o in chance.order(len(out))]
    result = tuple(d for _, d in out)
    inner = [x.shape[a] for a in summed]
    if not text.fits(dims) or not text.fits(result, *inner):
        return None
    y = text.argument([dims[o] for o in order], x.element)
    magnitude = _product_magnitude(x, y, text.count(inner))
    wide = "f32" if x.element in FLOATS else "i32"
    if magnitude > MAGNITUDE[wide] and wide == "f32":
        return None
    made = Value("", result, wide, magnitude)
    lines, factors = list[str](), ["%p", "%q"]
    if x.element in ("f16", "bf16"):
        lines = [f"%{n}w = arith.extf %{n} : {x.element} to f32" for n in ("p", "q")]
        factors = ["%pw", "%qw"]
    lines.append(f"%r = {'arith.mulf' if wide == 'f32' else 'arith.muli'} {', '.join(factors)} : {wide}")
    content = generic_text(
        iterators,
        [(x, at(ITERATORS[: x.rank])), (y, at([names[o] for o in order]))],
        [name for name, _ in out],
        "sum",
        made,
        block([("p", x.element), ("q", x.element)], lines, "%r", wide),
    )
    return text.define("lin.generic", content, [x, y], result, wide, magnitude, x.exact and wide == "i32")


def add_conv2d(chance: Chance, text: LinText, x: Value) -> Value | None:
    """Of `x` if it has four dims, else of a new image; the filter fits at the sizes of this program."""
    element = x.element if x.element != "i1" else "f32"
    groups = chance.choose((1, 1, 1, 2))
    symbols = [Expr.symbol(s) for s in text.sizes]
    image = x if x.rank == 4 and _may_multiply(x) else None
    if image is None:
        batch = chance.choose([Expr.const(1), Expr.const(2), *symbols])
        channels = groups * chance.choose([Expr.const(1), Expr.const(3), *symbols])
        height, width = (chance.choose([*symbols, Expr.const(5)]) for _ in range(2))
        if not text.fits((batch, channels, height, width)):
            return None
        shape = (batch, channels, height, width)
    else:
        shape = image.shape
        groups = 1
    kernel = [Expr.const(chance.integer(1, 3)) for _ in range(2)]
    strides = [chance.choose((1, 1, 2)) for _ in range(2)]
    dilation = [chance.choose((1, 1, 2)) for _ in range(2)]
    padding = [Expr.const(chance.integer(0, 2)) for _ in range(4)]
    spans = [dilation[n] * (kernel[n] - 1) + 1 for n in range(2)]
    for n in range(2):
        if text.size(shape[2 + n] + padding[2 * n] + padding[2 * n + 1]) < text.size(spans[n]):
            return None
    counts = [
        window_count(shape[2 + n], (padding[2 * n], padding[2 * n + 1]), kernel[n], strides[n], dilation[n])
        for n in range(2)
    ]
    inner = shape[1] if groups == 1 else _divided(shape[1], groups)
    filters = (groups * chance.choose([Expr.const(1), Expr.const(2), *symbols]), inner, *kernel)
    dims = (shape[0], filters[0], *counts)
    if not text.fits(filters) or not text.fits(dims, inner, *kernel):
        return None
    source = image or text.argument(shape, element)
    w = text.argument(filters, element)
    magnitude = _product_magnitude(source, w, text.count(filters[1:]))
    target = _result_element(chance, text, element, magnitude)
    if target is None:
        return None
    made = Value("", dims, target, magnitude)
    options = f" strides {strides} padding [{', '.join(map(str, padding))}] dilation {dilation} groups {groups}"
    content = f"lin.conv2d {source.name}, {w.name}{options} : {source.type}, {w.type} -> {made.type}"
    exact = source.exact and target == "i32"
    return text.define("lin.conv2d", content, [source, w], dims, target, magnitude, exact)


def _divided(channels: Expr, groups: int) -> Expr:
    """Channels of one group; `channels` is `groups` times an expression by construction."""
    from tilewright.dialects.sym import floordiv

    return floordiv(channels, groups)
