"""What a tile kernel computes on fragments: map, reduce, multiply-accumulate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, IntegerAttr, StringAttr, f32
from xdsl.ir import Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import (
    i64_attr,
    int_array,
    ints,
    parse_extra_attributes,
    parse_value,
    parse_word,
    print_extra_attributes,
)
from tilewright.dialects.precision import parse_precision, precision_attr, precision_error, print_precision
from tilewright.dialects.tile.channels import ReceiveOp
from tilewright.dialects.tile.iteration import (
    Maps,
    iteration_sizes,
    maps_attr,
    maps_of,
    parse_dim_names,
    parse_mapped,
    print_dim_names,
    print_mapped,
    spelled,
)
from tilewright.dialects.tile.limits import parse_valid, print_valid
from tilewright.dialects.tile.structure import YieldOp
from tilewright.dialects.tile.types import BufType, buffer_type

COMBINERS = ("sum", "prod", "max", "min")
INSTRUCTIONS = ("fma", "mma.sync", "wgmma")
"""What multiplies: the threads' multiply-adds, the matrix instructions of warps (sm_80) or of warpgroups (sm_90a)."""
index = IndexType()


@irdl_op_definition
class IndexOp(IRDLOperation):
    """`%i = tile.index 0 : index`: in the body of `tile.map`, the place in the tile along an iteration dim."""

    name = "tile.index"
    dim_attr = prop_def(IntegerAttr, prop_name="dim")
    result = result_def(index)
    traits = traits_def(Pure())

    def __init__(self, dim: int) -> None:
        super().__init__(properties={"dim": i64_attr(dim)}, result_types=[index])

    @property
    def dim(self) -> int:
        """The iteration dim."""
        return self.dim_attr.value.data

    def verify_(self) -> None:
        owner = self.parent_op()
        if not isinstance(owner, MapOp) or self.dim >= owner.iteration.value.data:
            raise VerifyException(f"expected an iteration dim of the tile.map around, got {self.dim}")

    @classmethod
    def parse(cls, parser: Parser) -> IndexOp:
        op = cls(parser.parse_integer(allow_boolean=False, allow_negative=False))
        op.attributes.update(parse_extra_attributes(parser))
        parser.parse_punctuation(":")
        parser.parse_keyword("index")
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.dim}")
        print_extra_attributes(printer, self)
        printer.print_string(" : index")


