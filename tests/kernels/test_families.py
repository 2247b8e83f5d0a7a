"""A handful of families as `make check-kernels` checks all, and the tool around them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.kernels.build import ARCHITECTURES, Row, Workshop, lowered
from tests.kernels.check import SCHEDULES, VARIANTS, main, schedule_of, uncovered
from tests.kernels.checks import LOG_CHECKS, SASS_CHECKS, Finding, accesses
from tests.kernels.families import FAMILIES
from tests.kernels.sass import count_instructions, nvdisasm_path
from tilewright.lowering.lin_to_tile import schedules
from tilewright.runtime.nvrtc import compile_cubin

QUICK = ("transpose_021", "mixed_dtypes", "softmax", "matmul_bias_relu", "sum_3d_1", "copy_i8", "hand_staging")

needs_nvdisasm = pytest.mark.skipif(nvdisasm_path() is None, reason="nvdisasm is not installed")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("kernels"))


@needs_nvdisasm
@pytest.mark.nvrtc
@pytest.mark.parametrize("name", QUICK)
def test_a_family_keeps_its_promises(workshop: Workshop, name: str) -> None:
    rows = workshop.check(FAMILIES[name])
    assert [str(finding) for row in rows for finding in row.findings] == []
    assert {row.arch for row in rows} == set(ARCHITECTURES)
    read = {row.variant for row in rows if set(row.checks) == {*LOG_CHECKS, *SASS_CHECKS}}
    assert read == {row.variant for row in rows}


@needs_nvdisasm
@pytest.mark.nvrtc
def test_what_is_kept_is_not_made_again(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    first = workshop.check(FAMILIES["hand_scale"])
    for step in ("lowered", "disassemble"):
        monkeypatch.setattr(f"tests.kernels.build.{step}", lambda *_: pytest.fail("made again"))
    again = Workshop(workshop.root)
    assert again.check(FAMILIES["hand_scale"]) == first
    assert again.cubins.stats().compiled == 0


@pytest.mark.nvrtc
def test_ptxas_does_not_spill_to_make_room_for_a_block() -> None:
    """Left alone it spills some bytes of this kernel, for two blocks at a time in place of one."""
    variants = {f"{each.kernel}/{each.variant}": each for each in lowered(FAMILIES["conv2d_bf16"])}
    variant = variants["main_0_large/general64"]
    free = compile_cubin(variant.source, "sm_80").resources[variant.symbol]
    assert (free.stack_bytes, free.spill_store_bytes, free.spill_load_bytes) == (0, 0, 0)
    two = variant.source.replace("__launch_bounds__(256)", "__launch_bounds__(256, 2)")
    bound = compile_cubin(two, "sm_80").resources[variant.symbol]
    assert bound.registers <= 128 < free.registers
    assert bound.spill_store_bytes > 0, "bounds that name blocks are kept"


def row(kernel: str, variant: str, *findings: Finding) -> Row:
    return Row("family", kernel, variant, "sm_80", 32, 0, 0, [], list(findings))


def test_schedules_without_a_family_are_named() -> None:
    rows = [row("main_0", v) for v in VARIANTS] + [row(f"main_0_{s}", v) for s in SCHEDULES[1:] for v in VARIANTS]
    assert uncovered(rows) == {}
    assert list(uncovered([r for r in rows if (r.kernel, r.variant) != ("main_0_large", "vector64")])) == [
        "large/vector64"
    ]
    assert schedule_of("main_10_on_chip") == "on_chip"


def test_the_schedules_are_those_of_the_lowering() -> None:
    text = Path(schedules.__file__).read_text(encoding="utf-8")
    assert {"tiled", *re.findall(r'writer\("(\w+)"', text)} == set(SCHEDULES)


def test_instructions_are_read_off_a_listing() -> None:
    listing = """
        .section  .text.k,"ax",@progbits
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0140*/              @!P2 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0150*/              @UP0 UMOV UR4, 0x1 ;
        /*0160*/                   STS.U16 [R3], R4 ;
        /*0170*/                   STG.E desc[UR4][R2.64], R4 ;
        /*0180*/                   STG.E desc[UR4][R2.64+0x4], R5 ;
    """
    counts = count_instructions(listing)
    assert counts == {"LDC": 1, "LDG.E.128.CONSTANT": 1, "UMOV": 1, "STS.U16": 1, "STG.E": 2}
    assert accesses(counts) == {
        ("load", "global", 16): 1, ("store", "shared", 2): 1, ("store", "global", 4): 2,
    }  # fmt: skip


@needs_nvdisasm
@pytest.mark.nvrtc
def test_the_tool_ends_with_1_and_names_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--only", "hand_scale", "--jobs", "1", "--cache", str(tmp_path), "--json", str(tmp_path / "rows.json")]
    assert main(arguments) == 0
    assert "1 families, 4 kernels compiled" in capsys.readouterr().out
    assert {each["arch"] for each in json.loads((tmp_path / "rows.json").read_text())["rows"]} == set(ARCHITECTURES)
    monkeypatch.setattr("tests.kernels.checks.MOST_REGISTERS", 1)
    assert main(arguments) == 1
    shown = capsys.readouterr().out
    assert "hand_scale: scale/hand32 sm_80: registers: expected at most 1 registers for 64 threads, got" in shown
    assert main(["--only", "no_such_family"]) == 2
