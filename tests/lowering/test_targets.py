"""Targets: the table of them, limits that schedules keep, and a third target derived from the emitter table."""

from __future__ import annotations

import ctypes
import io
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilewright as tw
from tests.lowering.support import kernel_text, lowered, parsed
from tests.lowering.toy_target import HEADER, OpenClTarget
from tilewright import targets
from tilewright.api.opt.main import main
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.structure import KernelOp
from tilewright.lowering.targets import TARGETS, registry
from tilewright.lowering.targets.limits import Limits, cuda_limits
from tilewright.passes import collecting_remarks
from tilewright.runtime.cxx import cxx_unavailable_reason
from tilewright.targets import CudaTarget, all_targets, kernel_symbol, register_target

SHIM = r"""
// OpenCL's words for g++: one thread a work-item, groups one after the other.
#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>
using std::fma; using std::fmax; using std::fmin; using std::exp;
typedef unsigned char uchar; typedef unsigned int uint; typedef unsigned long ulong;
#define __kernel
#define __global
#define __local
static thread_local int tw_local_id, tw_group_id;
static std::barrier<> *tw_group_barrier;
static inline int get_local_id(int) { return tw_local_id; }
static inline int get_group_id(int) { return tw_group_id; }
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
static inline void barrier(int) { tw_group_barrier->arrive_and_wait(); }
static inline float as_float(uint bits) { float f; memcpy(&f, &bits, 4); return f; }
"""


@pytest.fixture(autouse=True)
def _only_the_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {"opencl": OpenClTarget})


def elementwise() -> ModuleOp:
    M, N = tw.symbols("M N")
    return tw.build_module(tw.maximum(tw.placeholder((M, N)) * 2.0 + tw.placeholder((M, N)), 0.0))


def product() -> ModuleOp:
    M, N, K = tw.symbols("M N K")
    return tw.build_module(tw.matmul(tw.placeholder((M, K)), tw.placeholder((K, N))))


def kernels(module: ModuleOp, target: OpenClTarget | None = None) -> dict[str, KernelOp]:
    """The variants of a program for a target, by name."""
    (target or OpenClTarget()).lower(module, make_context(), verify_each=True)
    return {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}


def text_of(kernel: KernelOp, target: OpenClTarget | None = None) -> str:
    """A kernel's text without the header."""
    return (target or OpenClTarget()).source([kernel]).removeprefix(HEADER)


# ---- The table ---------------------------------------------------------------------------------------------------


def test_the_table_is_a_view_of_all_targets() -> None:
    assert set(TARGETS) == {"cuda", "opencl"}
    assert TARGETS["cuda"]() is CudaTarget
    assert TARGETS["opencl"]() is all_targets()["opencl"]() is OpenClTarget
    assert len(TARGETS) == 2


def test_a_name_that_is_taken_is_refused() -> None:
    @dataclass(frozen=True)
    class OtherTarget(OpenClTarget):
        """Has the name of another."""

    with pytest.raises(TilewrightError, match=r"there is a target opencl already; .*OtherTarget needs a name"):
        register_target(OtherTarget)
    assert register_target(OpenClTarget) is OpenClTarget


def test_the_opt_tool_finds_a_registered_target_with_its_options() -> None:
    out, err = io.StringIO(), io.StringIO()
    code = main(["-p", "tile-to-simt", "-t", "opencl{local-bytes=4096}"], io.StringIO(kernel_text("scale")), out, err)
    assert (code, err.getvalue()) == (0, "")
    assert out.getvalue() == OpenClTarget().source([lowered(kernel_text("scale"))])


def test_an_installed_package_offers_targets(tmp_path: Path) -> None:
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[tilewright.targets]\nopencl = tests.lowering.toy_target:OpenClTarget\ncuda = os:sep\ngone = no_module:X\n"
        "wrong = os:sep\n"
    )
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from tilewright.diagnostics import TilewrightError
from tilewright.targets import all_targets
for name in ("opencl", "cuda", "gone", "wrong"):
    try:
        print(all_targets()[name]().__name__)
    except TilewrightError as error:
        print(error)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=root)
    assert done.stdout.splitlines() == [
        "OpenClTarget",
        "CudaTarget",
        "error: target gone is not available: No module named 'no_module'",
        "error: target wrong is not available: os:sep is no target of that name",
    ]


# ---- Limits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "message"),
    [({"threads": 16}, "32 to 1024"), ({"access_bytes": 32}, "8 or 16"), ({"dtypes": ("f8",)}, "expected dtypes of")],
)
def test_limits_that_no_device_has_are_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Limits(**limits)


def widest_access(kernel: KernelOp) -> int:
    """The most elements that one load or store moves."""
    return max(int(number) for number in re.findall(r"width (\d+)", str(kernel)))


