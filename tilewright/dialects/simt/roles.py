"""Who executes: roles, which are groups of warpgroups with code of their own, and one thread of a group."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Block, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, traits_def, var_region_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import parse_word
from tilewright.dialects.roles import Role, parse_roles, print_roles, role_properties, roles_of, verify_roles

ELECT_SCOPES = ("warp", "warpgroup", "role", "block")


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
        super().__init__(properties=role_properties(roles), regions=[list(bodies)])

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles, one for each region."""
        return roles_of(self.names, self.bounds, self.registers)

    def verify_(self) -> None:
        counts = len(self.names.data), len(self.bounds.data), len(self.registers.data)
        if counts != (len(self.bodies), 2 * len(self.bodies), len(self.bodies)):
            raise VerifyException("expected a name, two bounds and a register count for each region")
        verify_roles(self.roles)

    @classmethod
    def parse(cls, parser: Parser) -> RolesOp:
        return cls(*parse_roles(parser))

    def print(self, printer: Printer) -> None:
        print_roles(printer, self.roles, self.bodies)


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
