"""The promises of `tests.kernels.promises`, each held to what ptxas and the machine code say: one small check each.

A check yields one line for each thing that is not as promised: expected and got, with the op where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tests.kernels.promises import Promises
from tilewright.runtime.ptxas_log import Resources

REGISTER_FILE = 65536
"""Registers of a multiprocessor, compute capability 8.0 and 9.0 (CUDA C++ Programming Guide, technical
specifications)."""
MOST_REGISTERS = 255
"""Of a thread (the same table)."""
MOST_SHARED = {"sm_80": 163 * 1024, "sm_90a": 227 * 1024}
"""Bytes of shared memory that a block may have (the same table)."""
WARP_GRANULE = 256
"""Registers are handed out to warps in units of 256, so 8 a thread (CUDA occupancy calculator, 8.0 and 9.0)."""


@dataclass(frozen=True)
class Evidence:
    """One compiled variant of a kernel: what it promises, and what was found."""

    family: str
    kernel: str
    variant: str
    arch: str
    promises: Promises
    resources: Resources
    log: str
    instructions: Mapping[str, int] | None = None
    """Opcode to how often it occurs; None where the cubin was not disassembled."""


@dataclass(frozen=True)
class Finding:
    """A promise that is not kept."""

    family: str
    kernel: str
    variant: str
    arch: str
    check: str
    message: str

    def __str__(self) -> str:
        return f"{self.family}: {self.kernel}/{self.variant} {self.arch}: {self.check}: {self.message}"


Check = Callable[[Evidence], Iterator[str]]


def run_checks(evidence: Evidence) -> tuple[list[str], list[Finding]]:
    """The names of the checks that were made, those of machine code only where there is some, and what they found."""
    checks = {**LOG_CHECKS, **(SASS_CHECKS if evidence.instructions is not None else {})}
    e = evidence
    found = [
        Finding(e.family, e.kernel, e.variant, e.arch, name, message)
        for name, check in checks.items()
        for message in check(e)
    ]
    return list(checks), found


# ---- What ptxas says ------------------------------------------------------------------------------------------------


def stack(e: Evidence) -> Iterator[str]:
    """No thread has memory of its own: register arrays are registers."""
    if e.resources.stack_bytes:
        yield f"expected 0 bytes of stack, got {e.resources.stack_bytes}"


def spills(e: Evidence) -> Iterator[str]:
    """Registers suffice."""
    stored, loaded = e.resources.spill_store_bytes, e.resources.spill_load_bytes
    if stored or loaded:
        used = e.resources.registers
        yield f"expected 0 bytes spilled, got {stored} stored and {loaded} loaded at {used} registers"


def registers(e: Evidence) -> Iterator[str]:
    """A block of the threads that the schedule has fits into a multiprocessor."""
    used, threads = e.resources.registers, e.promises.threads
    granule = WARP_GRANULE // 32
    if used > MOST_REGISTERS or -(-used // granule) * granule * threads > REGISTER_FILE:
        most = min(MOST_REGISTERS, REGISTER_FILE // threads)
        yield f"expected at most {most} registers for {threads} threads, got {used}"


def shared_memory(e: Evidence) -> Iterator[str]:
    """A block has the bytes that the kernel asks for, no others, and every array lies within them."""
    static = e.resources.static_smem_bytes
    if static:
        yield f"expected 0 bytes beside the {e.promises.smem} that a launch asks for, got {static}"
    if e.promises.smem > MOST_SHARED[e.arch]:
        yield f"expected at most {MOST_SHARED[e.arch]} bytes, got {e.promises.smem}"
    for array in e.promises.arrays:
        if array.offset + array.bytes > e.promises.smem:
            end = array.offset + array.bytes
            yield f"{array.text}: expected an end within {e.promises.smem} bytes, got {end}"


_SERIALISED = re.compile(r"^.*\(C751\d\).*$", re.MULTILINE)


def serialised(e: Evidence) -> Iterator[str]:
    """ptxas has not made asynchronous products wait for each other, which it says in messages C7510 to C7519."""
    for line in _SERIALISED.findall(e.log):
        yield f"expected no message C7510 to C7519, got '{' '.join(line.split())}'"


_WARNING = re.compile(r"^.*\bwarning\b.*$", re.MULTILINE | re.IGNORECASE)


def warnings(e: Evidence) -> Iterator[str]:
    """Neither NVRTC nor ptxas warns."""
    for line in _WARNING.findall(e.log):
        yield f"expected no warning, got '{' '.join(line.split())}'"


# ---- What the machine code holds ------------------------------------------------------------------------------------

_SPACES = {"LDG": ("load", "global"), "STG": ("store", "global"), "LDS": ("load", "shared"), "STS": ("store", "shared")}
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


def accesses(instructions: Mapping[str, int]) -> dict[tuple[str, str, int], int]:
    """(load or store, global or shared, bytes) to the number of such instructions."""
    found: dict[tuple[str, str, int], int] = {}
    for opcode, count in instructions.items():
        head, *modifiers = opcode.split(".")
        if head in _SPACES:
            key = (*_SPACES[head], next((_BYTES[m] for m in modifiers if m in _BYTES), 4))
            found[key] = found.get(key, 0) + count
    return found


def global_width(e: Evidence) -> Iterator[str]:
    """Each access to global memory is made in instructions of its width, at least one for each op."""
    assert e.instructions is not None
    found = accesses(e.instructions)
    wanted: dict[tuple[str, str, int], list[str]] = {}
    for access in e.promises.accesses:
        if access.space == "global":
            wanted.setdefault((access.kind, access.space, access.bytes), []).append(access.text)
    for key, ops in wanted.items():
        if found.get(key, 0) < len(ops):
            others = sorted(b for kind, space, b in found if (kind, space) == key[:2])
            yield (
                f"{ops[0]}: expected at least {len(ops)} global {key[0]}s of {key[2]} bytes, got {found.get(key, 0)}"
                f" (there are those of {', '.join(map(str, others)) or 'none'})"
            )


def global_unnamed(e: Evidence) -> Iterator[str]:
    """No access to global memory has a width that no op has: general variants hold no vectors, and nothing is split."""
    assert e.instructions is not None
    named = {(a.kind, a.space, a.bytes) for a in e.promises.accesses}
    for key, count in sorted(accesses(e.instructions).items()):
        if key[1] == "global" and key not in named:
            yield f"expected no global {key[0]} of {key[2]} bytes, as no op has one, got {count}"


def shared_width(e: Evidence) -> Iterator[str]:
    """Each access to shared memory is made in instructions of its width, or of more: neighbours may be joined, since
    the alignment of shared memory is known."""
    assert e.instructions is not None
    found = accesses(e.instructions)
    for access in e.promises.accesses:
        widths = sorted(b for kind, space, b in found if (kind, space) == (access.kind, access.space))
        if access.space == "shared" and (not widths or widths[-1] < access.bytes):
            got = ", ".join(map(str, widths)) or "none"
            yield f"{access.text}: expected a shared {access.kind} of {access.bytes} bytes or more, got those of {got}"


def shared_unnamed(e: Evidence) -> Iterator[str]:
    """Shared memory is not touched where no op does."""
    assert e.instructions is not None
    named = {(a.kind, a.space) for a in e.promises.accesses}
    for key, count in sorted(accesses(e.instructions).items()):
        if key[1] == "shared" and key[:2] not in named:
            yield f"expected no shared {key[0]}, as no op is one, got {count}"


def local_memory(e: Evidence) -> Iterator[str]:
    """No load or store of a thread's own memory."""
    yield from _none_of(e, ("LDL", "STL"), "access to local memory")


