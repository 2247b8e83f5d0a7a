"""Products on the matrix instructions of sm_90a: the schedule, the kernel and its C++ are those of the design.

`docs/design/ir/simt_gemm_hopper.mlir` was written by hand; what the passes make of a product is held against it.
"""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest
from xdsl.dialects import scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from tests.lowering.support import parsed
from tilewright.api import frontend as tw
from tilewright.api.build import build_module
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.registry import make_context
from tilewright.dialects.simt.roles import RolesOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.lowering.pipelines import TENSOR, TILE, run
from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.passes.remarks import collecting_remarks

M, N = tw.symbols("M N")

DESIGN = Path(__file__).parents[2] / "docs" / "design" / "ir" / "simt_gemm_hopper.mlir"

PRODUCT = """
sym.symbol @a_s0 {source = "stride"}
sym.symbol @b_s0 {source = "stride"}
sym.symbol @c_s0 {source = "stride"}
sym.symbol @a_base {source = "base"}
sym.symbol @b_base {source = "base"}
sym.symbol @c_base {source = "base"}
tile.kernel @gemm(%a: !tile.buf<[4096, 4096], bf16, global, #tile.strided<[a_s0, 1]>>, \
%b: !tile.buf<[4096, 8192], bf16, global, #tile.strided<[b_s0, 1]>>, \
%c: !tile.buf<[4096, 8192], bf16, global, #tile.strided<[c_s0, 1]>>) grid (%i, %j) = [32, 32] index_width 32 \
arch sm_90a assumes [a_s0 mod 8 == 0, b_s0 mod 8 == 0, c_s0 mod 8 == 0, a_base mod 16 == 0, b_base mod 16 == 0, \
c_base mod 16 == 0] bases [a_base, b_base, c_base] {
  %m0 = sym.apply 128*i where i = %i
  %n0 = sym.apply 256*j where j = %j
  %f = tile.alloc : !tile.buf<[128, 256], f32, fragment>
  tile.fill %f with 0.000000e+00 : f32
  tile.for %k0 = 0 to 4096 step 64 {
    %ta = tile.alloc : !tile.buf<[128, 64], bf16, fragment>
    tile.copy %a[%m0, %k0] to %ta bounds [clip, clip] other 0.000000e+00 : bf16
    %tb = tile.alloc : !tile.buf<[64, 256], bf16, fragment>
    tile.copy %b[%k0, %n0] to %tb bounds [clip, clip] other 0.000000e+00 : bf16
    tile.mma (d0, d1, d2) %ta[d0, d2], %tb[d2, d1] into %f[d0, d1]
  }
  %g = tile.alloc : !tile.buf<[128, 256], bf16, fragment>
  tile.map (d0, d1) ins(%f[d0, d1]) outs(%g[d0, d1]) {
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    tile.yield %y
  }
  tile.copy %g to %c[%m0, %n0] bounds [clip, clip]
}
"""


def kernel_of(text: str) -> KernelOp:
    module = parsed(text)
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    return kernel


