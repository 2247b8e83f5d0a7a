"""Cache entries on disk: how one is written, found, checked and removed.

    <root>/v1/ab/abcdef.../manifest.json   format, key fields, sizes and sha256 of the files, resources, own checksum
                          kernel.cubin     or what the store's kind of compiler makes
                          kernel.cu        the source, for people; not read back
    <root>/v1/staging/<key>_<pid>_<random>  an entry while it is written
    <root>/v1/locks/<key>.lock

An entry is staged as a whole and published by one rename of its folder, so a reader sees all of it or nothing. Each
load checks sizes and hashes. Nothing is unpickled: files are JSON, binary and text.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.nvrtc import CompiledKernel
from tilewright.runtime.ptxas_log import Resources

FORMAT = "v1"
"""Name of the layout above; a new layout gets a new folder and leaves the old one alone."""

STAGING_LEFTOVER_SECONDS = 3600.0
"""A staged entry older than this was left by a process that died."""


class CorruptEntry(Exception):
    """An entry that is not what its manifest says, or has no readable manifest."""


class CacheStore:
    """The folder `root` as a set of entries. Methods raise `OSError` where the disk does not allow what they do."""

    def __init__(self, root: Path, binary: str = "kernel.cubin", text: str = "kernel.cu") -> None:
        self.root = root
        self.binary = binary
        """Name of the file with what the compiler made."""
        self.text = text
        """Name of the file with the source."""
        self.entries = root / FORMAT
        self.staging = self.entries / "staging"
        self.locks = self.entries / "locks"

    def prepare(self) -> None:
        """Make the folders, for this user alone (0700). Raises `TilewrightError` when somebody else could have put
        entries there: a cubin from such a folder is foreign code."""
        for folder in (self.root, self.entries, self.staging, self.locks):
            folder.mkdir(mode=0o700, parents=folder is self.root, exist_ok=True)
            refuse_unsafe(folder)

    def lock_path(self, key: str) -> Path:
        """The file whose existence says that some process is compiling `key`."""
        return self.locks / f"{key}.lock"

    def path(self, key: str) -> Path:
        """The folder of the entry `key`, whether or not it is there."""
        return self.entries / key[:2] / key

    def publish(self, key: str, fields: Mapping[str, Any], source: str, compiled: CompiledKernel) -> bool:
        """Write an entry; False when another process had published it meanwhile, or its place cannot be taken."""
        staged = self.staging / f"{key}_{os.getpid()}_{uuid.uuid4().hex}"
        staged.mkdir(mode=0o700)
        try:
            files = {self.binary: compiled.cubin, self.text: source.encode()}
            for name, data in files.items():
                _write(staged / name, data)
            manifest: dict[str, Any] = {
                "format": FORMAT,
                "key": key,
                "fields": dict(fields),
                "files": {name: {"size": len(data), "sha256": _sha256(data)} for name, data in files.items()},
                "log": compiled.log,
                "resources": {name: asdict(value) for name, value in compiled.resources.items()},
            }
            manifest["checksum"] = _sha256(canonical(manifest))
            _write(staged / "manifest.json", json.dumps(manifest, indent=1, sort_keys=True).encode())
            target = self.path(key)
            target.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                staged.rename(target)
            except OSError:
                if not target.exists():
                    raise
                return False
            return True
        finally:
            shutil.rmtree(staged, ignore_errors=True)

    def load(self, key: str, fields: Mapping[str, Any] | None = None) -> CompiledKernel | None:
        """The entry `key`, checked against its manifest and, when given, against the key's fields; None when there is
        none. Raises `CorruptEntry` for anything that does not fit."""
        folder = self.path(key)
        try:
            manifest = json.loads((folder / "manifest.json").read_bytes())
            checksum = manifest.pop("checksum")
            if checksum != _sha256(canonical(manifest)):
                raise CorruptEntry("manifest.json was changed")
            if manifest["format"] != FORMAT or manifest["key"] != key:
                raise CorruptEntry("manifest.json belongs to another entry")
            if fields is not None and manifest["fields"] != dict(fields):
                raise CorruptEntry("manifest.json names another source, option, version or architecture")
            contents = {name: (folder / name).read_bytes() for name in (self.binary, self.text)}
            for name, data in contents.items():
                expected = manifest["files"][name]
                if len(data) != expected["size"]:
                    raise CorruptEntry(f"{name} has {len(data)} bytes, not {expected['size']}")
                if _sha256(data) != expected["sha256"]:
                    raise CorruptEntry(f"{name} was changed")
            resources = {name: Resources(**value) for name, value in manifest["resources"].items()}
            return CompiledKernel(contents[self.binary], manifest["log"], resources)
        except FileNotFoundError as problem:
            if not folder.exists():
                return None
            raise CorruptEntry(f"{Path(problem.filename).name} is missing") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            raise CorruptEntry(f"{type(problem).__name__} while reading it") from problem

    def discard(self, key: str) -> None:
        """Remove an entry, if the disk lets it; moved aside first, so that no reader sees half of it."""
        aside = self.staging / f"{key}_{os.getpid()}_{uuid.uuid4().hex}"
        try:
            self.path(key).rename(aside)
        except OSError:
            aside = self.path(key)
        shutil.rmtree(aside, ignore_errors=True)

    def keys(self) -> Iterator[str]:
        """Keys of all entries, readable or not."""
        for group in sorted(_folders(self.entries)):
            if len(group.name) == 2:
                yield from (entry.name for entry in sorted(_folders(group)))

    def size(self, key: str) -> int:
        """Bytes that the entry's files hold."""
        return sum(_file_size(path) for path in _files(self.path(key)))

    def sweep_staging(self) -> int:
        """Remove what processes that died have left in staging; the number of folders removed."""
        removed = 0
        for folder in _folders(self.staging):
            try:
                if time.time() - folder.stat().st_mtime > STAGING_LEFTOVER_SECONDS:
                    shutil.rmtree(folder)
                    removed += 1
            except OSError:
                continue
        return removed

    def clear(self) -> int:
        """Remove all entries, staged ones and locks; the number of entries removed."""
        count = 0
        for key in list(self.keys()):
            self.discard(key)
            count += 1
        shutil.rmtree(self.entries, ignore_errors=True)
        return count


def refuse_unsafe(folder: Path) -> None:
    """Raise `TilewrightError` when others can write into `folder`: owned by another user and writable by group or
    others, or writable by everybody."""
    status = folder.stat()
    mode = stat.S_IMODE(status.st_mode)
    foreign = status.st_uid != os.geteuid()
    if (foreign and mode & 0o022) or mode & 0o002:
        raise TilewrightError(
            f"cache folder {folder} is refused: expected one that only you can write, got owner {status.st_uid} "
            f"mode {mode:04o}: set TILEWRIGHT_CACHE_DIR to a folder of yours"
        )


def canonical(value: Any) -> bytes:
    """The one JSON text of a value, for hashing."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _folders(path: Path) -> list[Path]:
    try:
        return [entry for entry in path.iterdir() if entry.is_dir()]
    except OSError:
        return []


def _files(path: Path) -> list[Path]:
    try:
        return [entry for entry in path.iterdir() if entry.is_file()]
    except OSError:
        return []


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
