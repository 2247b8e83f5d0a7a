"""Compile once: a memo in the process, a folder on disk behind it, NVRTC behind that.

The key is everything that can change the cubin: source, options, NVRTC's version, architecture, Tilewright's version
and the number of the interface between generated kernels and this runtime. The folder is `TILEWRIGHT_CACHE_DIR`, else
`$XDG_CACHE_HOME/tilewright`, else `~/.cache/tilewright`. A folder that cannot be written means that kernels are
compiled in each process anew, never an error; `stats()` says so.
"""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tilewright import __version__
from tilewright.diagnostics import TilewrightError, TilewrightWarning
from tilewright.runtime.cache_lock import held
from tilewright.runtime.cache_store import CacheStore, CorruptEntry, canonical
from tilewright.runtime.nvrtc import (
    CompiledKernel,
    command_line,
    compile_cubin,
    header_directory,
    nvrtc_unavailable_reason,
    nvrtc_version,
)

ABI = 1
"""Number of the interface between generated kernels and the runtime (parameter packing, names); raise it when an old
cubin would be called wrongly."""

Compiler = Callable[[str, str, tuple[str, ...]], CompiledKernel]


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What the cache holds and what this process has asked of it."""

    directory: Path
    entries: int
    bytes: int
    memo_hits: int
    disk_hits: int
    compiled: int
    corrupt: int
    uncached_reason: str | None
    """Why the folder is not used; None while it is."""


class CubinCache:
    """One cache folder with its memo. `compiler` and `compiler_version` are NVRTC's; tests put others in."""

    def __init__(
        self, root: Path, compiler: Compiler = compile_cubin, compiler_version: Callable[[], str | None] = nvrtc_version
    ) -> None:
        self.store = CacheStore(root)
        self._compiler = compiler
        self._compiler_version = compiler_version
        self._memo: dict[str, CompiledKernel] = {}
        self._memo_lock = threading.Lock()
        self._key_locks: dict[str, threading.Lock] = {}
        self._counts = {"memo_hits": 0, "disk_hits": 0, "compiled": 0, "corrupt": 0}
        self._uncached_reason: str | None = None
        self._prepared = False

    def load_or_compile(self, source: str, arch: str, options: tuple[str, ...] = ()) -> CompiledKernel:
        """The cubin of `source`, from the memo, the folder or the compiler, in this order. Errors are the compiler's;
        an entry that does not check out is deleted and compiled again, with one `TilewrightWarning`."""
        fields = self._fields(source, arch, options)
        key = hashlib.sha256(canonical(fields)).hexdigest()
        with self._memo_lock:
            found = self._memo.get(key)
            if found is not None:
                self._counts["memo_hits"] += 1  # under the memo's lock already
                return found
            key_lock = self._key_locks.setdefault(key, threading.Lock())
        with key_lock:  # of several threads that want one kernel, one compiles
            found = self._memo.get(key)
            if found is None:
                found = self._from_disk_or_compiler(key, fields, source, arch, options)
                with self._memo_lock:
                    self._memo[key] = found
                    self._key_locks.pop(key, None)
            return found

    def stats(self) -> CacheStats:
        """Entries and bytes in the folder; hits and compilations of this process."""
        keys = list(self.store.keys())
        size = sum(self.store.size(key) for key in keys)
        return CacheStats(self.store.root, len(keys), size, **self._counts, uncached_reason=self._uncached_reason)

    def verify(self) -> dict[str, str]:
        """Check every entry and delete those that do not check out: key to what was wrong."""
        wrong: dict[str, str] = {}
        for key in list(self.store.keys()):
            try:
                self.store.load(key)
            except CorruptEntry as problem:
                wrong[key] = str(problem)
                self.store.discard(key)
        self.store.sweep_staging()
        return wrong

    def clear(self) -> int:
        """Forget the memo and remove all entries; how many there were on disk."""
        with self._memo_lock:
            self._memo.clear()
        self._prepared = False
        return self.store.clear()

    def _fields(self, source: str, arch: str, options: tuple[str, ...]) -> dict[str, Any]:
        """What the key is made of. The include path counts by the headers' presence only: the folder may move."""
        arguments = [option for option in command_line(arch, options) if not option.startswith("--include-path=")]
        return {
            "source_sha256": hashlib.sha256(source.encode()).hexdigest(),
            "arguments": arguments,
            "headers": header_directory() is not None,
            "arch": arch,
            "compiler": self._compiler_version(),
            "tilewright": __version__,
            "abi": ABI,
        }

    def _from_disk_or_compiler(
        self, key: str, fields: dict[str, Any], source: str, arch: str, options: tuple[str, ...]
    ) -> CompiledKernel:
        if not self._usable():
            return self._compile(source, arch, options)
        found = self._load(key, fields)
        if found is not None:
            return found
        with held(self.store.lock_path(key), done=self.store.path(key).exists):
            # Whoever held the lock before may have made the entry.
            found = self._load(key, fields)
            if found is not None:
                return found
            compiled = self._compile(source, arch, options)
            try:
                self.store.publish(key, fields, source, compiled)
            except OSError as problem:
                self._uncached_reason = f"{self.store.root}: {problem.strerror or problem}"
            return compiled

    def _usable(self) -> bool:
        """Whether the folder is there and safe. Tried until it once was; an unsafe folder is warned of once."""
        if self._prepared:
            return True
        try:
            self.store.prepare()
            self.store.sweep_staging()
        except OSError as problem:
            self._uncached_reason = f"{self.store.root}: {problem.strerror or problem}"
            return False
        except TilewrightError as problem:
            if self._uncached_reason is None:
                warnings.warn(problem.message, TilewrightWarning, stacklevel=4)
            self._uncached_reason = problem.message
            return False
        self._prepared = True
        self._uncached_reason = None
        return True

    def _load(self, key: str, fields: dict[str, Any]) -> CompiledKernel | None:
        try:
            found = self.store.load(key, fields)
        except CorruptEntry as problem:
            self._count("corrupt")
            self.store.discard(key)
            warnings.warn(
                f"cache entry {key[:12]} in {self.store.root} is damaged ({problem}); compiled again",
                TilewrightWarning,
                stacklevel=5,
            )
            return None
        if found is not None:
            self._count("disk_hits")
        return found

    def _compile(self, source: str, arch: str, options: tuple[str, ...]) -> CompiledKernel:
        self._count("compiled")
        return self._compiler(source, arch, options)

    def _count(self, what: str) -> None:
        with self._memo_lock:
            self._counts[what] += 1


def default_directory() -> Path:
    """The cache folder that the environment names; see the module's text."""
    if chosen := os.environ.get("TILEWRIGHT_CACHE_DIR"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or ""
    # The XDG specification: a path that is not absolute is to be ignored.
    return (Path(base) if os.path.isabs(base) else Path("~/.cache").expanduser()) / "tilewright"


@cache
def _cache_at(root: Path) -> CubinCache:
    return CubinCache(root)


def default_cache() -> CubinCache:
    """The cache of the folder that the environment names now; one object a folder."""
    return _cache_at(default_directory())


def load_or_compile(source: str, arch: str, options: tuple[str, ...] = ()) -> CompiledKernel:
    """`CubinCache.load_or_compile` of the default cache. Raises `TilewrightError` where NVRTC is missing."""
    if (reason := nvrtc_unavailable_reason()) is not None:
        raise TilewrightError(reason)
    return default_cache().load_or_compile(source, arch, options)


def stats() -> CacheStats:
    """`CubinCache.stats` of the default cache."""
    return default_cache().stats()


def verify() -> dict[str, str]:
    """`CubinCache.verify` of the default cache."""
    return default_cache().verify()


def clear() -> int:
    """`CubinCache.clear` of the default cache."""
    return default_cache().clear()
