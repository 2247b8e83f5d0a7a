"""The emitted source compiles without spills, and holds no text of the IR; what has no C++ is an error at the op."""

from __future__ import annotations

import io
import math
import re
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, ModuleOp, bf16, f16, f32, f64

from tests.lowering.scalar_cases import CASES
from tests.lowering.scalar_cases import kernel_text as case_text
from tests.lowering.support import NAMES, kernel_text, lowered, parsed
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.dialect import Simt
from tilewright.dialects.simt.structure import KernelOp
from tilewright.lowering import simt_to_cuda
from tilewright.lowering.simt_to_cuda import emit_kernel, emit_module, kernel_symbol
from tilewright.lowering.simt_to_cuda.arithmetic import ARITHMETIC
from tilewright.lowering.simt_to_cuda.hopper import HOPPER
from tilewright.lowering.simt_to_cuda.mathematics import MATHEMATICS
from tilewright.lowering.simt_to_cuda.matrices import MATRICES
from tilewright.lowering.simt_to_cuda.names import mangle
from tilewright.lowering.simt_to_cuda.source import EMITTERS, intrinsics_header
from tilewright.lowering.simt_to_cuda.structured import STRUCTURED
from tilewright.lowering.simt_to_cuda.types import literal
from tilewright.lowering.targets import TARGETS
from tilewright.runtime.nvrtc import compile_cubin

ARCHITECTURES = ("sm_80", "sm_90a")


def body(source: str) -> str:
    """The kernels of a source, without the header."""
    return source[source.index('extern "C"') :]


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", NAMES)
def test_kernels_compile_without_spills(name: str, width: int, arch: str) -> None:
    kernel = lowered(kernel_text(name, width))
    compiled = compile_cubin(emit_kernel(kernel, arch), arch)
    (resources,) = [compiled.resources[kernel_symbol(kernel)]]
    assert (resources.stack_bytes, resources.spill_store_bytes, resources.spill_load_bytes) == (0, 0, 0)
    assert "warning" not in compiled.log


@pytest.mark.nvrtc
@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_scalar_op_compiles_for_every_type(arch: str) -> None:
    text = "".join(case_text(i, case) for i, case in enumerate(CASES))
    assert len(compile_cubin(emit_module(parsed(text), arch), arch).resources) == len(CASES)


def test_every_scalar_op_has_a_case() -> None:
    covered = {case.op for case in CASES} | {"arith.constant", "arith.select", "math.fpowi"}
    assert {op.name for op in (*ARITHMETIC, *MATHEMATICS)} == covered


def test_the_names_of_the_folder_are_imported_on_demand() -> None:
    assert [getattr(simt_to_cuda, name).__name__ for name in simt_to_cuda.__all__] == simt_to_cuda.__all__
    with pytest.raises(AttributeError, match="no attribute 'emit_tea'"):
        _ = simt_to_cuda.emit_tea


def test_every_simt_op_has_an_emitter() -> None:
    assert {op.name for op in Simt.operations} - {"simt.kernel"} == {
        op.name for op in (*STRUCTURED, *MATRICES, *HOPPER) if op.name.startswith("simt.")
    }
    assert set(EMITTERS) == {*ARITHMETIC, *MATHEMATICS, *STRUCTURED, *MATRICES, *HOPPER}


HOSTILE = ('x"; __trap(); //', "*/ int main() {", "a\nb", "日本", "%s${HOME}", "x" * 400, "")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_do_not_reach_the_source(name: str) -> None:
    kernel = lowered(kernel_text("cast"))
    kernel.properties["sym_name"] = type(kernel.sym_name)(name)
    for op in kernel.walk():
        for result in op.results:
            result.name_hint = "evil_hint"
    source = body(emit_kernel(kernel, "sm_80"))
    symbol = kernel_symbol(kernel)
    assert re.fullmatch(r"tw_[A-Za-z0-9_]{0,48}_[0-9a-f]{8}", symbol)
    assert symbol in source
    assert "evil_hint" not in source
    assert "//" not in source
    assert "/*" not in source
    assert len(name) < 3 or name not in source


def test_symbols_differ_where_names_do() -> None:
    assert len({mangle(n) for n in ("a b", "a_b", "a-b", *HOSTILE)}) == 3 + len(HOSTILE)


