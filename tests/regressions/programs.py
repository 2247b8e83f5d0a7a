"""Small programs in text; sizes that are symbols must be declared."""

from __future__ import annotations


def tensor(*sizes: str) -> str:
    """The f32 tensor type of these sizes: numbers are static, all else is an expression."""
    shape = "".join(f"{size}x" if size.isdecimal() else "?x" for size in sizes)
    return f"tensor<{shape}f32, #sym.dims<{', '.join(sizes)}>>"


def matmul(m: str = "M", n: str = "N", k: str = "K") -> str:
    """[m, k] times [k, n]."""
    a, b, c = tensor(m, k), tensor(k, n), tensor(m, n)
    return f"""func.func @main(%a : {a}, %b : {b}) -> {c} {{
  %c = lin.matmul %a, %b : {a}, {b} -> {c}
  func.return %c : {c}
}}
"""


def softmax() -> str:
    """Over the rows of [M, N]."""
    x = tensor("M", "N")
    return f"""func.func @main(%x : {x}) -> {x} {{
  %y = lin.softmax %x axis 1 : {x} -> {x}
  func.return %y : {x}
}}
"""


def reduce(kind: str) -> str:
    """`sum`, `max`, `min` over the rows of [M, N]."""
    x, y = tensor("M", "N"), tensor("M")
    return f"""func.func @main(%x : {x}) -> {y} {{
  %y = lin.reduce {kind} %x axes [1] : {x} -> {y}
  func.return %y : {y}
}}
"""


def transpose() -> str:
    """Of [M, N]."""
    x, y = tensor("M", "N"), tensor("N", "M")
    return f"""func.func @main(%x : {x}) -> {y} {{
  %y = lin.transpose %x perm [1, 0] : {x} -> {y}
  func.return %y : {y}
}}
"""
