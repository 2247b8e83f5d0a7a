"""Kernel parameters as the bytes that a launch takes.

Offsets follow the rule of C structs, which is also the driver's for parameters aligned to 16 bytes at most. With a
stricter one (a CUtensorMap, 64 bytes) the compiler counts from the start of the constant bank, where the parameters
begin at an address that is no multiple of 64; then the cubin alone knows, and `from_cubin` reads it there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilewright.diagnostics import TilewrightError

_FORMATS = {"i32": "i", "i64": "q", "f32": "f", "ptr": "Q"}

TENSOR_MAP_BYTES = 128
"""sizeof(CUtensorMap)."""

_SIZES = {"i32": 4, "i64": 8, "f32": 4, "ptr": 8, "tensor_map": TENSOR_MAP_BYTES}


@dataclass(frozen=True)
class ParameterLayout:
    """Kinds of a kernel's parameters, in order: `i32`, `i64`, `f32`, `ptr` and `tensor_map` (128 bytes), and the
    byte each one starts at."""

    kinds: tuple[str, ...]
    offsets: tuple[int, ...]

    @staticmethod
    def of(kinds: Sequence[str]) -> ParameterLayout:
        """The layout of parameters without a tensor map, from their kinds alone."""
        offsets: list[int] = []
        end = 0
        for kind in kinds:
            if kind not in _FORMATS:
                raise TilewrightError(f"kernel parameter: expected one of {', '.join(_FORMATS)}, got {kind!r}")
            start = -(-end // _SIZES[kind]) * _SIZES[kind]
            offsets.append(start)
            end = start + _SIZES[kind]
        return ParameterLayout(tuple(kinds), tuple(offsets))

    @staticmethod
    def from_cubin(cubin: bytes, kernel: str, kinds: Sequence[str]) -> ParameterLayout:
        """The layout that a kernel of a cubin was compiled with; an error where the kinds do not fit its sizes."""
        found = parameter_places(cubin).get(kernel)
        if found is None:
            raise TilewrightError(f"kernel {kernel!r}: expected it in the cubin, got {sorted(parameter_places(cubin))}")
        sizes = tuple(size for _, size in found)
        wanted = tuple(_SIZES.get(kind, 0) for kind in kinds)
        if sizes != wanted:
            raise TilewrightError(f"kernel {kernel!r}: expected parameters of {wanted} bytes, got {sizes}")
        return ParameterLayout(tuple(kinds), tuple(offset for offset, _ in found))

    @cached_property
    def packer(self) -> struct.Struct:
        """The layout as one `struct.Struct`: native byte order, gaps filled with zeros; a tensor map is 128 bytes."""
        text = "="
        end = 0
        for kind, offset in zip(self.kinds, self.offsets, strict=True):
            if offset > end:
                text += f"{offset - end}x"
            text += _FORMATS.get(kind, f"{TENSOR_MAP_BYTES}s")
            end = offset + _SIZES[kind]
        return struct.Struct(text)

    def pack(self, values: Sequence[Any]) -> bytes:
        """The bytes of one launch. Raises `TilewrightError` for a number that its parameter cannot hold."""
        try:
            return self.packer.pack(*values)
        except struct.error as problem:
            raise TilewrightError(
                f"kernel parameters: expected values of ({', '.join(self.kinds)}), got {tuple(values)}: {problem}"
            ) from None


_KPARAM_INFO = 0x17
"""EIATTR_KPARAM_INFO: index u32, ordinal u16, offset u16, flags u32 with the size from bit 18 on."""

_HAS_PAYLOAD = 0x04
"""EIFMT_SVAL: the attribute's value is a length, and that many bytes follow."""


def parameter_places(cubin: bytes) -> dict[str, tuple[tuple[int, int], ...]]:
    """Kernel name to (offset, size in bytes) of each parameter, from the `.nv.info.<kernel>` sections of a cubin.
    Raises `TilewrightError` for what is no 64-bit ELF."""
    if cubin[:5] != b"\x7fELF\x02":
        raise TilewrightError(f"cubin: expected a 64-bit ELF, got {len(cubin)} bytes that start with {cubin[:5]!r}")
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for section, content in _sections(cubin):
        if section.startswith(".nv.info."):
            places = [
                (ordinal, offset, flags >> 18)
                for _, ordinal, offset, flags in (
                    struct.unpack("<IHHI", payload) for kind, payload in _attributes(content) if kind == _KPARAM_INFO
                )
            ]
            found[section.removeprefix(".nv.info.")] = tuple((offset, size) for _, offset, size in sorted(places))
    return found


def _sections(elf: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of each ELF section (e_shoff at 0x28; e_shentsize, e_shnum, e_shstrndx from 0x3a)."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_bytes, count, names_index = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + number * entry_bytes) for number in range(count)]
    names = headers[names_index][4] if headers else 0
    for name, kind, _, _, start, size in headers:
        text = elf[names + name : elf.index(b"\0", names + name)].decode()
        # SHT_NOBITS (8): shared memory and the like take no bytes in the file.
        yield text, b"" if kind == 8 else elf[start : start + size]


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    """(attribute, payload) of an `.nv.info` section: format u8, attribute u8, value or length u16, payload."""
    at = 0
    while at + 4 <= len(content):
        form, attribute, value = struct.unpack_from("<BBH", content, at)
        at += 4
        length = value if form == _HAS_PAYLOAD else 0
        yield attribute, content[at : at + length]
        at += length