def test_an_op_without_cpp_is_an_error_at_the_op() -> None:
    text = """simt.kernel @k(%p : !simt.global<i32>) threads 32 smem 0 grid [1] {
  %t = simt.tid
  %a, %b = arith.addui_extended %t, %t : i32, i1
}"""
    module = parsed(text)
    with pytest.raises(TilewrightError, match=re.escape("target cuda has no text for arith.addui_extended")) as raised:
        emit_module(module)
    assert raised.value.location is not None
    assert raised.value.location.line == 3


def test_a_type_without_cpp_is_an_error_at_the_op() -> None:
    text = "simt.kernel @k(%p : !simt.global<i32>) threads 32 smem 0 grid [1] {\n  %i = arith.constant 3 : i7\n}"
    with pytest.raises(TilewrightError, match="got i7") as raised:
        emit_module(parsed(text))
    assert raised.value.location is not None


def test_bits_are_counted_in_32_or_64() -> None:
    text = """simt.kernel @k(%p : !simt.global<i32>) threads 32 smem 0 grid [1] {
  %a = arith.constant 3 : i8
  %b = math.ctpop %a : i8
}"""
    with pytest.raises(TilewrightError) as raised:
        emit_module(parsed(text))
    assert raised.value.message == "math.ctpop: expected i32 or i64, got i8"
    assert raised.value.location is not None
    assert raised.value.location.line == 3


def test_an_argument_without_cpp_is_an_error_at_the_kernel() -> None:
    text = "\nsimt.kernel @k(%a : i7) threads 32 smem 0 grid [1] {\n}"
    with pytest.raises(TilewrightError, match="got i7") as raised:
        emit_module(parsed(text))
    assert raised.value.location is not None
    assert raised.value.location.line == 2


def test_the_target_writes_the_module() -> None:
    kernel = lowered(kernel_text("cast"))
    module = kernel.parent_op()
    assert isinstance(module, ModuleOp)
    output = io.StringIO()
    target = TARGETS["cuda"]()(arch="sm_90a")  # pyright: ignore[reportCallIssue]  # xDSL's Target has no options
    target.emit(make_context(), module, output)
    assert output.getvalue() == emit_kernel(kernel, "sm_90a")


def test_the_architecture_is_checked() -> None:
    with pytest.raises(TilewrightError, match="architecture: expected sm_<number>"):
        emit_kernel(lowered(kernel_text("cast")), "sm_80\n#include")


def test_only_the_16_bit_headers_are_included_and_only_when_used() -> None:
    assert set(re.findall(r"#include\s*(\S+)", intrinsics_header())) == {"<cuda_fp16.h>", "<cuda_bf16.h>"}
    assert "#define TW_BF16" in emit_kernel(lowered(kernel_text("cast")), "sm_80")
    assert "#define" not in emit_kernel(lowered(kernel_text("transpose")), "sm_80").split("// What the emitter")[0]


def test_read_only_pointers_go_through_the_read_only_path() -> None:
    source = body(emit_kernel(lowered(kernel_text("transpose")), "sm_80"))
    assert re.search(r"\(const float \*__restrict__ v0, float \*__restrict__ v1", source)
    assert "tw_load_readonly_or<1, float>(" in source
    in_place = kernel_text("scale").replace("to %y[", "to %x[")
    assert "const" not in body(emit_kernel(lowered(in_place), "sm_80")).split(",")[0]


LOOP = """simt.kernel @k(%p : !simt.global<i32>, %n : i32) threads 32 smem 0 grid [1] params [N] {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a, %b = scf.for %i = %zero to %n step %one iter_args(%x = %zero, %y = %one) -> (i32, i32) : i32 {
    scf.yield %y, %x : i32, i32
  } {unroll = 4 : i64}
  %c = arith.cmpi slt, %a, %b : i32
  %d, %e = scf.if %c -> (i32, i32) {
    scf.yield %a, %b : i32, i32
  } else {
    scf.yield %b, %a : i32, i32
  }
}"""


DIVISIONS = """
simt.kernel @k(%p: !simt.global<TYPE>, %d: TYPE) threads 32 smem 0 grid [1] params [] {
  %c0 = arith.constant 0 : i32
  %seven = arith.constant 7 : TYPE
  %r = simt.regs.alloc : !simt.regs<[1], TYPE>
  %x = simt.regs.load %r[%c0]
  %a = arith.OP %x, %seven : TYPE
  simt.regs.store %a to %r[%c0]
  %b = arith.OP %x, %d : TYPE
  simt.regs.store %b to %r[%c0]
}
"""


