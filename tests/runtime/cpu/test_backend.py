"""The `cpu` backend: calls, the choice of `auto`, the compiler and its absence, and the cache of shared objects."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.lowering.support import kernel_text, lowered
from tests.runtime.cpu.support import built
from tests.runtime.sim.conftest import Sim
from tilewright.diagnostics import TilewrightError, TilewrightWarning
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime import cubin_cache, cxx, doctor, object_cache
from tilewright.runtime.backends import auto
from tilewright.runtime.backends.select import choose
from tilewright.runtime.cpu_unit import CpuSource, build, unit_text
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.nvrtc import CompileError

NO_GPU = "tilewright.runtime.cuda_driver.cuda_unavailable_reason"


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cpu"


def product(target: str) -> Kernel:
    m, n, k = tw.symbols("M N K")
    return tw.compile(tw.matmul(tw.placeholder((m, k)), tw.placeholder((k, n))), target=target)


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).integers(-8, 9, shape).astype(np.float32)


@pytest.mark.cxx
def test_calls_write_in_place_whatever_the_base_and_the_strides() -> None:
    kernel = product("cpu")
    memory = np.full((60, 90), 5.0, np.float32)
    a, b = numbers(80, 70)[3:40:2, 60:1:-3], numbers(20, 33)
    out = memory[7:26, 1:67:2]
    assert kernel(a, b, out=out) is out
    np.testing.assert_array_equal(out, a @ b)
    assert (kernel.backend, kernel.backend_reason) == ("cpu", "cpu was asked for")
    stats = kernel.stats()
    assert (stats["backend"], stats["launches"]) == ("cpu", 1)
    (used,) = [k for k in stats["kernels"] if k["compiled"]]
    assert used["smem_bytes"] is not None
    out[...] = 5.0
    assert (memory == 5.0).all(), "elements outside the result were written"


@pytest.mark.cxx
def test_several_threads_may_call_one_kernel() -> None:
    kernel = product("cpu")
    pairs = [(numbers(40 + n, 50), numbers(50, 30 + n)) for n in range(4)]
    wrong: list[int] = []

    def work(n: int) -> None:
        a, b = pairs[n]
        for _ in range(5):
            if (kernel(a, b) != a @ b).any():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


@pytest.mark.cxx
def test_auto_takes_the_cpu_for_much_work_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NO_GPU, lambda: "no GPU today")
    kernel = product("auto")
    a, b = numbers(33, 20), numbers(20, 40)
    np.testing.assert_array_equal(kernel(a, b), a @ b)
    assert (kernel.backend, kernel.backend_reason) == ("sim", "no GPU: no GPU today")
    monkeypatch.setattr(auto, "LARGE_SECONDS", 0.0)
    np.testing.assert_array_equal(kernel(a, b), a @ b)
    assert kernel.backend == kernel.stats()["backend"] == "cpu"
    assert kernel.backend_reason.startswith("no GPU: no GPU today; simulating would take about 0 s")
    assert kernel.backend_reason.endswith("a C++ compiler is there")


def test_kernels_with_instructions_of_sm_90a_stay_on_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(text: str, options: tuple[str, ...]) -> None:
        pytest.fail("the C++ compiler was asked")

    monkeypatch.setattr(NO_GPU, lambda: "no GPU today")
    monkeypatch.setattr(auto, "LARGE_SECONDS", 0.0)
    monkeypatch.setattr("tilewright.runtime.cpu_unit.load_or_compile", refused)
    m, n, k = tw.symbols("M N K")
    product16 = tw.matmul(tw.placeholder((m, k), "float16"), tw.placeholder((k, n), "float16"))
    a, b = numbers(256, 64).astype(np.float16), numbers(64, 256).astype(np.float16)
    kernel = tw.compile(product16, target="auto", arch="sm_90a")
    np.testing.assert_allclose(kernel(a, b).astype(np.float32), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3)
    assert "simt.wgmma" in kernel.ir("simt")
    assert kernel.backend == "sim"
    assert kernel.backend_reason.endswith("backend cpu does not run the instructions of sm_90a")
    with pytest.raises(TilewrightError, match=r"backend cpu does not run .* sm_90a has .*: use sim, or --arch sm_80"):
        tw.compile(product16, target="cpu", arch="sm_90a")(a, b)


def test_without_a_compiler_auto_simulates_and_cpu_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NO_GPU, lambda: "no GPU today")
    monkeypatch.setenv("CXX", "no-such-compiler -v")
    monkeypatch.setattr(auto, "LARGE_SECONDS", 0.0)
    expected = "target cpu: no C++ compiler: CXX names 'no-such-compiler -v', which does not run: install g++"
    with pytest.raises(TilewrightError, match=re.escape(expected)):
        choose("cpu", None)
    kernel = product("auto")
    a, b = numbers(3, 4), numbers(4, 5)
    np.testing.assert_array_equal(kernel(a, b), a @ b)
    assert kernel.backend == "sim"
    assert "no C++ compiler" in kernel.backend_reason
    (line,) = [check for check in doctor.examine() if check.name == "c++ compiler"]
    assert (line.status, line.found) == ("missing", "CXX names 'no-such-compiler -v', which does not run")
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        TilewrightError, match="target cpu: no C\\+\\+ compiler: no g\\+\\+ or clang\\+\\+ on PATH: install"
    ):
        product("cpu")


@pytest.mark.cxx
def test_a_second_process_finds_the_shared_object(fresh_cache: Path) -> None:
    op = lowered(kernel_text("scale"))
    text = unit_text([CpuSource(op, emit_kernel(op, "sm_80"))])
    first = object_cache.ObjectCache(fresh_cache)
    made = first.load_or_compile(text, "").cubin
    second = object_cache.ObjectCache(fresh_cache)
    assert second.load_or_compile(text, "").cubin == made
    assert (first.stats().compiled, second.stats().compiled, second.stats().disk_hits) == (1, 0, 1)
    # Other options are another entry.
    second.load_or_compile(text, "", ("-O0",))
    assert (second.stats().compiled, second.stats().entries) == (1, 2)


@pytest.mark.cxx
def test_a_damaged_shared_object_is_compiled_again(fresh_cache: Path) -> None:
    op = lowered(kernel_text("scale"))
    text = unit_text([CpuSource(op, emit_kernel(op, "sm_80"))])
    object_cache.ObjectCache(fresh_cache).load_or_compile(text, "")
    (binary,) = fresh_cache.rglob("unit.so")
    whole = binary.read_bytes()
    binary.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    cache = object_cache.ObjectCache(fresh_cache)
    with pytest.warns(TilewrightWarning, match=r"damaged \(unit.so was changed\)"):
        cache.load_or_compile(text, "")
    assert (cache.stats().corrupt, cache.stats().compiled) == (1, 1)


def test_shared_objects_lie_beside_the_cubins(fresh_cache: Path) -> None:
    assert object_cache.default_cache().store.root == fresh_cache == cubin_cache.default_directory() / "cpu"


@pytest.mark.cxx
def test_what_the_compiler_refuses_is_one_line_with_the_line_of_source() -> None:
    op = lowered(kernel_text("scale"))
    text = emit_kernel(op, "sm_80")
    lines = text.splitlines()
    broken = "\n".join([*lines[:-1], "  not_there = 1;", lines[-1]]) + "\n"
    with pytest.raises(CompileError) as caught:
        build([CpuSource(op, broken)])
    assert "\n" not in caught.value.message
    assert f"line {len(lines)}: " in caught.value.message
    assert "not_there" in caught.value.message


@pytest.mark.cxx
def test_kernels_of_one_name_live_in_one_unit() -> None:
    """Programs name their kernels alike, and a call may want variants of several."""
    ops = [Sim().kernel(BODY.replace("OP", op), "%y : !simt.global<i32>") for op in ("addi", "muli")]
    arrays = [np.full(32, 7, np.int32) for _ in ops]
    for kernel, y in zip(built(ops), arrays, strict=True):
        kernel.launch([y.ctypes.data], [], 1)
    np.testing.assert_array_equal(arrays[0], np.arange(32) * 2)
    np.testing.assert_array_equal(arrays[1], np.arange(32) ** 2)


BODY = """
  %t = simt.tid
  %z = arith.OP %t, %t : i32
  %r = simt.regs.alloc : !simt.regs<[], i32>
  simt.regs.store %z to %r
  simt.store %r to %y[%t] width 1"""


@pytest.mark.cxx
def test_arguments_that_do_not_fit_are_one_line() -> None:
    (kernel,) = built([lowered(kernel_text("scale"))])
    y = np.zeros(32, np.float32)
    pointers = [y.ctypes.data] * kernel.pointers
    with pytest.raises(TilewrightError, match=f"expected {kernel.pointers} pointers and {len(kernel.types)} scalars"):
        kernel.launch([], [], 1)
    values: list[Any] = [0] * len(kernel.types)
    with pytest.raises(TilewrightError, match=r"expected a grid of 0 to 2\^31 - 1 blocks, got -1"):
        kernel.launch(pointers, values, -1)
    number = next(n for n, t in enumerate(kernel.types) if str(t) == "i32")
    values[number] = 1 << 31
    with pytest.raises(TilewrightError, match=f"expected scalar {number} to fit i32, got {1 << 31}"):
        kernel.launch(pointers, values, 1)


@pytest.mark.cxx
def test_more_shared_memory_than_any_gpu_has_is_refused() -> None:
    op = Sim().kernel("", "", 32, smem=300_000)
    with pytest.raises(TilewrightError, match="expected at most 233472 bytes of shared memory, got 300000"):
        build([CpuSource(op, "")])


@pytest.mark.cxx
def test_the_compiler_is_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cxx.find_compiler()
    assert found is not None
    assert "-ffp-contract=off" in found.options
    monkeypatch.setenv("CXX", f"{found.path} -Wall")
    named = cxx.find_compiler()
    assert named is not None
    assert (named.path, named.identity, named.options[0]) == (found.path, found.identity, "-Wall")


@pytest.mark.cxx
def test_kernels_share_the_stacks_of_their_fibers() -> None:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("the process cannot look at its own memory here")
    m, n = tw.symbols("M N")
    x = np.ones((9, 9), np.float32)

    def used(number: int) -> int:
        tw.compile(tw.sum(tw.placeholder((m, n)) * float(number), axis=1), target="cpu")(x)
        return len(maps.read_text().splitlines())

    first = used(2)
    assert used(3) - first < 64  # not two for each of 256 threads
    assert [used(number) for number in range(4, 10)][-1] - first < 128