def generic_addresses(e: Evidence) -> Iterator[str]:
    """The compiler has not lost track of which memory a pointer points into."""
    yield from _none_of(e, ("LD", "ST"), "access through a generic address")


_OTHER_MEMORY = re.compile(r"(?:ATOM|RED|LDGSTS|LDSM|STSM|UTMA|UBLKCP|TEX|SULD|SUST|SYNCS).*")


def special(e: Evidence) -> Iterator[str]:
    """An op that is an instruction of its own, such as a matrix product or a tensor map's copy, is there."""
    assert e.instructions is not None
    heads = {opcode.split(".")[0] for opcode in e.instructions}
    for head, op in e.promises.instructions.items():
        if head not in heads:
            yield f"{op}: expected {head}, got none"


def other_memory(e: Evidence) -> Iterator[str]:
    """No atomic, asynchronous or matrix access that no op asks for."""
    assert e.instructions is not None
    for opcode, count in sorted(e.instructions.items()):
        if _OTHER_MEMORY.fullmatch(opcode) and opcode.split(".")[0] not in e.promises.instructions:
            yield f"expected no {opcode}, as no op asks for one, got {count}"


def barriers(e: Evidence) -> Iterator[str]:
    """BAR.SYNC where the IR has a barrier, at least one for each, and none elsewhere."""
    assert e.instructions is not None
    found = sum(count for opcode, count in e.instructions.items() if opcode.startswith("BAR."))
    if found < e.promises.barriers:
        yield f"simt.barrier: expected at least {e.promises.barriers} BAR.SYNC, got {found}"
    elif found and not e.promises.barriers:
        yield f"expected no barrier, as the IR has none, got {found}"