def test_schedules_keep_a_targets_limits() -> None:
    """A device of 128 threads and accesses of 8 bytes: no kernel has more, where CUDA's have 256 and 16."""
    for program in (elementwise, product):
        small = kernels(program())
        module = program()
        CudaTarget().lower(module, make_context())
        large = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
        assert set(small) == set(large)
        assert max(kernel.threads.value.data for kernel in small.values()) == 128
        assert max(kernel.threads.value.data for kernel in large.values()) == 256
        widest = [widest_access(kernel) for kernel in (*small.values(), *large.values())]
        assert max(widest[: len(small)]) == 2
        assert max(widest[len(small) :]) == 4


def test_too_little_shared_memory_is_an_error_with_the_sum() -> None:
    with pytest.raises(TilewrightError, match=r"@main_0_\w+ needs .* bytes of shared memory, the limit allows 8192"):
        kernels(product(), OpenClTarget(local_bytes=8192))


def test_smaller_tiles_need_less_shared_memory() -> None:
    class SmallTiles(OpenClTarget):
        """Takes tiles that fit."""

        def options(self) -> dict[str, dict[str, Any]]:
            return {**super().options(), "lin-to-tile": {"tile_sizes": (16, 16, 16)}}

    for kernel in kernels(product(), SmallTiles(local_bytes=8192)).values():
        assert 0 < kernel.smem.value.data <= 8192


def test_a_kernel_over_a_limit_is_refused_when_it_is_written() -> None:
    module = product()
    CudaTarget().lower(module, make_context())
    kernel = next(op for op in module.ops if isinstance(op, KernelOp))
    with pytest.raises(TilewrightError, match=r"target opencl: @\w+ has 256 threads a block, at most 128 are allowed"):
        OpenClTarget().source([kernel])
    kernel = next(iter(kernels(product()).values()))
    with pytest.raises(TilewrightError, match=r"needs \d+ bytes of shared memory, at most 64 are allowed"):
        OpenClTarget(local_bytes=64).source([kernel])


def test_a_type_that_the_device_lacks_is_refused() -> None:
    with pytest.raises(
        TilewrightError, match=r"target opencl: @cast uses (bf16|f16), expected one of i1, i32, i64, f32"
    ):
        OpenClTarget().source([lowered(kernel_text("cast"))])


def test_arrays_beyond_the_registers_are_remarked() -> None:
    @dataclass(frozen=True)
    class FewRegisters(OpenClTarget):
        """Has four registers."""

        name = "few"

        @property
        def limits(self) -> Limits:
            return Limits(registers=4, dtypes=("i1", "i32", "i64", "f32"))

    kernel = next(iter(kernels(product()).values()))
    with collecting_remarks() as remarks:
        OpenClTarget().source([kernel])
        assert remarks == []
        FewRegisters().source([kernel])
    assert re.search(r"remark: \[few\] \d+ registers for arrays alone, of 4: they spill", str(remarks[0]))


ARRAYS = """
simt.kernel @k() threads 32 smem 0 grid [1] params [] {
  %a = simt.regs.alloc : !simt.regs<[5], f32>
  %b = simt.regs.alloc : !simt.regs<[3], bf16>
  %c = simt.regs.alloc : !simt.regs<[2, 3], i64>
  %d = simt.regs.alloc : !simt.regs<[5], i8>
}
"""


def test_arrays_take_registers_of_four_bytes() -> None:
    """5 words, 6 bytes in 2, 48 bytes in 12, and 5 bytes in 2."""
    (kernel,) = (op for op in parsed(ARRAYS).walk() if isinstance(op, KernelOp))
    with collecting_remarks() as remarks:
        Tiny(registers=20).check(kernel)
        Tiny(registers=21).check(kernel)
    assert [r.message for r in remarks] == ["21 registers for arrays alone, of 20: they spill"]


@dataclass(frozen=True)
class Tiny(OpenClTarget):
    """Has a few registers."""

    registers: int = 0

    @property
    def limits(self) -> Limits:
        return Limits(registers=self.registers)


def test_an_op_without_an_entry_is_an_error_that_names_op_and_target() -> None:
    class Wide(OpenClTarget):
        """Has the threads that the kernel wants."""

        @property
        def limits(self) -> Limits:
            return Limits()

    with pytest.raises(TilewrightError) as caught:
        Wide().source([lowered(kernel_text("row_sum"))])
    assert caught.value.message == "target opencl has no text for simt.shuffle"
    assert caught.value.location is not None


def test_a_pass_that_nobody_registered_is_named_when_the_pipeline_is_made() -> None:
    class Misspelt(OpenClTarget):
        """Its pipeline has a pass that there is not."""

        pipeline = ("map-threads", "cutting-up")

    with pytest.raises(TilewrightError, match="pipeline: there is no pass cutting-up"):
        Misspelt().tile_passes()


def test_every_public_name_is_there() -> None:
    assert all(getattr(targets, name) is not None for name in targets.__all__)
    assert set(targets.__all__) <= set(dir(targets))
    assert set(targets.ARITHMETIC) | set(targets.MATHEMATICS) | set(targets.STRUCTURED) <= set(targets.EMITTERS)
    with pytest.raises(AttributeError, match="no attribute 'make_tea'"):
        _ = targets.make_tea


