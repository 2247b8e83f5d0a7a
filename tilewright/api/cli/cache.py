"""`tilewright cache stats|verify|clear`."""

from __future__ import annotations

from tilewright.api.cli.arguments import CliArguments
from tilewright.api.diagnostics_cli import FAILURE, Console
from tilewright.runtime import cubin_cache, object_cache


def execute(console: Console, arguments: CliArguments) -> int:
    """Do it and print what was found; `verify` exits with 1 where entries were damaged (they are deleted)."""
    lines: list[str] = []
    code = 0
    caches = (cubin_cache.default_cache(), object_cache.default_cache())
    if arguments.action == "clear":
        removed = sum(each.clear() for each in caches)
        lines.append(f"removed {removed} entries from {cubin_cache.default_directory()}")
    elif arguments.action == "verify":
        wrong = {key: reason for each in caches for key, reason in each.verify().items()}
        lines += [f"{key}: {reason} (deleted)" for key, reason in wrong.items()]
        lines.append(f"{len(wrong)} damaged, {sum(each.stats().entries for each in caches)} good")
        code = FAILURE if wrong else 0
    else:
        cubins, objects = (each.stats() for each in caches)
        lines += [
            f"folder   {cubins.directory}",
            f"entries  {cubins.entries + objects.entries}",
            f"bytes    {cubins.bytes + objects.bytes}",
        ]
        if cubins.uncached_reason is not None:
            lines.append(f"not used {cubins.uncached_reason}")
    console.write_result("\n".join(lines) + "\n", "-")
    return code
