"""Who executes: roles, which are groups of warpgroups with code of their own, and one thread of a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Block, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, traits_def, var_region_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import int_array, ints, parse_word

WARPGROUP = 128
"""Threads of a warpgroup: four warps, the first of which has a number that four divides."""
ELECT_SCOPES = ("warp", "warpgroup", "role", "block")


@dataclass(frozen=True, slots=True)
class Role:
    """A role: warpgroups `first` to `last - 1`, and the registers that each of its threads gets (0: what it has)."""

    name: str
    first: int
    last: int
    registers: int

    @property
    def threads(self) -> int:
        """Threads of the role."""
        return (self.last - self.first) * WARPGROUP


@irdl_op_definition
class RolesOp(IRDLOperation):
    """`simt.roles { role consumer warpgroups [0, 2] registers 240 {...} role producer warpgroups [2, 3] {...} }`.

    Each warpgroup executes the region of its role. The roles cover the block's warpgroups without overlap. Block
    barriers are not allowed inside; registers are handed over at the start of a role (setmaxnreg, PTX ISA 8.0).
    """

    name = "simt.roles"
    names = prop_def(ArrayAttr[StringAttr])
    bounds = prop_def(ArrayAttr[IntAttr])
    registers = prop_def(ArrayAttr[IntAttr])
    bodies = var_region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, roles: Sequence[Role], bodies: Sequence[Region]) -> None:
        super().__init__(
            properties={
                "names": ArrayAttr([StringAttr(r.name) for r in roles]),
                "bounds": int_array([n for r in roles for n in (r.first, r.last)]),
                "registers": int_array([r.registers for r in roles]),
            },
            regions=[list(bodies)],
        )

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles, one for each region."""
        bounds = ints(self.bounds)
        return tuple(
            Role(name.data, bounds[2 * n], bounds[2 * n + 1], registers)
            for n, (name, registers) in enumerate(zip(self.names.data, ints(self.registers), strict=True))
        )

    def verify_(self) -> None:
        if len(self.names.data) != len(self.bodies) or len(self.bounds.data) != 2 * len(self.bodies):
            raise VerifyException("expected a name, two bounds and a register count for each region")
        taken: set[int] = set()
        for role in self.roles:
            if not 0 <= role.first < role.last:
                raise VerifyException(f"role {role.name}: expected warpgroups [first, past last], got {role}")
            own = set(range(role.first, role.last))
            if taken & own:
                raise VerifyException(f"role {role.name}: warpgroup {min(taken & own)} has a role already")
            taken |= own
            if role.registers and (role.registers % 8 or not 24 <= role.registers <= 256):
                raise VerifyException(
                    f"role {role.name}: expected a multiple of 8 registers from 24 to 256, got {role.registers}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> RolesOp:
        roles: list[Role] = []
        bodies: list[Region] = []
        parser.parse_punctuation("{")
        while parser.parse_optional_keyword("role"):
            name = parser.parse_identifier()
            parser.parse_keyword("warpgroups")
            with parser.in_square_brackets():
                first = parser.parse_integer()
                parser.parse_punctuation(",")
                last = parser.parse_integer()
            registers = parser.parse_integer() if parser.parse_optional_keyword("registers") else 0
            roles.append(Role(name, first, last, registers))
            bodies.append(parser.parse_region())
        parser.parse_punctuation("}")
        return cls(roles, bodies)

    def print(self, printer: Printer) -> None:
        printer.print_string(" {")
        with printer.indented():
            for role, body in zip(self.roles, self.bodies, strict=True):
                printer.print_string("\n")
                printer.print_string(f"role {role.name} warpgroups [{role.first}, {role.last}]")
                if role.registers:
                    printer.print_string(f" registers {role.registers}")
                printer.print_string(" ")
                printer.print_region(body, print_empty_block=False)
        printer.print_string("\n}")


@irdl_op_definition
class ElectOp(IRDLOperation):
    """`simt.elect warp { ... }`: one thread of each warp (warpgroup, role, block) executes the region, its first."""

    name = "simt.elect"
    scope = prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, scope: str, body: Region | None = None) -> None:
        super().__init__(properties={"scope": StringAttr(scope)}, regions=[Region(Block()) if body is None else body])

    def verify_(self) -> None:
        if self.scope.data not in ELECT_SCOPES:
            raise VerifyException(f"expected scope {', '.join(ELECT_SCOPES)}, got {self.scope.data}")

    @classmethod
    def parse(cls, parser: Parser) -> ElectOp:
        scope = parse_word(parser, ELECT_SCOPES, "scope").data
        return cls(scope, parser.parse_region())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.scope.data} ")
        printer.print_region(self.body, print_empty_block=False)
