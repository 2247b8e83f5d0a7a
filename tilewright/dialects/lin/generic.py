"""`lin.generic`: the one structured op that all others decompose to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IndexType,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
    f32,
)
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.rewriter import InsertPoint
from xdsl.traits import IsolatedFromAbove, Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.assembly import parse_extra_attributes, print_extra_attributes
from tilewright.dialects.lin.access import (
    AccessAttr,
    Accesses,
    access_prefixes,
    constant_type,
    parse_access,
    print_access,
)
from tilewright.dialects.lin.body import YieldOp, verify_scalar_body
from tilewright.dialects.lin.combine import Combine
from tilewright.dialects.lin.indexing import OperandMap, affine_map, dims_of_map, indices_text
from tilewright.dialects.lin.interfaces import InferShapes
from tilewright.dialects.lin.shapes import (
    check_element_type,
    equal_dims,
    is_tensor,
    is_unit,
    partial_shape,
    scalar_type,
    shape_of,
    tensor,
)
from tilewright.dialects.lin.syntax import parse_combine, parse_tensor_type, print_body
from tilewright.dialects.precision import parse_precision, precision_attr, precision_error, print_precision
from tilewright.dialects.sym import Expr

PARALLEL = "parallel"
REDUCTION = "reduction"


@irdl_op_definition
class GenericOp(IRDLOperation, InferShapes):
    """One value for each point of an iteration space, combined over the dims that the result does not have.

    `%c = lin.generic (d0, d1, d2) ins(%a[d0, d2] : !A, %b[d2, d1] : !B) out[d0, d1] combine sum : !C { body }`
    Operands are tensors or scalars by value; the body takes one scalar for each and yields one scalar of the
    result's element type. An operand may be read at computed positions instead: `%x at [d0 + S, 2*d1] else 0.0 : f32`
    (`AccessAttr`); `%i[d0] as v0` names the value of an integer operand for the indices of a later one. A contraction
    in f32 may say `precision tf32` after `combine sum`: its factors may lose the 13 lowest bits of their fractions.
    """

    name = "lin.generic"

    ins = var_operand_def()
    result = result_def(TensorType)
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    access_attrs = opt_prop_def(ArrayAttr, prop_name="accesses")
    combine_attr = opt_prop_def(StringAttr, prop_name="combine")
    precision = opt_prop_def(StringAttr)
    body = region_def("single_block")

    traits = traits_def(Pure(), IsolatedFromAbove())

    def __init__(
        self,
        operands: Sequence[SSAValue],
        indexing_maps: Sequence[AffineMap],
        combine: Combine | None,
        result_type: TensorType,
        body: Region,
        attributes: dict[str, Attribute] | None = None,
        accesses: Accesses = (),
        precision: str | None = None,
    ) -> None:
        """`indexing_maps` holds one map for each operand and the output's last, without results for an operand that
        `accesses` (one entry an operand, or none at all) says to be read at computed positions."""
        computed = any(a is not None for a in accesses)
        super().__init__(
            operands=[list(operands)],
            result_types=[result_type],
            properties={
                "indexing_maps": ArrayAttr([AffineMapAttr(m) for m in indexing_maps]),
                "combine": None if combine is None else StringAttr(combine),
                "accesses": ArrayAttr([UnitAttr() if a is None else a for a in accesses]) if computed else None,
                "precision": precision_attr(precision),
            },
            attributes=attributes or {},
            regions=[body],
        )

    @staticmethod
    def build_from(
        operands: Sequence[SSAValue],
        operand_maps: Sequence[OperandMap],
        out_map: Sequence[int],
        combine: Combine | None,
        result_type: TensorType,
        body_builder: Callable[[Builder, tuple[BlockArgument, ...]], SSAValue],
        accesses: Accesses = (),
        precision: str | None = None,
    ) -> GenericOp:
        """A generic over as many iteration dims as the maps name.

        `body_builder` gets a builder at the end of the body and the scalars of the operands; it returns the scalar
        to yield.
        """
        block = Block(arg_types=[scalar_type(operand.type) for operand in operands])
        builder = Builder(InsertPoint.at_end(block))
        builder.insert(YieldOp(body_builder(builder, tuple(block.args))))
        body = Region(block)
        return GenericOp.build_around(operands, operand_maps, out_map, combine, result_type, body, accesses, precision)

    @staticmethod
    def build_around(
        operands: Sequence[SSAValue],
        operand_maps: Sequence[OperandMap],
        out_map: Sequence[int],
        combine: Combine | None,
        result_type: TensorType,
        body: Region,
        accesses: Accesses = (),
        precision: str | None = None,
    ) -> GenericOp:
        """Like `build_from`, around a body that exists."""
        named = [d for m in operand_maps for d in m if d is not None] + list(out_map)
        dims = max(named, default=-1) + 1
        maps = [affine_map(dims, m) for m in operand_maps] + [affine_map(dims, tuple(out_map))]
        return GenericOp(operands, maps, combine, result_type, body, accesses=accesses, precision=precision)

    @property
    def maps(self) -> tuple[AffineMap, ...]:
        """The affine maps as stored: one for each operand, the output's last."""
        return tuple(m.data for m in self.indexing_maps.data)

    @property
    def iteration_dims(self) -> int:
        """The number of iteration dims."""
        return self.maps[-1].num_dims

    @property
    def operand_maps(self) -> tuple[OperandMap, ...]:
        """For each operand the iteration dim of each of its dims, None where it is read at index 0.

        Empty for a scalar, and for an operand that is read at computed positions.
        """
        return tuple(dims_of_map(m) for m in self.maps[:-1])

    @property
    def accesses(self) -> tuple[AccessAttr | None, ...]:
        """For each operand how it is read at computed positions, None where it runs along iteration dims."""
        if self.access_attrs is None:
            return (None,) * len(self.ins)
        return tuple(a if isinstance(a, AccessAttr) else None for a in self.access_attrs.data)

    def dims_read(self, position: int) -> tuple[int, ...]:
        """The iteration dims on which the value of an operand depends, ascending for one at computed positions."""
        access = self.accesses[position]
        if access is None:
            return tuple(d for d in self.operand_maps[position] if d is not None)
        through = [d for v in access.values for d in self.dims_read(v)]
        return tuple(sorted({*access.dims, *through}))

    @property
    def out_map(self) -> tuple[int, ...]:
        """The iteration dim of each dim of the result."""
        return tuple(d for d in dims_of_map(self.maps[-1]) if d is not None)

    @property
    def reduction_dims(self) -> tuple[int, ...]:
        """The iteration dims that the result does not have, ascending."""
        kept = set(self.out_map)
        return tuple(d for d in range(self.iteration_dims) if d not in kept)

    @property
    def iterator_types(self) -> tuple[str, ...]:
        """`parallel` or `reduction` for each iteration dim."""
        reduced = set(self.reduction_dims)
        return tuple(REDUCTION if d in reduced else PARALLEL for d in range(self.iteration_dims))

    @property
    def combine(self) -> Combine | None:
        """How yielded values are combined over the reduction dims; None when there are none."""
        return None if self.combine_attr is None else Combine.of(self.combine_attr)

    @property
    def yielded(self) -> SSAValue:
        """The scalar that the body yields."""
        terminator = self.body.block.last_op
        if not isinstance(terminator, YieldOp) or len(terminator.values) != 1:
            raise VerifyException("expected a body that ends in lin.yield of one value")
        return terminator.values[0]

    def extents(self) -> tuple[Expr, ...]:
        """The size of each iteration dim: the result's dim if it has one, else the first operand's.

        TilewrightError while a size is a `?` that infer-shapes has not resolved.
        """
        known: list[Expr] = []
        for d, size in enumerate(self._partial_extents(partial_shape(self.result.type))):
            if size is None:
                raise TilewrightError(f"lin.generic: expected a known size of d{d}, got '?' (run infer-shapes first)")
            known.append(size)
        return tuple(known)

    def _partial_extents(self, out_sizes: Sequence[Expr | None]) -> tuple[Expr | None, ...]:
        found: dict[int, Expr | None] = dict(zip(self.out_map, out_sizes, strict=True))
        for operand, dims, access in zip(self.ins, self.operand_maps, self.accesses, strict=True):
            if is_tensor(operand.type) and access is None:
                for d, size in zip(dims, partial_shape(operand.type), strict=True):
                    if d is not None and found.get(d) is None:
                        found[d] = size
        return tuple(found[d] for d in range(self.iteration_dims))

    def infer_result_types(self, operand_types: Sequence[Attribute]) -> list[TensorType]:
        found: dict[int, Expr] = {}
        for operand_type, dims, access in zip(operand_types, self.operand_maps, self.accesses, strict=True):
            if not is_tensor(operand_type) or access is not None:
                continue
            operand_sizes = shape_of(operand_type)
            if len(operand_sizes) != len(dims):
                raise TilewrightError(f"lin.generic: expected an operand of rank {len(dims)}, got {operand_type}")
            for d, size in zip(dims, operand_sizes, strict=True):
                if d is not None and not equal_dims(self, found.setdefault(d, size), size):
                    raise TilewrightError(f"lin.generic: expected one size of d{d}, got {found[d]} and {size}")
        stated = partial_shape(self.result.type)
        sizes: list[Expr] = []
        for d, own in zip(self.out_map, stated, strict=True):
            # A dim that occurs in out alone has no other size than the one stated.
            size = found.get(d, own)
            if size is None:
                raise TilewrightError(f"lin.generic: expected a stated size of d{d}, which no operand has, got '?'")
            sizes.append(size)
        return [tensor(sizes, self.result.type.element_type)]

    @property
    def is_contraction(self) -> bool:
        """Two tensor operands, combine sum, and a body that yields their product, each cast wider at most.

        What lies outside an operand that is read at computed positions counts as zero, or it is no contraction.
        """
        if self.combine is not Combine.SUM or len(self.ins) != 2 or not all(is_tensor(v.type) for v in self.ins):
            return False
        if any(a is not None and (a.values or not a.fills_with_zero) for a in self.accesses):
            return False
        product = self.yielded.owner
        if not isinstance(product, arith.MulfOp | arith.MuliOp):
            return False
        factors = {_through_extension(product.lhs), _through_extension(product.rhs)}
        return factors == set(self.body.block.args)

    def verify_(self) -> None:
        self._verify_maps()
        self._verify_sizes()
        self._verify_combine()
        self._verify_body()
        self._verify_precision()

    def _verify_precision(self) -> None:
        if self.precision is None:
            return
        if error := precision_error(self.precision):
            raise VerifyException(error)
        if not self.is_contraction or self.result.type.element_type != f32:
            raise VerifyException(f"precision {self.precision.data}: expected a contraction that sums products in f32")

    def _verify_maps(self) -> None:
        if len(self.maps) != len(self.ins) + 1:
            raise VerifyException(
                f"expected {len(self.ins) + 1} indexing maps (operands and result), got {len(self.maps)}"
            )
        out = self.maps[-1]
        for position, m in enumerate(self.maps):
            if m.num_dims != out.num_dims or m.num_symbols:
                raise VerifyException(f"expected maps over {out.num_dims} dims and no symbols, got {m} at {position}")
            for result in m.results:
                if not isinstance(result, AffineDimExpr) and result != AffineConstantExpr(0):
                    raise VerifyException(f"expected an iteration dim or 0 as index, got {result} in map {position}")
        dims = dims_of_map(out)
        if None in dims or len(set(dims)) != len(dims):
            raise VerifyException(f"expected distinct iteration dims in out, got {out}")
        if self.access_attrs is not None and len(self.access_attrs.data) != len(self.ins):
            raise VerifyException(f"expected {len(self.ins)} accesses, got {len(self.access_attrs.data)}")
        for position, (operand, dims) in enumerate(zip(self.ins, self.operand_maps, strict=True)):
            check_element_type(operand.type)
            rank = operand.type.get_num_dims() if is_tensor(operand.type) else 0
            access = self.accesses[position]
            if access is not None:
                self._verify_access(position, access, rank)
                rank = 0
            if len(dims) != rank:
                raise VerifyException(
                    f"expected {rank} indices for operand {position}: {operand.type}, got {len(dims)}"
                )
        rank = self.result.type.get_num_dims()
        if len(self.out_map) != rank:
            raise VerifyException(f"expected {rank} dims in out for {self.result.type}, got {len(self.out_map)}")
        check_element_type(self.result.type)
        named = {d for m in self.operand_maps for d in m} | set(self.out_map)
        for d in range(self.iteration_dims):
            if d not in named:
                raise VerifyException(f"expected d{d} in an operand or in out, got it in none")

    def _verify_access(self, position: int, access: AccessAttr, rank: int) -> None:
        operand = self.ins[position]
        if not is_tensor(operand.type) or len(access.indices) != rank:
            raise VerifyException(
                f"expected {rank} indices for operand {position}: {operand.type}, got {len(access.indices)}"
            )
        if any(d >= self.iteration_dims for d in access.dims):
            raise VerifyException(f"expected iteration dims below d{self.iteration_dims}, got d{max(access.dims)}")
        for v in access.values:
            if v >= position or not isinstance(scalar_type(self.ins[v].type), IntegerType | IndexType):
                raise VerifyException(
                    f"operand {position}: expected the value of an integer operand before it, got v{v}"
                )
        fill = access.fill
        if fill is not None:
            element = operand.type.element_type
            if constant_type(fill) != element:
                raise VerifyException(
                    f"operand {position}: expected else with a constant of type {element}, got {fill}"
                )

    def _verify_sizes(self) -> None:
        extents = self._partial_extents(partial_shape(self.result.type))
        for position, (operand, dims) in enumerate(zip(self.ins, self.operand_maps, strict=True)):
            if not is_tensor(operand.type) or self.accesses[position] is not None:
                continue
            for axis, (d, size) in enumerate(zip(dims, partial_shape(operand.type), strict=True)):
                if d is None:
                    if not is_unit(size):
                        raise VerifyException(
                            f"expected size 1 at index 0 of operand {position} dim {axis}, got {size}"
                        )
                elif not equal_dims(self, extents[d], size):
                    raise VerifyException(
                        f"expected size {extents[d]} of d{d} for operand {position} dim {axis}, got {size}"
                    )

    def _verify_combine(self) -> None:
        combine = self.combine
        reduced = ", ".join(f"d{d}" for d in self.reduction_dims)
        if reduced and combine is None:
            raise VerifyException(f"expected combine for the reduction dims {reduced}, got none")
        if not reduced and combine is not None:
            raise VerifyException(f"expected no combine without reduction dims, got {combine}")

    def _verify_body(self) -> None:
        arguments = [scalar_type(v.type) for v in self.ins]
        verify_scalar_body(self, self.body.block, arguments, self.result.type, self.iteration_dims)

    @classmethod
    def parse(cls, parser: Parser) -> GenericOp:
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
        number = {name: position for position, name in enumerate(names)}
        if len(number) != len(names):
            parser.raise_error(f"expected distinct iteration dims, got ({', '.join(names)})")

        def parse_index() -> int | None:
            position = parser.pos
            if (value := parser.parse_optional_integer(allow_boolean=False, allow_negative=False)) is not None:
                if value != 0:
                    parser.raise_error(f"expected an iteration dim or 0, got {value}", position)
                return None
            name = parser.parse_identifier()
            if name not in number:
                parser.raise_error(f"expected one of the iteration dims ({', '.join(names)}), got {name}", position)
            return number[name]

        def parse_indices() -> OperandMap:
            return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_index))

        maps: list[OperandMap] = []

        accesses: list[AccessAttr | None] = []
        values: dict[str, int] = {}

        def parse_operand() -> SSAValue:
            operand = parser.parse_unresolved_operand()
            access = parse_access(parser, number, values) if parser.parse_optional_keyword("at") else None
            # A scalar operand has no brackets.
            indices = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parse_index)
            if parser.parse_optional_keyword("as"):
                values[parser.parse_identifier()] = len(maps)
            maps.append(tuple(indices or ()))
            accesses.append(access)
            parser.parse_punctuation(":")
            return parser.resolve_operand(operand, parser.parse_type())

        parser.parse_keyword("ins")
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_operand)
        parser.parse_keyword("out")
        out = parse_indices()
        combine = Combine.of(parse_combine(parser)) if parser.parse_optional_keyword("combine") else None
        precision = parse_precision(parser)
        parser.parse_punctuation(":")
        result_type = parse_tensor_type(parser)
        attributes = parse_extra_attributes(parser)
        body = parser.parse_region()
        affine = [affine_map(len(names), m) for m in (*maps, out)]
        return GenericOp(operands, affine, combine, result_type, body, attributes, accesses, precision)

    def print(self, printer: Printer) -> None:
        accesses = self.accesses
        prefixes = access_prefixes(accesses)
        letter = prefixes["d"]
        dims = ", ".join(f"{letter}{d}" for d in range(self.iteration_dims))
        printer.print_string(f" ({dims}) ins(")
        named = {v for a in accesses if a is not None for v in a.values}

        def print_operand(position: int) -> None:
            operand, access = self.ins[position], accesses[position]
            printer.print_ssa_value(operand)
            if access is not None:
                print_access(printer, access, prefixes)
            elif is_tensor(operand.type):
                printer.print_string(indices_text(self.operand_maps[position], letter))
            if position in named:
                printer.print_string(f" as {prefixes['v']}{position}")
            printer.print_string(" : ")
            printer.print_attribute(operand.type)

        printer.print_list(range(len(self.ins)), print_operand)
        printer.print_string(f") out{indices_text(dims_of_map(self.maps[-1]), letter)}")
        if self.combine_attr is not None:
            printer.print_string(f" combine {self.combine_attr.data}")
        print_precision(printer, self.precision)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)
        print_extra_attributes(printer, self)
        print_body(printer, self.body)


def _through_extension(value: SSAValue) -> SSAValue:
    """The value before one widening cast, if there is one."""
    owner = value.owner
    return owner.operands[0] if isinstance(owner, arith.ExtFOp | arith.ExtSIOp) else value
