"""NVRTC: a cubin with its resources, and errors of one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tilewright.diagnostics import TilewrightError
from tilewright.runtime import nvrtc
from tilewright.runtime.ptxas_log import Resources, parse_ptxas_log

SOURCE = """\
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__device__ __noinline__ float twice(float x, volatile float *table) {
  float l[9];
  for (int i = 0; i < 9; ++i) l[i] = table[i];
  return l[int(x) % 9] * 2;
}
extern "C" __global__ void plain(float *a, const float *b, int n) {
  __shared__ float s[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  s[threadIdx.x] = b[i];
  __syncthreads();
  if (i < n) a[i] = s[255 - threadIdx.x] * 3.0f + 1.0f;
}
extern "C" __global__ void calls(float *a) { a[threadIdx.x] = twice(a[threadIdx.x], a + 64); }
"""


@pytest.mark.nvrtc
def test_a_cubin_with_the_resources_of_each_kernel() -> None:
    compiled = nvrtc.compile_cubin(SOURCE, "sm_90a")
    assert compiled.cubin[:4] == b"\x7fELF"
    assert set(compiled.resources) == {"plain", "calls"}
    plain = compiled.resources["plain"]
    assert plain.static_smem_bytes == 256 * 4
    assert 0 < plain.registers <= 255
    assert (plain.stack_bytes, plain.spill_store_bytes, plain.spill_load_bytes) == (0, 0, 0)
    assert compiled.resources["calls"].static_smem_bytes == 0


@pytest.mark.nvrtc
def test_an_error_is_one_line_with_the_line_of_source() -> None:
    source = 'extern "C" __global__ void k(float *a) {\n  a[0] = not_there;\n}\n'
    with pytest.raises(nvrtc.CompileError) as caught:
        nvrtc.compile_cubin(source, "sm_80")
    message = caught.value.message
    assert "\n" not in message
    assert "sm_80: line 2:" in message
    assert 'identifier "not_there" is undefined' in message
    assert message.endswith("a[0] = not_there;")
    assert "1 error detected" in caught.value.log
    assert caught.value.source == source


@pytest.mark.nvrtc
def test_an_error_of_the_assembler_is_one_line_too() -> None:
    with pytest.raises(nvrtc.CompileError, match=r"sm_80: .*nonsense") as caught:
        nvrtc.compile_cubin('extern "C" __global__ void k() { asm volatile("nonsense.b32 ;"); }', "sm_80")
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("arch", ["90a", "sm_", "sm_80 --x", "compute_80", ""])
def test_an_architecture_that_is_none(arch: str) -> None:
    with pytest.raises(TilewrightError, match="architecture: expected sm_"):
        nvrtc.compile_cubin("", arch)


def test_options_replace_the_fixed_ones_of_the_same_name() -> None:
    line = nvrtc.command_line("sm_90a", ("--fmad=true", "-lineinfo"))
    assert line[0] == "--gpu-architecture=sm_90a"
    assert "--fmad=true" in line
    assert "--fmad=false" not in line
    assert "-lineinfo" in line
    assert "--std=c++17" in line


def test_without_cuda_bindings_the_remedy_is_named() -> None:
    program = (
        "import sys; sys.modules['cuda'] = None; sys.modules['cuda.bindings'] = None\n"
        "from tilewright.runtime import nvrtc\n"
        "assert nvrtc.nvrtc_version() is None\n"
        "try: nvrtc.compile_cubin('', 'sm_80')\n"
        "except Exception as problem: print(problem)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == (
        "error: NVRTC: cuda-bindings is not installed: pip install 'tilewright[nvrtc]' (or --source-only)\n"
    )


def test_the_entry_counts_and_not_the_function_it_calls() -> None:
    log = (
        "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
        "ptxas info    : Function properties for f\n"
        "ptxas         .     48 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Function properties for k\n"
        "ptxas         .     16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n"
        "ptxas info    : Function properties for g\n"
        "ptxas         .     32 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 72 registers, used 1 barriers, 256 bytes cumulative stack size, "
        "512 bytes smem, 360 bytes cmem[0]\n"
    )
    assert parse_ptxas_log(log) == {"k": Resources(72, 16, 12, 20, 512)}
    assert parse_ptxas_log("") == {}
