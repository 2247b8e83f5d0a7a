"""A family compiled and checked, each step kept on disk: lowered kernels, cubins, instruction counts.

    lowered/<hash of Tilewright's own files, the program>.json   kernels, sources, promises
    v1/...                                                       cubins and logs: `tilewright.runtime.cubin_cache`
    sass/<hash of the cubin, the disassembler>.json              opcode to count

A changed file of Tilewright lowers all again, in seconds; a source that comes out the same is not compiled again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import tilewright
from tests.kernels import promises as promises_module
from tests.kernels.checks import Evidence, Finding, run_checks
from tests.kernels.families import Family
from tests.kernels.promises import Promises, promises_of
from tests.kernels.sass import count_instructions, disassemble, nvdisasm_version
from tilewright.lowering.simt_to_cuda import emit_kernel, kernel_symbol
from tilewright.runtime.cubin_cache import CubinCache, default_directory

ARCHITECTURES = ("sm_80", "sm_90a")


@dataclass(frozen=True)
class Variant:
    """One variant of a kernel, ready to be compiled."""

    kernel: str
    variant: str
    symbol: str
    source: str
    promises: Promises


@dataclass(frozen=True)
class Row:
    """A line of the table: one variant for one architecture."""

    family: str
    kernel: str
    variant: str
    arch: str
    registers: int
    smem: int
    spills: int
    checks: list[str]
    findings: list[Finding] = field(default_factory=list[Finding])


def lowered(family: Family) -> list[Variant]:
    """All variants of a family's kernels, made anew."""
    # What a variant is lowered to, source included, does not depend on the architecture yet.
    return [
        Variant(
            each.kernel,
            each.variant,
            kernel_symbol(each.op),
            emit_kernel(each.op, family.arch or "sm_80"),
            promises_of(each.op),
        )
        for each in family.lower()
    ]


class Workshop:
    """Lowers, compiles, disassembles and checks, with one folder to keep things in."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = default_directory() / "check-kernels" if root is None else root
        self.cubins = CubinCache(self.root)

    def variants(self, family: Family) -> list[Variant]:
        """All variants of a family's kernels."""
        path = self._path("lowered", package_digest(), family.name, family.text())
        kept = _read(path)
        if kept is None:
            kept = [{**vars(each), "promises": each.promises.as_json()} for each in lowered(family)]
            _write(path, kept)
        return [Variant(**{**each, "promises": Promises.from_json(each["promises"])}) for each in kept]

    def evidence(
        self, family: str, variant: Variant, arch: str, with_sass: bool, options: tuple[str, ...] = ()
    ) -> Evidence:
        """What compiling a variant shows, and disassembling it if so wished. Compiler errors are `CompileError`."""
        compiled = self.cubins.load_or_compile(variant.source, arch, options)
        return Evidence(
            family,
            variant.kernel,
            variant.variant,
            arch,
            variant.promises,
            compiled.resources[variant.symbol],
            compiled.log,
            self.instructions(compiled.cubin) if with_sass else None,
        )

    def instructions(self, cubin: bytes) -> dict[str, int]:
        """Opcode to count."""
        path = self._path("sass", hashlib.sha256(cubin).hexdigest(), nvdisasm_version())
        kept = _read(path)
        if kept is None:
            kept = dict(count_instructions(disassemble(cubin)))
            _write(path, kept)
        return kept

    def check(self, family: Family, architectures: Iterable[str] = ARCHITECTURES, all_sass: bool = False) -> list[Row]:
        """Compile all variants of a family for all architectures and check them. The machine code is read of each
        variant for one architecture, in turn; with `all_sass` for all."""
        rows: list[Row] = []
        targets = [arch for arch in architectures if family.arch in (None, arch)]
        for n, variant in enumerate(self.variants(family)):
            for k, arch in enumerate(targets):
                with_sass = all_sass or k == n % len(targets)
                found = self.evidence(family.name, variant, arch, with_sass)
                used, (checks, findings) = found.resources, run_checks(found)
                spilled = used.spill_store_bytes + used.spill_load_bytes
                smem = variant.promises.smem + used.static_smem_bytes
                rows.append(
                    Row(
                        family.name,
                        variant.kernel,
                        variant.variant,
                        arch,
                        used.registers,
                        smem,
                        spilled,
                        checks,
                        findings,
                    )
                )
        return rows

    def _path(self, kind: str, *parts: str) -> Path:
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return self.root / kind / key[:2] / f"{key}.json"


@cache
def package_digest() -> str:
    """The hash of everything that lowering reads: Tilewright's files, and the module that reads promises."""
    package = Path(tilewright.__file__).parent
    files = sorted(path for pattern in ("*.py", "*.cuh") for path in package.rglob(pattern))
    digest = hashlib.sha256()
    for path in (*files, Path(promises_module.__file__)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _read(path: Path) -> Any:
    """What was kept, None when nothing readable was."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write(path: Path, value: Any) -> None:
    """Keep a value; another process that keeps the same at the same time does no harm."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_suffix(f".{os.getpid()}")
    staged.write_text(json.dumps(value), encoding="utf-8")
    staged.replace(path)