@irdl_op_definition
class MapOp(IRDLOperation):
    """`tile.map (d0, d1) ins(%a[d0, d1], %b[d1]) outs(%o[d0, d1]) valid(d1 < %n) { ^bb0(...): ... tile.yield %z }`.

    The body computes one element of each output from one element of each input (scalars go in as they are), on
    fragments. Where an iteration dim is at or past its `valid` limit (an index value) the outputs keep what they hold.
    An output may also be an input, read along the same dims: each point reads its element before it writes it. Points
    are computed in any order, so each writes elements of its own: an output runs along every iteration dim.
    """

    name = "tile.map"
    inputs = var_operand_def()
    outputs = var_operand_def(BufType)
    limits = var_operand_def(index)
    maps = prop_def(Maps)
    iteration = prop_def(IntegerAttr)
    valid = prop_def(ArrayAttr[IntAttr])
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        iteration: int,
        inputs: Sequence[tuple[SSAValue, Sequence[int]]],
        outputs: Sequence[tuple[SSAValue, Sequence[int]]],
        body: Region,
        *,
        valid: Mapping[int, SSAValue] | None = None,
    ) -> None:
        valid = valid or {}
        super().__init__(
            operands=[[v for v, _ in inputs], [v for v, _ in outputs], list(valid.values())],
            properties={
                "maps": maps_attr([m for _, m in (*inputs, *outputs)]),
                "iteration": i64_attr(iteration),
                "valid": int_array(list(valid)),
            },
            regions=[body],
        )

    @property
    def mapped_inputs(self) -> list[tuple[SSAValue, tuple[int, ...]]]:
        """Inputs with their maps."""
        return list(zip(self.inputs, maps_of(self.maps)[: len(self.inputs)], strict=True))

    @property
    def mapped_outputs(self) -> list[tuple[SSAValue, tuple[int, ...]]]:
        """Outputs with their maps."""
        return list(zip(self.outputs, maps_of(self.maps)[len(self.inputs) :], strict=True))

    @property
    def valid_limits(self) -> dict[int, SSAValue]:
        """Iteration dim to the index value that it must be below."""
        return dict(zip(ints(self.valid), self.limits, strict=True))

    @property
    def sizes(self) -> list[int | None]:
        """Static extents of the iteration dims."""
        return iteration_sizes(self.iteration.value.data, [*self.inputs, *self.outputs], maps_of(self.maps))

    def verify_(self) -> None:
        if len(self.maps.data) != len(self.inputs) + len(self.outputs):
            raise VerifyException("expected one map for each input and output")
        if any(s is None for s in self.sizes):
            raise VerifyException("every iteration dim must index a buffer")
        if len(self.valid.data) != len(self.limits):
            raise VerifyException("expected one limit for each valid dim")
        for value in (*self.inputs, *self.outputs):
            if isinstance(value.type, BufType) and value.type.space.data != "fragment":
                raise VerifyException(f"tile.map works on fragments, got {value.type.space.data}")
        self._verify_outputs()
        args = self.body.block.args
        expected = [v.type.element if isinstance(v.type, BufType) else v.type for v in self.inputs]
        if [a.type for a in args] != expected:
            raise VerifyException(f"expected body arguments {expected}, got {[a.type for a in args]}")
        last = self.body.block.last_op
        if not isinstance(last, YieldOp) or [v.type for v in last.values] != [
            buffer_type(o).element for o in self.outputs
        ]:
            raise VerifyException("the body must end in tile.yield with one value of each output's element type")

    def _verify_outputs(self) -> None:
        """No point may write what another one reads or writes."""
        outputs = dict(self.mapped_outputs)
        if len(outputs) < len(self.outputs):
            raise VerifyException("expected each output once, got a buffer twice")
        for own in outputs.values():
            missing = [d for d, size in enumerate(self.sizes) if size != 1 and d not in own]
            if missing:
                raise VerifyException(
                    f"expected an output to run along every iteration dim, got {spelled(own)} without d{missing[0]}"
                )
        for value, own in self.mapped_inputs:
            if value in outputs and outputs[value] != own:
                written, read = spelled(outputs[value]), spelled(own)
                raise VerifyException(f"expected an output to be read where it is written, at {written}, got {read}")

    @classmethod
    def parse(cls, parser: Parser) -> MapOp:
        names = parse_dim_names(parser)
        parser.parse_keyword("ins")
        inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_mapped(parser, names))
        parser.parse_keyword("outs")
        outputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_mapped(parser, names))
        dims, limits = parse_valid(parser, names)
        extra = parse_extra_attributes(parser)
        body = parser.parse_region()
        op = cls(len(names), inputs, outputs, body, valid=dict(zip(dims, limits, strict=True)))
        op.attributes.update(extra)
        return op

    def print(self, printer: Printer) -> None:
        print_dim_names(printer, self.iteration.value.data)
        for word, pairs in (("ins", self.mapped_inputs), ("outs", self.mapped_outputs)):
            printer.print_string(f" {word}(")
            printer.print_list(pairs, lambda p: print_mapped(printer, *p))
            printer.print_string(")")
        print_valid(printer, ints(self.valid), self.limits)
        print_extra_attributes(printer, self)
        printer.print_string(" ")
        printer.print_region(self.body)


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """`tile.reduce sum (d0, d1) %v[d0, d1] into %s[d0] valid(d1 < %n) scratch %w`.

    Combines the elements along the dims that the target lacks with what the target holds, over all threads of the
    block; every thread that holds a copy of a target element gets the result. Elements at or past a `valid` limit do
    not take part. `scratch` is a shared buffer with one element a warp and target element, present when threads of more
    than one warp take part; the op waits for the block before it writes to the scratch and before it reads it, not
    after.
    """

    name = "tile.reduce"
    source = operand_def(BufType)
    target = operand_def(BufType)
    limits = var_operand_def(index)
    scratch = opt_operand_def(BufType)
    combine = prop_def(StringAttr)
    maps = prop_def(Maps)
    iteration = prop_def(IntegerAttr)
    valid = prop_def(ArrayAttr[IntAttr])
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        combine: str,
        iteration: int,
        source: tuple[SSAValue, Sequence[int]],
        target: tuple[SSAValue, Sequence[int]],
        *,
        valid: Mapping[int, SSAValue] | None = None,
        scratch: SSAValue | None = None,
    ) -> None:
        valid = valid or {}
        super().__init__(
            operands=[source[0], target[0], list(valid.values()), [] if scratch is None else [scratch]],
            properties={
                "combine": StringAttr(combine),
                "maps": maps_attr([source[1], target[1]]),
                "iteration": i64_attr(iteration),
                "valid": int_array(list(valid)),
            },
        )

    @property
    def source_map(self) -> tuple[int, ...]:
        """Iteration dim of each source dim."""
        return maps_of(self.maps)[0]

    @property
    def target_map(self) -> tuple[int, ...]:
        """Iteration dim of each target dim."""
        return maps_of(self.maps)[1]

    @property
    def reduced_dims(self) -> tuple[int, ...]:
        """Iteration dims that the target lacks."""
        return tuple(d for d in range(self.iteration.value.data) if d not in self.target_map)

    @property
    def valid_limits(self) -> dict[int, SSAValue]:
        """Iteration dim to the index value that it must be below."""
        return dict(zip(ints(self.valid), self.limits, strict=True))

    @property
    def sizes(self) -> list[int | None]:
        """Static extents of the iteration dims."""
        return iteration_sizes(self.iteration.value.data, [self.source, self.target], maps_of(self.maps))

    def verify_(self) -> None:
        if self.combine.data not in COMBINERS:
            raise VerifyException(f"expected {', '.join(COMBINERS)}, got {self.combine.data}")
        if any(s is None for s in self.sizes):
            raise VerifyException("every iteration dim must index a buffer")
        if len(self.valid.data) != len(self.limits):
            raise VerifyException("expected one limit for each valid dim")
        source, target = buffer_type(self.source), buffer_type(self.target)
        if source.element != target.element:
            raise VerifyException(f"expected equal element types, got {source.element} and {target.element}")
        if source.space.data != "fragment" or target.space.data != "fragment":
            raise VerifyException("tile.reduce works on fragments")
        if self.source is self.target:
            raise VerifyException("expected another buffer as target than as source")

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        combine = parse_word(parser, COMBINERS, "combiner").data
        names = parse_dim_names(parser)
        source = parse_mapped(parser, names)
        parser.parse_keyword("into")
        target = parse_mapped(parser, names)
        dims, limits = parse_valid(parser, names)
        scratch = parse_value(parser) if parser.parse_optional_keyword("scratch") else None
        op = cls(combine, len(names), source, target, valid=dict(zip(dims, limits, strict=True)), scratch=scratch)
        op.attributes.update(parse_extra_attributes(parser))
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.combine.data}")
        print_dim_names(printer, self.iteration.value.data)
        printer.print_string(" ")
        print_mapped(printer, self.source, self.source_map)
        printer.print_string(" into ")
        print_mapped(printer, self.target, self.target_map)
        print_valid(printer, ints(self.valid), self.limits)
        if self.scratch is not None:
            printer.print_string(" scratch ")
            printer.print_operand(self.scratch)
        print_extra_attributes(printer, self)


