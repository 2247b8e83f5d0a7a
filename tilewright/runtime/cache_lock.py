"""A lock file, so that of many processes that want one cache entry only one makes it.

The lock is an economy, not what makes the cache right: entries are published by one rename, so a process that cannot
get or keep the lock does the work once more and nothing breaks. No caller waits longer than `patience` seconds.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

POLL_SECONDS = 0.02


@contextmanager
def held(
    path: Path, *, stale_seconds: float = 60.0, patience: float = 120.0, done: Callable[[], bool] = lambda: False
) -> Generator[bool]:
    """Hold the lock file `path` while the block runs; yields whether it is held.

    Waits until the file can be created; a file older than `stale_seconds`, or made on this host by a process that
    is no more, is taken over. Yields False, without the lock, once `done()` says that the work it guards is there,
    after `patience` seconds, or where the file cannot be made at all (read-only or full disk).
    """
    token = f"{socket.gethostname()} {os.getpid()} {time.monotonic_ns()}\n"
    mine = _acquire(path, token, stale_seconds, patience, done)
    try:
        yield mine
    finally:
        if mine:
            _release(path, token)


def _acquire(path: Path, token: str, stale_seconds: float, patience: float, done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + patience
    while True:
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            if _is_stale(path, stale_seconds):
                _discard(path)
                continue
            if done() or time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        except OSError:
            return False
        else:
            try:
                os.write(descriptor, token.encode())
            except OSError:  # a full disk: an empty lock file is as good, until it is stale
                pass
            finally:
                os.close(descriptor)
            return True


def _is_stale(path: Path, stale_seconds: float) -> bool:
    """Whether the holder is gone. An unreadable or empty file (just made, or by a full disk) goes by its age."""
    try:
        age = time.time() - path.stat().st_mtime
        host, process, _ = path.read_text().split()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return _age(path) > stale_seconds
    return age > stale_seconds or (host == socket.gethostname() and not _is_alive(int(process)))


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists and is another user's
        return True
    return True


def _release(path: Path, token: str) -> None:
    """Remove the lock if it is still this holder's; one that was taken over as stale belongs to somebody else."""
    with suppress(OSError):
        if path.read_text() in (token, ""):
            _discard(path)


def _discard(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