_SHUFFLES = {"xor": "SHFL.BFLY", "down": "SHFL.DOWN", "index": "SHFL.IDX"}


def shuffles(e: Evidence) -> Iterator[str]:
    """SHFL in the modes that the IR has, and in no others."""
    assert e.instructions is not None
    for mode, opcode in _SHUFFLES.items():
        found = sum(count for each, count in e.instructions.items() if each.startswith(opcode))
        if mode in e.promises.shuffles and not found:
            yield f"{e.promises.shuffles[mode]}: expected {opcode}, got none"
        elif found and mode not in e.promises.shuffles:
            yield f"expected no {opcode}, as no op shuffles by {mode}, got {found}"


_FUSED = {"f16": r"HFMA2(?!.*BF16).*", "bf16": r"HFMA2.*\.BF16.*", "f32": r"FFMA.*", "f64": r"DFMA.*"}


def fused(e: Evidence) -> Iterator[str]:
    """A fused multiply-add is one instruction."""
    assert e.instructions is not None
    for element, text in e.promises.fused.items():
        if not any(re.fullmatch(_FUSED[element], opcode) for opcode in e.instructions):
            yield f"{text}: expected a fused multiply-add of {element}, got none"


def contraction(e: Evidence) -> Iterator[str]:
    """Products and sums round one by one where the IR has no fused multiply-add, nor what a compiler makes of some."""
    if not e.promises.fused and not e.promises.expands:
        yield from _none_of(e, ("FFMA", "DFMA"), "fused multiply-add")


def _none_of(e: Evidence, heads: tuple[str, ...], what: str) -> Iterator[str]:
    assert e.instructions is not None
    for opcode, count in sorted(e.instructions.items()):
        if opcode.split(".")[0] in heads:
            yield f"expected no {what}, got {count} {opcode}"


LOG_CHECKS: dict[str, Check] = {
    "stack": stack,
    "spills": spills,
    "registers": registers,
    "shared-memory": shared_memory,
    "serialised": serialised,
    "warnings": warnings,
}
"""What needs the log of the compilation only."""

SASS_CHECKS: dict[str, Check] = {
    "global-width": global_width,
    "global-unnamed": global_unnamed,
    "shared-width": shared_width,
    "shared-unnamed": shared_unnamed,
    "local-memory": local_memory,
    "generic-addresses": generic_addresses,
    "other-memory": other_memory,
    "barriers": barriers,
    "shuffles": shuffles,
    "special-instructions": special,
    "fused": fused,
    "contraction": contraction,
}
"""What needs a disassembly."""
