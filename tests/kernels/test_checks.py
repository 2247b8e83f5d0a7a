"""Every check finds a fault that is planted for it: in the source, in the intrinsics header, in the compiler's options,
or in what the kernel is said to promise. The same kernels without the fault pass all checks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import pytest
from xdsl.dialects import math

from tests.kernels.build import Variant, Workshop, lowered
from tests.kernels.checks import LOG_CHECKS, SASS_CHECKS, Evidence, run_checks
from tests.kernels.families import FAMILIES, Family, of_text
from tests.kernels.promises import READERS, SILENT, Array, Promises
from tests.kernels.sass import nvdisasm_path
from tests.regressions.support import map_program
from tilewright.dialects.simt.dialect import Simt
from tilewright.runtime.nvrtc import compile_cubin

pytestmark = [
    pytest.mark.nvrtc,
    pytest.mark.skipif(nvdisasm_path() is None, reason="nvdisasm is not installed"),
]

PRODUCT_AND_SUM = "%m = arith.mulf %p0, %p0 : f32\n    %z = arith.addf %m, %p1 : f32\n    lin.yield %z : f32"
AXPY = of_text("axpy", map_program("M, N", 2, PRODUCT_AND_SUM), "M", "N")
"""A product and a sum that are to round one by one."""


@cache
def variants(name: str) -> dict[str, Variant]:
    """The variants of a family by `kernel/variant`."""
    family: Family = AXPY if name == AXPY.name else FAMILIES[name]
    return {f"{each.kernel}/{each.variant}": each for each in lowered(family)}


Edit = Callable[[Variant], Variant]


def text(old: str, new: str) -> Edit:
    """Replaces a text everywhere in the source; it must be there."""

    def edit(variant: Variant) -> Variant:
        assert old in variant.source, old
        return replace(variant, source=variant.source.replace(old, new))

    return edit


def begin(statements: str) -> Edit:
    """Puts statements at the beginning of the kernel; v0 is its first pointer."""

    def edit(variant: Variant) -> Variant:
        head, brace, _ = variant.source.rpartition(f" {variant.symbol}(")[2].partition(") {\n")
        assert brace, head
        return replace(variant, source=variant.source.replace(head + brace, f"{head}{brace}  {statements}\n"))

    return edit


def promise(**changes: object) -> Edit:
    """Has the kernel promise something else."""
    return lambda variant: replace(variant, promises=replace(variant.promises, **changes))


@dataclass(frozen=True)
class Plant:
    """A fault in a variant of a family, the check that is to find it, and what the finding says."""

    check: str
    family: str
    variant: str
    edit: Edit
    says: str
    options: tuple[str, ...] = ()


LOCAL_ARRAY = begin(
    "float plant[32] = {}; for (int i = 0; i < 32; ++i) plant[i * threadIdx.x & 31] += v0[i];"
    " v1[0] = plant[threadIdx.x & 31];"
)
ADD, TRANSPOSED = "add_float32", "hand_transpose"
VECTOR, GENERAL, HAND = "main_0/vector32", "main_0/general32", "transpose/hand32"
LOADS = "constexpr int bytes = N * sizeof(T) < 16 ? N * sizeof(T) : 16;\n"
SCALARS = "constexpr int bytes = sizeof(T);\n"

PLANTS = {
    "a local array that is indexed dynamically": Plant(
        "stack", TRANSPOSED, HAND, LOCAL_ARRAY, "expected 0 bytes of stack, got 128"
    ),
    "the same, in machine code": Plant("local-memory", TRANSPOSED, HAND, LOCAL_ARRAY, "access to local memory, got"),
    "registers for eight blocks at a time": Plant(
        "spills",
        "example_batch_matmul",
        "main_0_large/vector32",
        text("__launch_bounds__(256)", "__launch_bounds__(256, 8)"),
        "expected 0 bytes spilled, got",
    ),
    "threads that registers do not suffice for": Plant(
        "registers",
        "example_batch_matmul",
        "main_0_large/vector32",
        promise(threads=1024),
        "expected at most 64 registers for 1024 threads, got",
    ),
    "shared memory beside what the launch asks for": Plant(
        "shared-memory",
        ADD,
        GENERAL,
        begin("__shared__ volatile int plant[32]; plant[threadIdx.x & 31] = 1;"),
        "expected 0 bytes beside the 0 that a launch asks for, got 128",
    ),
    "an array beyond the shared memory": Plant(
        "shared-memory", TRANSPOSED, HAND, promise(smem=4096), "expected an end within 4096 bytes, got 4220"
    ),
    "more shared memory than there is": Plant(
        "shared-memory", TRANSPOSED, HAND, promise(smem=200_000), "expected at most 166912 bytes, got 200000"
    ),
    "a comparison that is always false": Plant(
        "warnings", ADD, GENERAL, begin("unsigned plant = v2[0]; if (plant < 0) v2[0] = 0;"), "expected no warning, got"
    ),
    "scalar stores for a vector": Plant(
        "global-width",
        ADD,
        VECTOR,
        lambda v: replace(v, source=re.sub(r"(void tw_store\(.*\n).*\n", rf"\1  {SCALARS}", v.source)),
        "width 4 if %",
    ),
    "scalar loads for a vector": Plant(
        "global-width", ADD, VECTOR, text(LOADS, SCALARS), "global loads of 16 bytes, got 0 (there are those of 4)"
    ),
    "a vector in a general variant": Plant(
        "global-unnamed",
        ADD,
        GENERAL,
        begin("reinterpret_cast<float4 *>(v2)[threadIdx.x] = make_float4(0, 0, 0, 0);"),
        "expected no global store of 16 bytes, as no op has one, got 1",
    ),
    "scalar accesses to shared memory": Plant(
        "shared-width",
        "example_batch_matmul",
        "main_0_small/vector32",
        lambda v: text(LOADS, SCALARS)(
            text("reinterpret_cast<const Word *>(p)[i]", "((const volatile Word *)p)[i]")(v)
        ),
        "expected a shared load of 16 bytes or more, got those of 4",
    ),
    "shared memory where the IR has none": Plant(
        "shared-unnamed",
        ADD,
        GENERAL,
        begin("__shared__ volatile int plant[32]; plant[threadIdx.x & 31] = 1;"),
        "expected no shared store, as no op is one, got 1",
    ),
    "a pointer to either memory": Plant(
        "generic-addresses",
        TRANSPOSED,
        HAND,
        begin("volatile float *plant = clock() & 1 ? (float *)tw_smem : v1; plant[threadIdx.x] = 1;"),
        "expected no access through a generic address, got",
    ),
    "an atomic addition": Plant("other-memory", ADD, GENERAL, begin("atomicAdd(v2, 1.0f);"), "as no op asks for one"),
    "barriers that are not emitted": Plant(
        "barriers", TRANSPOSED, HAND, text("__syncthreads();", ""), "simt.barrier: expected at least 1 BAR.SYNC, got 0"
    ),
    "a barrier that is not in the IR": Plant(
        "barriers", ADD, GENERAL, begin("__syncthreads();"), "expected no barrier, as the IR has none, got 1"
    ),
    "a product that is not there": Plant(
        "special-instructions", ADD, GENERAL, promise(instructions={"HGMMA": "a product"}), "expected HGMMA, got none"
    ),
    "a shuffle of another mode": Plant(
        "shuffles",
        "hand_row_sum",
        "row_sum/hand32",
        text("tw_shuffle_xor(v", "tw_shuffle_down(v"),
        "expected SHFL.BFLY",
    ),
    "a shuffle that is not in the IR": Plant(
        "shuffles", ADD, GENERAL, begin("v2[0] = __shfl_sync(~0u, v0[threadIdx.x], 3);"), "expected no SHFL.IDX"
    ),
    "a product and a sum for a fused one": Plant(
        "fused",
        "hand_matmul",
        "matmul/hand32",
        text("fmaf(a, b, c)", "a * b + c"),
        "expected a fused multiply-add of f32",
    ),
    "the same in f64": Plant(
        "fused",
        "fma_f64",
        VECTOR,
        text("return fma(a, b, c)", "return a * b + c"),
        "expected a fused multiply-add of f64",
    ),
    "the same in bf16": Plant(
        "fused",
        "fma_bf16",
        VECTOR,
        text("__nv_bfloat16 c) { return __hfma(a, b, c)", "__nv_bfloat16 c) { return a"),
        "expected a fused multiply-add of bf16",
    ),
    "a fused one for a product and a sum": Plant(
        "contraction", AXPY.name, GENERAL, lambda v: v, "expected no fused multiply-add, got", ("--fmad=true",)
    ),
}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("kernels"))


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_fault_is_found(workshop: Workshop, name: str) -> None:
    plant = PLANTS[name]
    sound = variants(plant.family)[plant.variant]
    with_sass = plant.check in SASS_CHECKS
    evidence = workshop.evidence(plant.family, plant.edit(sound), "sm_80", with_sass, plant.options)
    _, findings = run_checks(evidence)
    found = [str(each) for each in findings if each.check == plant.check]
    start = f"{plant.family}: {plant.variant} sm_80: {plant.check}: "
    assert any(each.startswith(start) and plant.says in each for each in found), [str(each) for each in findings]


@pytest.mark.parametrize(("family", "variant"), sorted({(p.family, p.variant) for p in PLANTS.values()}))
def test_without_the_fault_nothing_is_found(workshop: Workshop, family: str, variant: str) -> None:
    checks, findings = run_checks(workshop.evidence(family, variants(family)[variant], "sm_80", with_sass=True))
    assert findings == []
    assert checks == [*LOG_CHECKS, *SASS_CHECKS]


WGMMA = """
extern "C" __global__ void __launch_bounds__(128) k(float *out, unsigned long long a, unsigned long long b) {
  float d[4] = {0, 0, 0, 0};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int i = 0; i < 4; ++i) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
    TOUCHED
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int j = 0; j < 4; ++j) out[threadIdx.x * 4 + j] = d[j];
}
"""


@pytest.mark.parametrize(("touched", "expected"), [("", set()), ("d[0] += out[i];", {"C7511", "C7517", "C7519"})])
def test_products_that_wait_for_each_other_are_found(touched: str, expected: set[str]) -> None:
    """An accumulator that is read while products that add to it are in flight: ptxas serialises them."""
    compiled = compile_cubin(WGMMA.replace("TOUCHED", touched), "sm_90a")
    evidence = Evidence("wgmma", "k", "", "sm_90a", Promises(128, 0), compiled.resources["k"], compiled.log)
    _, findings = run_checks(evidence)
    assert {each.check for each in findings} == ({"serialised"} if expected else set())
    assert {code for each in findings for code in re.findall(r"\((C\d+)\)", str(each))} == expected


def test_every_check_has_a_fault() -> None:
    assert {plant.check for plant in PLANTS.values()} | {"serialised"} == {*LOG_CHECKS, *SASS_CHECKS}


def test_every_simt_op_is_read_or_leaves_no_trace() -> None:
    known = {op for op in (*READERS, *SILENT) if op.name.startswith("simt.")}
    assert known == {op for op in Simt.operations if op.name != "simt.kernel"}
    assert not set(READERS) & SILENT
    assert math.FmaOp in READERS


def test_promises_come_back_from_json() -> None:
    made = variants(TRANSPOSED)[HAND].promises
    assert made.arrays == [Array(0, 4220, made.arrays[0].text)]
    assert Promises.from_json(made.as_json()) == made
