"""Packed kernel parameters: offsets by the rule of C, held against what a compiler put into a cubin."""

from __future__ import annotations

import struct

import pytest

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.nvrtc import compile_cubin
from tilewright.runtime.parameters import ParameterLayout, parameter_places

SOURCE = """
struct alignas(64) Map { char bytes[128]; };
extern "C" __global__ void scalars(int a, float *p, int b, float c, long long d, int e) { *p = a + b + c + d + e; }
extern "C" __global__ void mapped(const __grid_constant__ Map m, float *p, int n) { *p = m.bytes[n]; }
extern "C" __global__ void nothing() {}
"""
SCALARS = ("i32", "ptr", "i32", "f32", "i64", "i32")


@pytest.mark.nvrtc
def test_offsets_are_those_of_the_compiler() -> None:
    cubin = compile_cubin(SOURCE, "sm_90a").cubin
    assert set(parameter_places(cubin)) == {"scalars", "mapped", "nothing"}
    assert ParameterLayout.from_cubin(cubin, "scalars", SCALARS) == ParameterLayout.of(SCALARS)
    assert ParameterLayout.from_cubin(cubin, "nothing", ()).pack(()) == b""
    mapped = ParameterLayout.from_cubin(cubin, "mapped", ("tensor_map", "ptr", "i32"))
    packed = mapped.pack((bytes(range(128)), 0x1122334455667788, -5))
    start = mapped.offsets[0]
    assert packed[start : start + 128] == bytes(range(128))
    assert struct.unpack_from("<Q", packed, mapped.offsets[1]) == (0x1122334455667788,)
    assert struct.unpack_from("<i", packed, mapped.offsets[2]) == (-5,)
    with pytest.raises(TilewrightError, match=r"expected parameters of \(4, 8\) bytes, got \(128, 8, 4\)"):
        ParameterLayout.from_cubin(cubin, "mapped", ("i32", "ptr"))
    with pytest.raises(TilewrightError, match="kernel 'absent'"):
        ParameterLayout.from_cubin(cubin, "absent", ())


def test_packing_is_that_of_a_c_struct() -> None:
    layout = ParameterLayout.of(SCALARS)
    values = (-1, 2**63 + 8, 7, 0.5, -(2**40), 9)
    # '@' of the struct module is the C compiler's own alignment on this machine.
    assert layout.pack(values) == struct.pack("@iQifqi", *values)
    assert ParameterLayout.of(()).pack(()) == b""


@pytest.mark.parametrize("values", [(2**31, 0, 0, 0.0, 0, 0), (0, -1, 0, 0.0, 0, 0), (0, 0, 0), (0, 0, 0.5, 0.0, 0, 0)])
def test_values_that_do_not_fit(values: tuple[float, ...]) -> None:
    with pytest.raises(TilewrightError, match=r"kernel parameters: expected values of \(i32, ptr"):
        ParameterLayout.of(SCALARS).pack(values)


def test_what_is_no_cubin_and_no_kind() -> None:
    with pytest.raises(TilewrightError, match="expected a 64-bit ELF, got 5 bytes"):
        parameter_places(b"hello")
    with pytest.raises(TilewrightError, match="expected one of i32, i64, f32, ptr, got 'f16'"):
        ParameterLayout.of(("f16",))
