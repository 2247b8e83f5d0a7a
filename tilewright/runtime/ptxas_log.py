"""What ptxas says about each kernel it assembled: registers, stack, spills, static shared memory.

The input is the log of a compilation with `--ptxas-options=-v`, of which a kernel's part reads

    ptxas info    : Compiling entry function 'k' for 'sm_90a'
    ptxas info    : Function properties for k
    ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
    ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes: registers a thread, bytes a thread of stack and spill traffic, bytes a block of smem."""

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_smem_bytes: int


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SMEM = re.compile(r"(\d+) bytes smem")


def parse_ptxas_log(log: str) -> dict[str, Resources]:
    """Kernel name, mangled as in the cubin, to its resources; functions that were not inlined are left out."""
    found: dict[str, Resources] = {}
    entry: str | None = None
    described: str | None = None
    frame = (0, 0, 0)
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry, described, frame = match[1], None, (0, 0, 0)
        elif match := _PROPERTIES.search(line):
            described = match[1]
        elif match := _FRAME.search(line):
            # A device function that was not inlined prints its own frame; only the entry's counts here.
            if described == entry:
                frame = (int(match[1]), int(match[2]), int(match[3]))
        elif (match := _USED.search(line)) and entry is not None:
            smem = _SMEM.search(line)
            found[entry] = Resources(int(match[1]), *frame, int(smem[1]) if smem else 0)
            entry = None
    return found
