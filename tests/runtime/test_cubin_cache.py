"""The cubin cache: hits, damage, disks that refuse, processes that race or die. No compiler is needed for these."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tilewright.diagnostics import TilewrightWarning
from tilewright.runtime import cubin_cache
from tilewright.runtime.cache_lock import held
from tilewright.runtime.cubin_cache import CubinCache, default_directory
from tilewright.runtime.nvrtc import CompiledKernel
from tilewright.runtime.ptxas_log import Resources


class CountingCompiler:
    """Stands in for NVRTC: the cubin is the reversed source, so that a wrong entry cannot pass for the right one."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, source: str, arch: str, options: tuple[str, ...]) -> CompiledKernel:
        self.calls += 1
        cubin = " ".join((source[::-1], arch, *options)).encode()
        return CompiledKernel(cubin, f"log of {source}", {"k": Resources(7, 0, 4, 8, 1024)})


def new_cache(root: Path, version: str | None = "13.0") -> tuple[CubinCache, CountingCompiler]:
    compiler = CountingCompiler()
    return CubinCache(root, compiler, lambda: version), compiler


def only_entry(cache: CubinCache) -> Path:
    (key,) = cache.store.keys()
    return cache.store.path(key)


def test_memo_then_disk_then_compiler(tmp_path: Path) -> None:
    first, compiler = new_cache(tmp_path / "c")
    made = first.load_or_compile("source", "sm_80", ("-lineinfo",))
    assert first.load_or_compile("source", "sm_80", ("-lineinfo",)) is made
    assert compiler.calls == 1
    second, other = new_cache(tmp_path / "c")
    assert second.load_or_compile("source", "sm_80", ("-lineinfo",)) == made
    assert other.calls == 0
    assert (second.stats().disk_hits, second.stats().compiled, first.stats().memo_hits) == (1, 0, 1)
    assert (only_entry(first) / "kernel.cu").read_text() == "source"
    assert second.stats().entries == 1
    assert second.stats().bytes == sum(path.stat().st_size for path in only_entry(first).iterdir())


def test_everything_that_can_change_the_cubin_is_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, compiler = new_cache(tmp_path / "c")
    for source, arch, options in (
        ("s", "sm_80", ()),
        ("t", "sm_80", ()),
        ("s", "sm_90a", ()),
        ("s", "sm_80", ("-x",)),
        ("s", "sm_80", ("-x", "-y")),
        ("s", "sm_80", ("-x -y",)),
    ):
        cache.load_or_compile(source, arch, options)
    assert compiler.calls == 6
    newer, compiler = new_cache(tmp_path / "c", version="13.1")
    newer.load_or_compile("s", "sm_80")
    monkeypatch.setattr(cubin_cache, "ABI", cubin_cache.ABI + 1)
    newer.load_or_compile("s", "sm_80")
    monkeypatch.setattr(cubin_cache, "__version__", "99")
    newer.load_or_compile("s", "sm_80")
    assert compiler.calls == 3
    assert newer.stats().entries == 9


