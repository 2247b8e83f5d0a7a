"""`tilewright compile`: everything that a call needs, made ahead of time, in a folder with a manifest."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import tilewright
from tilewright.api.cli.arguments import CliArguments
from tilewright.api.cli.program import read_program
from tilewright.api.diagnostics_cli import Console
from tilewright.diagnostics import TilewrightError
from tilewright.lowering.simt_to_cuda import emit_kernel, kernel_symbol
from tilewright.runtime.backends.select import choose
from tilewright.runtime.cubin_cache import load_or_compile
from tilewright.runtime.nvrtc import nvrtc_version
from tilewright.runtime.variants import CompiledEntry

FORMAT = 1
"""Number of the folder's layout."""


def execute(console: Console, arguments: CliArguments) -> int:
    """Write plan.mlir, one .cu and one .cubin a variant, and manifest.json with the sha256 of each."""
    module, function = read_program(console, arguments)
    arch = choose("sim", arguments.arch).arch
    entry = CompiledEntry(module, function.sym_name.data, arch)
    files: dict[str, bytes] = {"plan.mlir": f"{entry.ir('host')}\n".encode()}
    kernels: list[dict[str, Any]] = []
    for site in entry.sites.values():
        lowered = entry.lower(site)
        source = emit_kernel(lowered.kernel, arch)
        symbol = kernel_symbol(lowered.kernel)
        stem = _stem(lowered.name, symbol)
        described: dict[str, Any] = {
            "kernel": site.kernel,
            "variant": site.variant,
            "symbol": symbol,
            "source": f"{stem}.cu",
            "threads": lowered.kernel.threads.value.data,
            "smem_bytes": lowered.kernel.smem.value.data,
            "grid": str(site.grid),
            "index_width": site.index_width,
            "assumes": [str(r) for r in site.assumes],
            "params": [str(p.data) for p in lowered.kernel.params.data],
        }
        files[f"{stem}.cu"] = source.encode()
        if not arguments.source_only:
            compiled = load_or_compile(source, arch)  # those that share their code find it in the cache
            files[f"{stem}.cubin"] = compiled.cubin
            described["cubin"] = f"{stem}.cubin"
            used = compiled.resources.get(described["symbol"])
            if used is not None:
                described["registers"] = used.registers
                described["spill_bytes"] = used.spill_store_bytes + used.spill_load_bytes
                described["stack_bytes"] = used.stack_bytes
        kernels.append(described)
    manifest = {
        "format": FORMAT,
        "tilewright": tilewright.__version__,
        "entry": entry.entry,
        "arch": arch,
        "compiler": None if arguments.source_only else f"NVRTC {nvrtc_version()}",
        "kernels": kernels,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    files["manifest.json"] = (json.dumps(manifest, indent=2) + "\n").encode()
    assert arguments.output is not None  # argparse requires it
    _write(Path(arguments.output), files)
    console.write_result(f"wrote {len(files)} files to {arguments.output}\n", "-")
    return 0


def _stem(name: str, symbol: str) -> str:
    """Return the name of a kernel's files: its own, or its symbol in CUDA where its own is no plain file name.

    Names are the program's: `@"../../x"` must not leave the folder, nor 10,000 letters be refused by the disk.
    """
    return name if re.fullmatch(r"[A-Za-z0-9_]{1,100}", name, re.ASCII) else symbol


def _write(folder: Path, files: dict[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
    except OSError as problem:
        raise TilewrightError(f"cannot write to '{folder}': {problem.strerror or problem}") from None