def test_cuda_architectures_differ_in_shared_memory() -> None:
    assert cuda_limits("sm_90a").shared_bytes == 227 * 1024
    assert cuda_limits("sm_86").shared_bytes == 99 * 1024
    assert CudaTarget("sm_90a").limits == cuda_limits("sm_90a")
    assert CudaTarget("sm_90a").options()["allocate-shared"] == {"limit": 227 * 1024}


# ---- The text ----------------------------------------------------------------------------------------------------


def test_the_text_is_opencl_c() -> None:
    for kernel in kernels(product()).values():
        text = text_of(kernel)
        assert re.match(
            r"\n?__kernel __attribute__\(\(reqd_work_group_size\(\d+, 1, 1\)\)\) void \w+\(__global float \*v0", text
        )
        assert text.count("{") == text.count("}")
        shared = "__local uchar *tw_smem) {" in text
        assert shared or "_sum_" in text  # what a thread sums alone needs none
        assert shared == ("barrier(CLK_LOCAL_MEM_FENCE" in text)
        # What is C++ or CUDA alone has no place in it.
        assert not re.search(r"static_cast|reinterpret_cast|long long|threadIdx|blockIdx|__shared__|tw_\w+<", text)


def launcher(kernel: KernelOp) -> str:
    """A function `tw_run(group, pointers, scalars)` that runs one work-group of the kernel."""
    arguments = [f"(float *)pointers[{i}]" for i in range(len(kernel.pointers))]
    arguments += [f"scalars[{i}]" for i in range(len(kernel.scalars))]
    arguments += ["smem.data()"] if kernel.smem.value.data else []
    threads = kernel.threads.value.data
    return f"""
extern "C" void tw_run(int group, void **pointers, const long *scalars) {{
  std::vector<uchar> smem({kernel.smem.value.data});
  std::barrier<> together({threads});
  tw_group_barrier = &together;
  std::vector<std::thread> threads;
  for (int i = 0; i < {threads}; ++i)
    threads.emplace_back([&, i] {{
      tw_local_id = i; tw_group_id = group;
      {kernel_symbol(kernel)}({", ".join(arguments)});
    }});
  for (auto &t : threads) t.join();
}}
"""


def run(kernel: KernelOp, arrays: list[np.ndarray], symbols: Mapping[str, int], folder: Path) -> None:
    """Compile the kernel's text with g++ behind the shim and run its groups on the arrays, in place."""
    source, library = folder / "kernel.cpp", folder / "kernel.so"
    source.write_text(SHIM + OpenClTarget().source([kernel]) + launcher(kernel))
    command = ["g++", "-std=c++20", "-O1", "-w", "-ffp-contract=off", "-shared", "-fPIC", "-pthread"]
    done = subprocess.run([*command, str(source), "-o", str(library)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    scalars = [p.data.evaluate(symbols) for p in kernel.params.data]
    entry = ctypes.CDLL(str(library)).tw_run
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    for group in range(kernel.grid.data.evaluate(symbols)):
        entry(group, pointers, (ctypes.c_long * len(scalars))(*scalars))


@pytest.mark.cxx
@pytest.mark.skipif(cxx_unavailable_reason() is not None, reason="no C++ compiler")
@pytest.mark.parametrize(("width", "m", "n", "k"), [(32, 5, 131, 3), (64, 33, 17, 9)])
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (elementwise, lambda a, b: np.maximum(a * np.float32(2) + b, np.float32(0))),
        (product, lambda a, b: a.astype(np.float64) @ b),
    ],
    ids=["elementwise", "matmul"],
)
def test_the_text_computes_what_the_program_says(
    program: Callable[[], ModuleOp], expected: Any, m: int, n: int, k: int, width: int, tmp_path: Path
) -> None:
    """Compiled as C++ with a thread for each work-item; the shapes are no multiples of any tile."""
    rng = np.random.default_rng(3)
    first, second = ((m, n), (m, n)) if program is elementwise else ((m, k), (k, n))
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in (first, second))
    out = np.full((m, n), np.nan, np.float32)
    symbols = {"M": m, "N": n, "K": k}
    for name, array in (("arg0", a), ("arg1", b), ("out0", out)):
        symbols |= {f"{name}_s{d}": stride // 4 for d, stride in enumerate(array.strides)}
    name, kernel = next((n, k) for n, k in reversed(kernels(program()).items()) if n.endswith(f"general{width}"))
    run(kernel, [a, b, out], symbols, tmp_path)
    # Sums of k products of standard normal numbers, each rounded once: far below 1e-5 for k < 10.
    np.testing.assert_allclose(out, expected(a, b), rtol=0, atol=0 if program is elementwise else 1e-5, err_msg=name)
