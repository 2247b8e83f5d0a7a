"""Writing the result: a file is the old one or the whole new one, never half of it."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.source_text import one_line


def write_file(text: str, path: str) -> None:
    """Write `text` to the file at `path`: beside it first, then in its place in one step, with its permissions kept.

    What is no ordinary file (a pipe, /dev/null) is written as it is, and so is a file in a folder that takes no new
    ones. A symbolic link stays one. Raises TilewrightError if the file cannot be written; the old one is then intact.
    """
    try:
        _write(text.encode("utf-8"), Path(path))
    except (OSError, ValueError) as error:
        raise TilewrightError(f"cannot write '{one_line(path)}': {reason(error)}") from error


def reason(error: OSError | ValueError) -> str:
    """Return why a file operation failed, without the path that the message names already."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _write(data: bytes, path: Path) -> None:
    mode: int | None = None
    if path.exists():
        mode = path.stat().st_mode
        # A file that may not be written is not replaced either, though its folder would allow that. A pipe of the
        # shell, such as /dev/fd/63, is a link to a name that is no path.
        if not stat.S_ISREG(mode) or not os.access(path, os.W_OK):
            path.write_bytes(data)
            return
    target = Path(os.path.realpath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".tmp", dir=target.parent)
    except PermissionError:
        target.write_bytes(data)
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, stat.S_IMODE(mode) if mode is not None else 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