@irdl_op_definition
class MmaOp(IRDLOperation):
    """`tile.mma (d0, d1, d2) %a[d0, d2], %b[d2, d1] into %acc[d0, d1] inst fma`: acc += a * b, summed over d2.

    `fma`: operands are fragments, converted to the accumulator's type (exactly), then each product is added by a fused
    multiply-add (integers: multiply, add) in increasing order of the summed dims, those that acc lacks. The accumulator
    is no operand.
    `mma.sync`: operands are swizzled shared buffers of bf16 or f16, whole or the buffers of a channel's slots; products
    are exact and summed in f32 in an order of the hardware's. Each warp multiplies its part of the accumulators, and is
    through with the operands when it goes on.
    `wgmma`: operands are the buffers of a channel's slots, of bf16 or f16 and swizzled; products are exact and summed
    in f32 in an order of the hardware's. It runs on until the slots are released: nothing else may touch acc before.
    With `precision tf32` before `inst` both matrix instructions take f32 too, and ignore the 13 lowest bits of their
    fractions (`wgmma`: operands in rows along the summed dim alone).
    """

    name = "tile.mma"
    lhs = operand_def(BufType)
    rhs = operand_def(BufType)
    acc = operand_def(BufType)
    maps = prop_def(Maps)
    iteration = prop_def(IntegerAttr)
    inst = opt_prop_def(StringAttr)
    precision = opt_prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        iteration: int,
        lhs: tuple[SSAValue, Sequence[int]],
        rhs: tuple[SSAValue, Sequence[int]],
        acc: tuple[SSAValue, Sequence[int]],
        *,
        inst: str | None = None,
        precision: str | None = None,
    ) -> None:
        super().__init__(
            operands=[lhs[0], rhs[0], acc[0]],
            properties={
                "maps": maps_attr([lhs[1], rhs[1], acc[1]]),
                "iteration": i64_attr(iteration),
                "inst": None if inst is None else StringAttr(inst),
                "precision": precision_attr(precision),
            },
        )

    @property
    def operand_dims(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Maps of lhs, rhs and accumulator."""
        lhs, rhs, acc = maps_of(self.maps)
        return lhs, rhs, acc

    @property
    def reduced_dims(self) -> tuple[int, ...]:
        """Iteration dims that the accumulator lacks."""
        return tuple(d for d in range(self.iteration.value.data) if d not in self.operand_dims[2])

    @property
    def sizes(self) -> list[int | None]:
        """Static extents of the iteration dims."""
        return iteration_sizes(self.iteration.value.data, [self.lhs, self.rhs, self.acc], maps_of(self.maps))

    def verify_(self) -> None:
        if len(self.maps.data) != 3:
            raise VerifyException("expected three maps")
        if any(s is None for s in self.sizes):
            raise VerifyException("every iteration dim must index a buffer")
        if self.inst is not None and self.inst.data not in INSTRUCTIONS:
            raise VerifyException(f"expected inst {', '.join(INSTRUCTIONS)}, got {self.inst.data}")
        inst = "fma" if self.inst is None else self.inst.data
        for value in (self.lhs, self.rhs, self.acc):
            space, expected = buffer_type(value).space.data, "fragment"
            if inst in ("mma.sync", "wgmma") and value is not self.acc:
                expected = "shared"
            if space != expected:
                raise VerifyException(f"tile.mma with inst {inst}: expected a {expected} buffer, got {space}")
        if self.acc in (self.lhs, self.rhs):
            raise VerifyException("tile.mma: expected an accumulator that is no operand")
        if error := precision_error(self.precision):
            raise VerifyException(f"tile.mma: {error}")
        if self.precision is not None and buffer_type(self.acc).element != f32:
            element = buffer_type(self.acc).element
            raise VerifyException(f"tile.mma: precision {self.precision.data}: expected f32 sums, got {element}")

    def schedule_gaps(self) -> list[str]:
        """What is still undecided on this op."""
        if self.inst is None:
            return ["inst"]
        received = all(isinstance(v.owner, ReceiveOp) for v in (self.lhs, self.rhs))
        return ["channel"] if self.inst.data == "wgmma" and not received else []

    @classmethod
    def parse(cls, parser: Parser) -> MmaOp:
        names = parse_dim_names(parser)
        lhs = parse_mapped(parser, names)
        parser.parse_punctuation(",")
        rhs = parse_mapped(parser, names)
        parser.parse_keyword("into")
        acc = parse_mapped(parser, names)
        precision = parse_precision(parser)
        inst = parse_word(parser, INSTRUCTIONS, "inst").data if parser.parse_optional_keyword("inst") else None
        op = cls(len(names), lhs, rhs, acc, inst=inst, precision=precision)
        op.attributes.update(parse_extra_attributes(parser))
        return op

    def print(self, printer: Printer) -> None:
        print_dim_names(printer, self.iteration.value.data)
        printer.print_string(" ")
        lhs, rhs, acc = self.operand_dims
        print_mapped(printer, self.lhs, lhs)
        printer.print_string(", ")
        print_mapped(printer, self.rhs, rhs)
        printer.print_string(" into ")
        print_mapped(printer, self.acc, acc)
        print_precision(printer, self.precision)
        if self.inst is not None:
            printer.print_string(f" inst {self.inst.data}")
        print_extra_attributes(printer, self)
