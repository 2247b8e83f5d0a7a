"""`ldmatrix`, `mma.sync` and `cp.async` as source, and as the instructions that they are there for."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from tests.kernels.sass import count_instructions, disassemble, nvdisasm_path
from tests.runtime.matrix_kernels import kernel_of, text_of
from tests.runtime.sim.test_async_copies import EDGES
from tests.runtime.sim.test_matrices import fragments_text, ldmatrix_text
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.nvrtc import compile_cubin


def instructions(text: str, arch: str) -> Mapping[str, int]:
    """Opcodes of a kernel's SASS, and how often each stands there."""
    compiled = compile_cubin(emit_kernel(kernel_of(text), arch), arch)
    assert "warning" not in compiled.log
    (resources,) = compiled.resources.values()
    assert (resources.stack_bytes, resources.spill_store_bytes, resources.spill_load_bytes) == (0, 0, 0)
    if nvdisasm_path() is None:
        pytest.skip("no nvdisasm")
    return count_instructions(disassemble(compiled.cubin))


def opcodes(found: Mapping[str, int], *starts: str) -> dict[str, int]:
    """Those that start with one of these words."""
    return {op: n for op, n in found.items() if op.startswith(starts)}


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_product_of_one_warp(arch: str) -> None:
    found = instructions(text_of("warp_matmul"), arch)
    products = {"HMMA.16816.F32.BF16": 1, "LDSM.16.M88.4": 1, "LDSM.16.MT88.2": 1}
    assert opcodes(found, "LDSM", "HMMA") == products
    # Fragments go from load to product as they are.
    assert not opcodes(found, "PRMT")


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_tiles_of_one_warp(arch: str) -> None:
    found = instructions(text_of("warp_tiles"), arch)
    products, loads = opcodes(found, "HMMA"), opcodes(found, "LDSM")
    assert set(products) == {"HMMA.16816.F32.BF16"}
    assert set(loads) == {"LDSM.16.M88.4"}
    # Four products for three loads, however often the loop along k is unrolled.
    assert sum(products.values()) * 3 == sum(loads.values()) * 4
    assert opcodes(found, "LDGSTS") == {"LDGSTS.E.BYPASS.128": 6}
    assert not opcodes(found, "PRMT", "LDL", "STL")


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_pipeline_of_asynchronous_copies(arch: str) -> None:
    found = instructions(text_of("pipeline"), arch)
    assert set(opcodes(found, "LDGSTS")) == {"LDGSTS.E.BYPASS.128.ZFILL"}
    assert "LDGDEPBAR" in found
    assert "DEPBAR.LE" in found


@pytest.mark.nvrtc
@pytest.mark.parametrize(
    ("shape", "dtype", "a", "b", "opcode"),
    [("m16n8k16", "f16", 8, 4, "HMMA.16816.F32"), ("m16n8k8", "f16", 4, 2, "HMMA.1688.F32"),
     ("m16n8k8", "bf16", 4, 2, "HMMA.1688.F32.BF16"), ("m16n8k8", "f32", 4, 2, "HMMA.1688.F32.TF32")],
)  # fmt: skip
def test_every_product(shape: str, dtype: str, a: int, b: int, opcode: str) -> None:
    text = fragments_text(shape, dtype, a, b)
    assert opcodes(instructions(text, "sm_80"), "HMMA") == {opcode: 1}


@pytest.mark.nvrtc
@pytest.mark.parametrize(
    ("kind", "opcode"),
    [("x1", "LDSM.16.M88"), ("x2", "LDSM.16.M88.2"), ("x1 trans", "LDSM.16.MT88"), ("x4 trans", "LDSM.16.MT88.4")],
)
def test_every_ldmatrix(kind: str, opcode: str) -> None:
    text, _ = ldmatrix_text("f16", 2, kind)
    assert opcodes(instructions(text, "sm_80"), "LDSM") == {opcode: 1}


@pytest.mark.nvrtc
@pytest.mark.parametrize(("width", "opcode"), [(2, "LDGSTS.E"), (4, "LDGSTS.E.64"), (8, "LDGSTS.E.BYPASS.128")])
def test_every_copy(width: int, opcode: str) -> None:
    text = EDGES.replace("WIDTH", str(width))
    plain = instructions(text.replace(" valid %n", ""), "sm_80")
    assert opcodes(plain, "LDGSTS") == {opcode: 1}
    filled = instructions(text, "sm_80")
    assert opcodes(filled, "LDGSTS") == {f"{opcode}.ZFILL": 1}


def test_source_of_each_op() -> None:
    lines = [line.strip() for line in emit_kernel(kernel_of(text_of("warp_matmul")), "sm_80").splitlines()]
    assert any(re.fullmatch(r"tw_ldmatrix<4, false>\(&v\d+\[0\], v\d+ \+ v\d+\);", line) for line in lines)
    assert any(re.fullmatch(r"tw_ldmatrix<2, true>\(&v\d+\[0\], v\d+ \+ v\d+\);", line) for line in lines)
    assert any(re.fullmatch(r"tw_mma_m16n8k16\(&v\d+\[0\], &v\d+\[0\], &v\d+\[0\]\);", line) for line in lines)
    lines = [line.strip() for line in emit_kernel(kernel_of(text_of("pipeline")), "sm_80").splitlines()]
    copy = r"tw_cp_async_zfill<16>\(v\d+ \+ v\d+, v\d+ \+ v\d+, v\d+ \* 4\);"
    assert sum(re.fullmatch(copy, line) is not None for line in lines) == 2
    assert lines.count("tw_cp_async_commit();") == 2
    assert lines.count("tw_cp_async_wait<1>();") == 1
