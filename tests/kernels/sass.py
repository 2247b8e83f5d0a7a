"""Machine code as it will run: which instructions a cubin holds, by nvdisasm; no GPU needed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tilewright.diagnostics import TilewrightError

REMEDY = "pip install 'tilewright[dev]' (nvidia-cuda-nvdisasm)"

_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+\{?\s*(?:@!?U?P[T0-9]+\s+)?([A-Z][A-Z0-9_]*(?:\.\w+)*)")
"""`/*01c0*/ @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;`: an address, maybe a predicate, the opcode."""
_NEVER = re.compile(r"\{?\s*@!PT\s.*")
"""What never runs: ptxas puts `@!PT LDS RZ, [RZ]` before asynchronous copies of sm_80, for the hardware's sake."""


@cache
def nvdisasm_path() -> str | None:
    """The disassembler of the wheel, else of a CUDA toolkit, else on PATH; None when there is none."""
    namespace = find_spec("nvidia")
    folders: list[Path] = []
    for root in (namespace.submodule_search_locations or ()) if namespace is not None else ():
        folders += sorted(Path(root).glob("cu[0-9]*/bin"), reverse=True)
    folders += [Path(home) / "bin" for key in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(key))]
    found = next((str(folder / "nvdisasm") for folder in folders if (folder / "nvdisasm").is_file()), None)
    return found or shutil.which("nvdisasm")


@cache
def nvdisasm_version() -> str:
    """What the disassembler says of itself; TilewrightError when there is none."""
    done = subprocess.run([_required(), "--version"], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip().splitlines()[-1]


def disassemble(cubin: bytes) -> str:
    """The listing of all functions of a cubin, one instruction a line. Takes half a second, most of it start-up."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([_required(), "-c", "-ndf", file.name], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise TilewrightError(f"nvdisasm cannot read the cubin: {' '.join(done.stderr.split())[:200]}")
    return done.stdout


def count_instructions(listing: str) -> Mapping[str, int]:
    """Opcode with its modifiers (`LDG.E.128.CONSTANT`) to how often it stands in the text. A loop counts once."""
    return Counter(_INSTRUCTION.findall(_NEVER.sub("", listing)))


def _required() -> str:
    path = nvdisasm_path()
    if path is None:
        raise TilewrightError(f"nvdisasm is not installed: {REMEDY}")
    return path