@pytest.fixture(scope="module")
def design() -> KernelOp:
    return kernel_of(DESIGN.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def made() -> KernelOp:
    module = parsed(PRODUCT)
    run(module, make_context(), TILE, arch="sm_90a", verify_each=True)
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    return kernel


def line_of(op: Operation) -> str:
    """The first line of an op with its names taken away, and with what is scoped to warpgroups or a role alike."""
    first = str(op).partition("\n")[0]
    bare = re.sub(r"%\w+(\[[^\]]*\])?", "%", first)
    return re.sub(r"elect (warpgroup|role)", "elect group", re.sub(r"barrier \d+ threads", "barrier threads", bare))


PROTOCOL = re.compile(
    r"simt\.(mbar\.(init|expect)|bulk\.wait|named_barrier|wgmma|fence|roles|tma\.store|stmatrix)\b|.*simt\.mbar at"
)


def test_the_protocol_is_that_of_the_design(design: KernelOp, made: KernelOp) -> None:
    """Arrivals, bytes, pending stores, barriers, descriptors and roles; each as often."""
    wanted, got = (Counter(filter(PROTOCOL.match, map(line_of, k.walk()))) for k in (design, made))
    assert got == wanted
    assert made.threads.value.data == design.threads.value.data
    assert str(made.grid.data) == "1024"


def constant(op: Operation) -> int:
    assert isinstance(op, ConstantOp)
    assert isinstance(op.value, IntegerAttr)
    return op.value.value.data


def test_rings_start_at_the_first_slot(made: KernelOp) -> None:
    """Consumers wait for phase 0 of slot 0, the producer for the phase before: all slots are free."""
    (roles,) = (op for op in made.walk() if isinstance(op, RolesOp))
    starts = []
    for role, body in zip(roles.roles, roles.bodies, strict=True):
        loop = next(op for op in body.walk() if isinstance(op, scf.ForOp))
        values = [a.owner for a in loop.iter_args]
        starts.append((role.name, [constant(v) for v in values if isinstance(v, Operation)][:2]))
    assert starts == [("consumer", [0, 0]), ("producer", [0, 1])]


def test_tensor_maps_are_chosen_only_where_they_can_move_both_operands() -> None:
    """Each such case asks for strides and addresses of 16 bytes (CUDA driver API, cuTensorMapEncodeTiled)."""
    product = tw.matmul(tw.placeholder((M, 512), "bfloat16"), tw.placeholder((512, N), "bfloat16"))
    module = build_module(product)
    run(module, make_context(), TENSOR[: TENSOR.index("lin-to-tile") + 1], arch="sm_90a")
    cases = re.findall(r'case "tile\w+_([nt])([nt])" when \[(.*)\]', str(module))
    assert {a + b for a, b, _ in cases} == {"nn", "nt", "tn", "tt"}
    for *letters, text in cases:
        asked = set(text.split(", "))
        for number, letter in enumerate(letters):
            along, across = (1, 0) if letter == "n" else (0, 1)
            name = f"arg{number}_used"  # the operand itself, or its copy where that one is taken
            stride = f"{name}_s{across}"
            assert {
                f"{name}_s{along} == 1",
                f"{stride} >= 1",
                f"{stride} mod 8 == 0",
                f"{name}_base mod 16 == 0",
            } <= asked


@pytest.mark.parametrize(
    ("assumed", "word"), [("a_base mod 16 == 0", "address"), ("b_s0 mod 8 == 0", "stride")], ids=["base", "stride"]
)
def test_what_is_not_known_to_be_aligned_stays_with_the_threads(assumed: str, word: str) -> None:
    module = parsed(PRODUCT.replace(f"{assumed}, ", ""))
    with collecting_remarks() as remarks:
        run(module, make_context(), ("choose-mma",))
    assert "wgmma" not in str(module)
    assert [word in str(r) and "may be no multiple of 16 bytes" in str(r) for r in remarks] == [True]


def test_the_design_in_cpp(design: KernelOp) -> None:
    lines = [line.strip() for line in emit_kernel(design, "sm_90a").partition('extern "C"')[2].splitlines()]

    def count(pattern: str) -> int:
        return sum(re.fullmatch(pattern, line) is not None for line in lines)

    assert count(r"if \(v\d+ >= 0 && v\d+ < 2\) \{") == 1
    assert count(r"if \(v\d+ >= 2 && v\d+ < 3\) \{") == 1
    assert count(r"tw_more_registers<240>\(\);") == count(r"tw_fewer_registers<24>\(\);") == 1
    assert count(r"tw_tma_load\(tw_shared_address\(v\d+ \+ v\d+\), &v\d+, v\d+ \+ 8 \* v\d+, v\d+, v\d+\);") == 2
    assert count(r"tw_tma_store\(tw_shared_address\(v\d+ \+ v\d+\), &v\d+, v\d+, v\d+\);") == 1
    assert count(r"tw_bulk_wait_read<1>\(\);") == count(r"tw_bulk_wait<0>\(\);") == 1


WIDTHS = (8, 16, 32, 64, 96, 128, 192, 256)


@pytest.mark.parametrize("columns", WIDTHS)
def test_every_width_of_a_product_has_its_instruction(columns: int) -> None:
    text = DESIGN.read_text(encoding="utf-8")
    text = text.replace("m64n256k16", f"m64n{columns}k16")
    source = emit_kernel(kernel_of(text), "sm_90a")
    assert f"tw_wgmma_bf16_n{columns}<" in source


def test_a_width_without_an_instruction_is_an_error_at_the_product() -> None:
    text = DESIGN.read_text(encoding="utf-8").replace("m64n256k16", "m64n24k16")
    with pytest.raises(TilewrightError, match="n to be one of 8, 16, 32, 64, 96, 128, 192, 256, got 24") as raised:
        emit_kernel(kernel_of(text), "sm_90a")
    assert raised.value.location is not None
    assert "simt.wgmma" in text.splitlines()[raised.value.location.line - 1]


ROLES = """
simt.kernel @k(%on : i1) threads 384 smem 0 grid [1] {
  simt.elect role {
    simt.fence async
  }
  scf.if %on {
    simt.roles {
      role producer warpgroups [0, 1] registers 40 {
      }
      role consumer warpgroups [1, 2] registers 248 {
        simt.elect role {
          simt.fence async
        }
      }
      role spare warpgroups [2, 3] {
      }
    }
  }
}
"""


def test_a_role_elects_its_first_thread_and_asks_for_more_or_fewer_registers() -> None:
    """Outside of roles it is thread 0. At the start each of 384 threads has 168 of 65536 registers, in steps of 8."""
    lines = [line.strip() for line in emit_kernel(kernel_of(ROLES), "sm_90a").partition('extern "C"')[2].splitlines()]
    elected = [line for line in lines if line.startswith("if (threadIdx.x ==")]
    assert elected == ["if (threadIdx.x == 0) {", "if (threadIdx.x == 128) {"]
    assert [line for line in lines if "_registers<" in line] == [
        "tw_fewer_registers<40>();",
        "tw_more_registers<248>();",
    ]


def test_what_sm_90a_brings_is_for_sm_90a() -> None:
    with pytest.raises(TilewrightError, match=r"simt\.elect is for sm_90a, got sm_80") as raised:
        emit_kernel(kernel_of(ROLES), "sm_80")
    assert raised.value.location is not None
    assert raised.value.location.line == 3


def test_operands_of_the_instructions_follow_the_accumulators() -> None:
    """An instruction of n columns has n / 2 accumulators; two descriptors, a predicate and two numbers follow, or four
    registers, a descriptor and a predicate."""
    header = files("tilewright.lowering").joinpath("tilewright_hopper.cuh").read_text(encoding="utf-8")
    found = re.findall(r"^TW_WGMMA\((\d+), TW_NAMES_(\d+), ([\d, ]+), TW_", header, re.MULTILINE)
    assert [int(n) for n, _, _ in found] == list(WIDTHS)
    for n, names, numbers in found:
        first = int(n) // 2
        assert int(names) == first
        assert [int(x) for x in numbers.split(",")] == list(range(first, first + 6))
