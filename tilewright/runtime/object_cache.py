"""Shared objects of the `cpu` backend, compiled once: the cache of cubins with another compiler behind it.

The key is the whole translation unit (the shim is a part of it), what the compiler calls itself, its options, and
Tilewright's version. Entries lie in the folder `cpu` of the cache folder.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from tilewright import __version__
from tilewright.runtime.cache_store import CacheStore
from tilewright.runtime.cubin_cache import CubinCache, default_directory
from tilewright.runtime.cxx import compile_shared, find_compiler
from tilewright.runtime.nvrtc import CompiledKernel


class ObjectCache(CubinCache):
    """One cache folder of shared objects with its memo."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, _compile, _identity)
        self.store = CacheStore(root, "unit.so", "unit.cpp")

    def _fields(self, source: str, arch: str, options: tuple[str, ...]) -> dict[str, Any]:
        compiler = find_compiler()
        return {
            "source_sha256": hashlib.sha256(source.encode()).hexdigest(),
            "arguments": [] if compiler is None else [*compiler.options, *options],
            "compiler": self._compiler_version(),
            "tilewright": __version__,
        }


def _compile(source: str, arch: str, options: tuple[str, ...]) -> CompiledKernel:
    return compile_shared(source, options)


def _identity() -> str | None:
    compiler = find_compiler()
    return None if compiler is None else compiler.identity


@cache
def _cache_at(root: Path) -> ObjectCache:
    return ObjectCache(root)


def default_cache() -> ObjectCache:
    """The cache in the folder that the environment names now; one object a folder."""
    return _cache_at(default_directory() / "cpu")


def load_or_compile(source: str, options: tuple[str, ...] = ()) -> CompiledKernel:
    """The shared object of a translation unit. Raises TilewrightError where it is not cached and cannot be compiled."""
    return default_cache().load_or_compile(source, "", options)
