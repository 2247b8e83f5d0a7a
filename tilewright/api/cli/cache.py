"""`tilewright cache stats|verify|clear`."""

from __future__ import annotations

from tilewright.api.cli.arguments import CliArguments
from tilewright.api.diagnostics_cli import FAILURE, Console
from tilewright.runtime import cubin_cache


def execute(console: Console, arguments: CliArguments) -> int:
    """Do it and print what was found; `verify` exits with 1 where entries were damaged (they are deleted)."""
    lines: list[str] = []
    code = 0
    if arguments.action == "clear":
        lines.append(f"removed {cubin_cache.clear()} entries from {cubin_cache.default_directory()}")
    elif arguments.action == "verify":
        wrong = cubin_cache.verify()
        lines += [f"{key}: {reason} (deleted)" for key, reason in wrong.items()]
        lines.append(f"{len(wrong)} damaged, {cubin_cache.stats().entries} good")
        code = FAILURE if wrong else 0
    else:
        stats = cubin_cache.stats()
        lines += [f"folder   {stats.directory}", f"entries  {stats.entries}", f"bytes    {stats.bytes}"]
        if stats.uncached_reason is not None:
            lines.append(f"not used {stats.uncached_reason}")
    console.write_result("\n".join(lines) + "\n", "-")
    return code
