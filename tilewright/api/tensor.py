"""Tensors of the front end: immutable nodes of a graph that `build_module` turns into IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NoReturn, SupportsFloat, SupportsIndex, TypeAlias, cast

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType, bf16, f16, f32, i1, i32
from xdsl.ir import Attribute, SSAValue

from tilewright.api.sizes import Size, as_size
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym import Relation, symbolic_tensor

Emit: TypeAlias = Callable[[Builder, Sequence[SSAValue]], SSAValue]
"""Builds the ops of a node at the builder, from the values of its operands; returns the node's value."""

ELEMENT_TYPES: Final[dict[str, Attribute]] = {
    "float32": f32,
    "float16": f16,
    "bfloat16": bf16,
    "int32": i32,
    "bool": i1,
}
"""dtype in the front end -> element type in IR."""

_OTHER_NAMES: Final = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i1": "bool"}

UNNAMED: Final = "arg"
"""Name of a placeholder without one; the module numbers such arguments."""

FLOATS: Final = ("float32", "float16", "bfloat16")

_SERIAL = count()
"""Numbers placeholders in the order in which they are made: the order of a kernel's arguments."""


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A value of the graph. Make one with `placeholder` or a function of the front end, not with this class.

    Operators are elementwise with NumPy broadcasting; the other side is a tensor of the same dtype or a Python number.
    `==` compares identity; `equal` is the elementwise comparison.
    """

    sizes: tuple[Size, ...]
    dtype: str
    """float32, float16, bfloat16, int32 or bool."""
    operands: tuple[Tensor, ...]
    emit: Emit | None
    """None for a placeholder."""
    name: str
    """What the value is called in IR."""
    takes_scalars: bool = False
    """Whether `emit` accepts scalars by value where an operand has rank 0."""
    serial: int = -1
    """For a placeholder: its place among all placeholders."""
    mentions: tuple[Size, ...] = ()
    """Sizes that the op names beside those of its operands and result."""
    requires: tuple[Relation, ...] = ()
    """What must hold of the sizes for the value to make sense."""

    __array_ufunc__ = None  # NumPy scalars on the left leave the operation to __radd__ and the like.

    @property
    def shape(self) -> tuple[int | Size, ...]:
        """The sizes, static ones as integers."""
        return tuple(size if size.expr.constant is None else size.expr.constant for size in self.sizes)

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self.sizes)

    @property
    def element_type(self) -> Attribute:
        """The element type in IR."""
        return ELEMENT_TYPES[self.dtype]

    @property
    def type(self) -> TensorType[Any]:
        """The tensor type in IR, with `#sym.dims`."""
        return tensor_type(self.sizes, self.dtype)

    @property
    def is_placeholder(self) -> bool:
        """Whether this is an argument of the kernel."""
        return self.emit is None

    def __add__(self, other: Operand) -> Tensor:
        return _elementwise("add", self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return _elementwise("add", other, self)

    def __sub__(self, other: Operand) -> Tensor:
        return _elementwise("sub", self, other)

    def __rsub__(self, other: Operand) -> Tensor:
        return _elementwise("sub", other, self)

    def __mul__(self, other: Operand) -> Tensor:
        return _elementwise("mul", self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return _elementwise("mul", other, self)

    def __truediv__(self, other: Operand) -> Tensor:
        return _elementwise("div", self, other)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return _elementwise("div", other, self)

    def __lt__(self, other: Operand) -> Tensor:
        return _elementwise("less", self, other)

    def __le__(self, other: Operand) -> Tensor:
        return _elementwise("less_equal", self, other)

    def __gt__(self, other: Operand) -> Tensor:
        return _elementwise("greater", self, other)

    def __ge__(self, other: Operand) -> Tensor:
        return _elementwise("greater_equal", self, other)

    def __and__(self, other: Operand) -> Tensor:
        return _elementwise("logical_and", self, other)

    def __or__(self, other: Operand) -> Tensor:
        return _elementwise("logical_or", self, other)

    def __invert__(self) -> Tensor:
        return _elementwise("logical_not", self)

    def __neg__(self) -> Tensor:
        return _elementwise("neg", self)

    def __abs__(self) -> Tensor:
        return _elementwise("abs", self)

    def __getitem__(self, key: object) -> Tensor:
        from tilewright.api.movement import getitem

        return getitem(self, key)

    def __iter__(self) -> NoReturn:
        raise TilewrightError("a tensor of the front end cannot be iterated over: its sizes may be symbolic")

    def __matmul__(self, other: Tensor) -> Tensor:
        from tilewright.api.contractions import matmul

        return matmul(self, other)

    def __bool__(self) -> NoReturn:
        raise TilewrightError("a tensor of the front end has no truth value; use where() to choose elementwise")

    def __repr__(self) -> str:
        return f"Tensor({self.name}: {spell_shape(self.sizes)}, {self.dtype})"


Operand: TypeAlias = Tensor | SupportsFloat
"""What a function takes beside a tensor: a tensor, or a Python number that takes the tensor's dtype."""