def age_file(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def damage_by_truncation(entry: Path) -> None:
    (entry / "kernel.cubin").write_bytes((entry / "kernel.cubin").read_bytes()[:-1])


def damage_by_one_bit(entry: Path) -> None:
    data = bytearray((entry / "kernel.cubin").read_bytes())
    data[0] ^= 1
    (entry / "kernel.cubin").write_bytes(data)


def damage_by_removal(entry: Path) -> None:
    (entry / "kernel.cubin").unlink()


def damage_manifest(entry: Path) -> None:
    manifest = json.loads((entry / "manifest.json").read_text())
    manifest["resources"]["k"]["registers"] = 8
    (entry / "manifest.json").write_text(json.dumps(manifest))


def damage_manifest_syntax(entry: Path) -> None:
    (entry / "manifest.json").write_text("[1, 2")


def damage_manifest_kind(entry: Path) -> None:
    (entry / "manifest.json").write_text("[]")


def damage_by_no_manifest(entry: Path) -> None:
    (entry / "manifest.json").unlink()


DAMAGES = [
    damage_by_truncation,
    damage_by_one_bit,
    damage_by_removal,
    damage_manifest,
    damage_manifest_syntax,
    damage_manifest_kind,
    damage_by_no_manifest,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_made_again_with_one_warning(damage, tmp_path: Path) -> None:
    cache, _ = new_cache(tmp_path / "c")
    made = cache.load_or_compile("source", "sm_80")
    damage(only_entry(cache))
    again, compiler = new_cache(tmp_path / "c")
    with pytest.warns(TilewrightWarning, match="damaged") as seen:
        assert again.load_or_compile("source", "sm_80") == made
    assert len(seen) == 1
    assert compiler.calls == 1
    assert again.stats().corrupt == 1
    third, compiler = new_cache(tmp_path / "c")
    assert third.load_or_compile("source", "sm_80") == made
    assert compiler.calls == 0


def test_an_entry_in_the_place_of_another_is_not_taken(tmp_path: Path) -> None:
    cache, _ = new_cache(tmp_path / "c")
    cache.load_or_compile("one", "sm_80")
    one = only_entry(cache)
    cache.load_or_compile("two", "sm_80")
    (two,) = {cache.store.path(key) for key in set(cache.store.keys())} - {one}
    for name in ("manifest.json", "kernel.cubin", "kernel.cu"):
        (two / name).write_bytes((one / name).read_bytes())
    again, _ = new_cache(tmp_path / "c")
    with pytest.warns(TilewrightWarning, match="another entry"):
        assert again.load_or_compile("two", "sm_80").cubin == b"owt sm_80"


def test_verify_removes_what_is_damaged_and_keeps_the_rest(tmp_path: Path) -> None:
    cache, _ = new_cache(tmp_path / "c")
    cache.load_or_compile("one", "sm_80")
    bad = only_entry(cache)
    cache.load_or_compile("two", "sm_80")
    assert cache.verify() == {}
    damage_by_truncation(bad)
    assert cache.verify() == {bad.name: "kernel.cubin has 8 bytes, not 9"}
    assert cache.stats().entries == 1
    assert cache.clear() == 1
    assert cache.stats().entries == 0
    cache.load_or_compile("one", "sm_80")
    assert cache.stats().entries == 1


def test_a_folder_that_cannot_be_made_means_uncached(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache, compiler = new_cache(tmp_path / "file" / "c")
    assert cache.load_or_compile("source", "sm_80").cubin == b"ecruos sm_80"
    cache.load_or_compile("source", "sm_80")
    assert compiler.calls == 1
    assert "Not a directory" in (cache.stats().uncached_reason or "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_folder_means_uncached(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir(mode=0o500)
    cache, compiler = new_cache(tmp_path / "c")
    assert cache.load_or_compile("source", "sm_80").cubin == b"ecruos sm_80"
    assert compiler.calls == 1


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
def test_a_disk_that_turns_read_only_or_full_while_writing(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, data: bytes) -> None:
        path.write_bytes(data[:1])
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("tilewright.runtime.cache_store._write", refuse)
    cache, _ = new_cache(tmp_path / "c")
    assert cache.load_or_compile("source", "sm_80").cubin == b"ecruos sm_80"
    assert os.strerror(number) in (cache.stats().uncached_reason or "")
    assert cache.stats().entries == 0
    assert list(cache.store.staging.iterdir()) == []
    assert list(cache.store.locks.iterdir()) == []


def test_folders_are_for_the_user_alone(tmp_path: Path) -> None:
    cache, _ = new_cache(tmp_path / "c")
    cache.load_or_compile("source", "sm_80")
    entry = only_entry(cache)
    for folder in (tmp_path / "c", cache.store.staging, cache.store.locks, entry.parent, entry):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_everybody_can_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c").chmod(0o777)
    cache, compiler = new_cache(tmp_path / "c")
    with pytest.warns(TilewrightWarning, match="mode 0777: set TILEWRIGHT_CACHE_DIR"):
        cache.load_or_compile("source", "sm_80")
    cache.load_or_compile("other", "sm_80")  # and no second warning
    assert compiler.calls == 2
    assert list((tmp_path / "c").iterdir()) == []


@pytest.mark.parametrize(("mode", "refused"), [(0o775, True), (0o755, False)])
def test_a_foreign_folder_is_refused_when_a_group_can_write_it(
    mode: int, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c").chmod(mode)
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    cache, _ = new_cache(tmp_path / "c")
    if refused:
        with pytest.warns(TilewrightWarning, match=f"owner {mine} mode 0775"):
            cache.load_or_compile("source", "sm_80")
    else:
        cache.load_or_compile("source", "sm_80")
    assert (cache.stats().entries == 0) == refused


def test_what_a_killed_writer_left_is_no_entry_and_is_swept_when_old(tmp_path: Path) -> None:
    cache, _ = new_cache(tmp_path / "c")
    cache.load_or_compile("source", "sm_80")
    for name, age in (("old", 7200.0), ("young", 10.0)):
        left = cache.store.staging / name
        left.mkdir()
        (left / "kernel.cubin").write_bytes(b"half")
        age_file(left, age)
    again, compiler = new_cache(tmp_path / "c")
    assert again.load_or_compile("source", "sm_80").cubin == b"ecruos sm_80"
    assert compiler.calls == 0
    assert again.stats().entries == 1
    assert [path.name for path in again.store.staging.iterdir()] == ["young"]


WRITER = """
import os, sys, time
from pathlib import Path
from tilewright.runtime import cache_store
from tilewright.runtime.cubin_cache import CubinCache
from tilewright.runtime.nvrtc import CompiledKernel

root, log, delay, dies = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), len(sys.argv) > 4

def compiler(source, arch, options):
    with open(log, "a") as file:
        file.write("compiled\\n")
    time.sleep(delay)
    return CompiledKernel(source.encode() * 1000, "")

if dies:
    def write(path, data):
        path.write_bytes(data[:10])
        os._exit(9)
    cache_store._write = write
print(len(CubinCache(root, compiler, lambda: "13.0").load_or_compile("source", "sm_80").cubin))
"""


def start_writer(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def test_four_processes_compile_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    writers = [start_writer(tmp_path / "c", log, "0.3") for _ in range(4)]
    answers = [writer.communicate(timeout=60)[0] for writer in writers]
    assert answers == ["6000\n"] * 4
    assert log.read_text() == "compiled\n"


def test_a_process_that_dies_while_writing_does_not_hold_up_the_next(tmp_path: Path) -> None:
    log = tmp_path / "log"
    dying = start_writer(tmp_path / "c", log, "0", "dies")
    dying.communicate(timeout=60)
    assert dying.returncode == 9
    cache, _ = new_cache(tmp_path / "c")
    assert len(list(cache.store.locks.iterdir())) == 1
    start = time.monotonic()
    assert start_writer(tmp_path / "c", log, "0").communicate(timeout=60)[0] == "6000\n"
    assert time.monotonic() - start < 30
    assert log.read_text() == "compiled\n" * 2
    assert cache.verify() == {}
    assert cache.stats().entries == 1
    assert list(cache.store.locks.iterdir()) == []


def test_threads_compile_once(tmp_path: Path) -> None:
    cache, compiler = new_cache(tmp_path / "c")
    barrier = threading.Barrier(4)
    seen: list[CompiledKernel] = []

    def work() -> None:
        barrier.wait()
        seen.append(cache.load_or_compile("source", "sm_80"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert compiler.calls == 1
    assert len(seen) == 4


def test_a_live_lock_is_respected_and_an_old_one_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with held(path) as mine:
        assert mine
        with held(path, patience=0.1) as second:
            assert not second
        assert path.exists()
        age_file(path, 100)
        with held(path, stale_seconds=60, patience=5) as third:
            assert third
    assert not path.exists()


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_directory() == tmp_path / ".cache" / "tilewright"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_directory() == tmp_path / "x" / "tilewright"
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "t"))
    assert default_directory() == tmp_path / "t"


@pytest.mark.nvrtc
def test_nvrtc_through_the_default_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "t"))
    source = 'extern "C" __global__ void k(float *a) { a[threadIdx.x] *= 2; }'
    made = cubin_cache.load_or_compile(source, "sm_80")
    assert set(made.resources) == {"k"}
    assert cubin_cache.stats().compiled == 1
    assert CubinCache(tmp_path / "t").load_or_compile(source, "sm_80") == made
    assert cubin_cache.verify() == {}
    assert cubin_cache.clear() == 1