@pytest.mark.parametrize(
    ("op", "kind", "sign", "by_value"),
    [
        ("divsi", "i32", "/", "tw_quotient<int>"),
        ("remsi", "i32", "%", "tw_remainder<int>"),
        ("divui", "i32", "/", "tw_quotient<unsigned int>"),
        ("remui", "i32", "%", "tw_remainder<unsigned int>"),
        ("divsi", "i16", "/", "tw_quotient<int>"),
        ("remsi", "i8", "%", "tw_remainder<int>"),
        ("divsi", "i64", "/", "tw_quotient<long long>"),
    ],
)
def test_division_is_plain_by_a_constant_and_checked_otherwise(op: str, kind: str, sign: str, by_value: str) -> None:
    """Narrow integers are divided in 32 bits, never in 64."""
    text = DIVISIONS.replace("OP", op).replace("TYPE", kind)
    (kernel,) = (o for o in parsed(text).walk() if isinstance(o, KernelOp))
    lines = body(emit_kernel(kernel, "sm_80")).splitlines()
    plain, checked = (line for line in lines if re.search(r" [/%] |tw_(quotient|remainder)", line))
    assert re.findall(r" ([/%]) ", plain) == [sign]
    assert "tw_" not in plain.partition(" = ")[2]
    assert by_value in checked


def test_loop_values_are_assigned_at_once() -> None:
    """Carried values that swap: the new ones are read before any is written."""
    (kernel,) = (op for op in parsed(LOOP).ops if isinstance(op, KernelOp))
    lines = [line.strip() for line in body(emit_kernel(kernel, "sm_80")).splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("for ("))
    assert lines[start - 1] == "#pragma unroll 4"
    x, y = (lines[start - k].split()[1] for k in (3, 2))
    first, second = (re.fullmatch(r"const int (v\d+) = (v\d+);", line) for line in lines[start + 1 : start + 3])
    assert first is not None
    assert second is not None
    assert (first[2], second[2]) == (y, x)
    assert lines[start + 3 : start + 5] == [f"{x} = {first[1]};", f"{y} = {second[1]};"]


def value_of(text: str, kind: str) -> float:
    """What a C++ compiler reads a float literal as."""
    text = text.strip("()")
    if match := re.fullmatch(r"__int_as_float\(0x([0-9a-f]{8})\)?", text):
        return struct.unpack("<f", struct.pack("<I", int(match[1], 16)))[0]
    if match := re.fullmatch(r"__longlong_as_double\(0x([0-9a-f]{16})LL\)?", text):
        return struct.unpack("<d", struct.pack("<Q", int(match[1], 16)))[0]
    if match := re.fullmatch(r"tw_b?f16_bits\(0x([0-9a-f]{4})\)?", text):
        return float(np.array(int(match[1], 16), np.uint16).view(ml_dtypes.bfloat16 if kind == "bf16" else np.float16))
    if kind == "f32":
        assert text.endswith("f")
        return float(np.float32(text[:-1]))
    assert re.fullmatch(r"-?[0-9.]+(e[+-]?[0-9]+)?", text)
    return float(text)


@pytest.mark.parametrize(
    ("type_", "dtype"), [(f16, np.float16), (bf16, ml_dtypes.bfloat16), (f32, np.float32), (f64, np.float64)]
)
@given(data=st.data())
def test_float_literals_are_exact(type_, dtype, data: st.DataObject) -> None:
    kind = str(type_)
    value = data.draw(st.floats(width=16 if kind == "f16" else 64 if kind == "f64" else 32))
    with np.errstate(all="ignore"):
        expected = float(np.array(value, np.float64).astype(dtype))
    got = value_of(literal(FloatAttr(value, type_)), kind)
    if math.isnan(expected):
        assert math.isnan(got)
    else:
        assert (got, math.copysign(1, got)) == (expected, math.copysign(1, expected))


@given(width=st.sampled_from([8, 16, 32, 64]), data=st.data())
def test_integer_literals_are_exact_and_fit_their_type(width: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(-(1 << (width - 1)), (1 << (width - 1)) - 1))
    text = literal(IntegerAttr(value, IntegerType(width)))
    assert eval(text.replace("LL", "")) == value
    assert all(int(digits) < 1 << (max(width, 32) - 1) for digits in re.findall(r"\d+", text))
