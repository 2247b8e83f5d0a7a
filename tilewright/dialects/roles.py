"""Roles: groups of warpgroups of a block that run code of their own. How `tile.roles` and `simt.roles` are written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, Block, Region
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.assembly import int_array, ints

CLUSTERS = (2, 4, 8)
"""Blocks that a cluster may have (PTX ISA 8.0, .reqnctapercluster: 8 at most are portable)."""
WARPGROUP = 128
"""Threads of a warpgroup: four warps, the first of which has a number that four divides."""
MOST_WARPGROUPS = 1024 // WARPGROUP
"""Warpgroups of a block of 1024 threads, which is the largest (CUDA C++ Programming Guide, compute capabilities)."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


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


def role_properties(roles: Sequence[Role]) -> dict[str, Attribute]:
    """The properties that hold the roles of an op, one for each of its regions."""
    return {
        "names": ArrayAttr([StringAttr(r.name) for r in roles]),
        "bounds": int_array([n for r in roles for n in (r.first, r.last)]),
        "registers": int_array([r.registers for r in roles]),
    }


def roles_of(
    names: ArrayAttr[StringAttr], bounds: ArrayAttr[IntAttr], registers: ArrayAttr[IntAttr]
) -> tuple[Role, ...]:
    """What `role_properties` made."""
    limits = ints(bounds)
    return tuple(
        Role(name.data, limits[2 * n], limits[2 * n + 1], count)
        for n, (name, count) in enumerate(zip(names.data, ints(registers), strict=True))
    )


def verify_roles(roles: Sequence[Role]) -> None:
    """Raise VerifyException unless the roles are ranges of warpgroups that do not meet, with legal register counts."""
    taken: set[int] = set()
    for role in roles:
        if _NAME.fullmatch(role.name) is None:
            raise VerifyException(f"expected a role's name to be a word of letters, digits and _, got {role.name!r}")
        if not 0 <= role.first < role.last <= MOST_WARPGROUPS:
            raise VerifyException(
                f"role {role.name}: expected warpgroups [first, past last] within [0, {MOST_WARPGROUPS}],"
                f" got [{role.first}, {role.last}]"
            )
        own = set(range(role.first, role.last))
        if taken & own:
            raise VerifyException(f"role {role.name}: warpgroup {min(taken & own)} has a role already")
        taken |= own
        if role.registers and (role.registers % 8 or not 24 <= role.registers <= 256):
            raise VerifyException(
                f"role {role.name}: expected a multiple of 8 registers from 24 to 256, got {role.registers}"
            )


def parse_roles(parser: Parser) -> tuple[list[Role], list[Region]]:
    """`{ role consumer warpgroups [0, 2] registers 240 {...} role producer warpgroups [2, 3] {...} }`."""
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
        body = parser.parse_region()
        if not body.blocks:
            body.add_block(Block())
        bodies.append(body)
    parser.parse_punctuation("}")
    return roles, bodies


def print_roles(printer: Printer, roles: Sequence[Role], bodies: Sequence[Region]) -> None:
    """Prints what `parse_roles` reads, with a leading space."""
    printer.print_string(" {")
    with printer.indented():
        for role, body in zip(roles, bodies, strict=True):
            printer.print_string("\n")
            printer.print_string(f"role {role.name} warpgroups [{role.first}, {role.last}]")
            if role.registers:
                printer.print_string(f" registers {role.registers}")
            printer.print_string(" ")
            printer.print_region(body, print_empty_block=False)
    printer.print_string("\n}")