def _elementwise(name: str, *operands: Operand) -> Tensor:
    from tilewright.api import elementwise

    return getattr(elementwise, name)(*operands)


def placeholder(shape: Sequence[object] | object, dtype: object = "float32", name: str | None = None) -> Tensor:
    """An argument of the kernel: integers and symbolic sizes for the shape, () for a number.

    Kernels take their arguments in the order in which the placeholders were made.
    """
    entries = tuple(cast("Sequence[object]", shape)) if isinstance(shape, tuple | list) else (shape,)
    sizes = tuple(as_size(entry) for entry in entries)
    for axis, size in enumerate(sizes):
        if size.expr.constant is not None and size.expr.constant < 0:
            raise TilewrightError(f"placeholder: expected a size of at least 0 at dim {axis}, got {size}")
    # A name is an SSA name in IR, so it is held to that syntax where it is given and not where the module is built.
    if name is not None and not (isinstance(cast("object", name), str) and SSAValue.is_valid_name(name)):
        raise TilewrightError(f"placeholder: expected a name of letters, digits, '_', '$', '.' and '-', got {name!r}")
    serial = next(_SERIAL)
    return Tensor(sizes, canonical_dtype(dtype), (), None, UNNAMED if name is None else name, serial=serial)


def canonical_dtype(dtype: object) -> str:
    """`float32`, `f32`, `numpy.float32` or a NumPy dtype as the name that `Tensor.dtype` has."""
    spelled = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    name = _OTHER_NAMES.get(str(spelled), str(spelled))
    if name not in ELEMENT_TYPES:
        raise TilewrightError(f"expected a dtype of {', '.join(ELEMENT_TYPES)}, got {dtype!r}")
    return name


def tensor_type(sizes: Sequence[Size], dtype: str) -> TensorType[Any]:
    """The IR type of a tensor of these sizes."""
    return symbolic_tensor(ELEMENT_TYPES[dtype], [size.expr for size in sizes])


def spell_shape(sizes: Sequence[Size]) -> str:
    """`(M, 512)`: a shape for people."""
    return "(" + ", ".join(map(str, sizes)) + ("," if len(sizes) == 1 else "") + ")"


def check_same_dtype(function: str, tensors: Sequence[Tensor]) -> str:
    """The one dtype of the tensors; TilewrightError when they differ."""
    first = tensors[0].dtype
    for other in tensors[1:]:
        if other.dtype != first:
            raise TilewrightError(f"{function}: expected tensors of one dtype, got {first} and {other.dtype}; use cast")
    return first


def check_tensors(function: str, *values: object) -> None:
    """TilewrightError unless every one of the values is a tensor of the front end."""
    for position, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise TilewrightError(f"{function}: expected a tensor at {position}, got {type(value).__name__}")


def normal_axis(function: str, axis: object, rank: int) -> int:
    """An axis counted from the front; TilewrightError when it is no integer, or the tensor has no such axis."""
    if isinstance(axis, bool) or not isinstance(axis, SupportsIndex) or not -rank <= axis.__index__() < rank:
        raise TilewrightError(f"{function}: expected an axis in {-rank}..{rank - 1}, got {axis!r}")
    return axis.__index__() % rank
