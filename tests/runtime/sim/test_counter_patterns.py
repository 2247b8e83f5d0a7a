"""The access patterns that are compared with a GPU's counters: here with the rules, and the script's other parts."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.kernels.sass import disassemble, nvdisasm_path
from tilewright.lowering.simt_to_cuda import emit_module, kernel_symbol
from tilewright.runtime.nvrtc import compile_cubin

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "counters.py"


def load() -> ModuleType:
    """The script as a module, from its path: another package of that name may be installed."""
    spec = spec_from_file_location("tilewright_counters", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


counters: Any = load()
PATTERNS = counters.patterns()


def test_there_are_patterns_of_every_kind() -> None:
    assert len({p.name for p in PATTERNS}) == len(PATTERNS) >= 70
    assert {p.counter for p in PATTERNS} == {
        "global load sectors", "global store sectors", "shared load wavefronts", "shared store wavefronts",
    }  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.name)
def test_a_pattern_follows_the_rules(pattern: Any) -> None:
    counts, report = counters.simulated(counters.kernels()[pattern.name], "check", small=True)
    assert not report.diagnostics
    assert counters.per_request(pattern, report) == pattern.per_request
    assert counts[pattern.counter] > 0


@pytest.mark.nvrtc
def test_the_compiler_keeps_each_access() -> None:
    """The instructions of a pattern are as wide as its accesses, and not merged."""
    if nvdisasm_path() is None:
        pytest.skip("no nvdisasm")
    kernels = counters.kernels()
    module = next(iter(kernels.values())).parent_op()
    listing = disassemble(compile_cubin(emit_module(module, "sm_90a"), "sm_90a").cubin)
    by_symbol = {part.split("\n", 1)[0].rstrip(":").strip(): part for part in listing.split("\n.text.")[1:]}
    opcode = {"global_load": "LDG.E", "global_store": "STG.E", "shared_load": "LDS", "shared_store": "STS"}
    for pattern in PATTERNS:
        text = by_symbol[kernel_symbol(kernels[pattern.name])]
        if pattern.template == "ldmatrix":
            kind, _, trans = pattern.words["KIND"].partition(" ")
            count = "" if kind == "x1" else f".{kind[1]}"
            wanted = f"LDSM.16.M{'T' if trans else ''}88{count}"
        else:
            bits = 8 * counters.BYTES[pattern.element] * pattern.width
            wanted = opcode[pattern.template] + {16: ".U16", 32: "", 64: ".64", 128: ".128"}[bits]
        assert re.search(rf" {re.escape(wanted)}(\.CONSTANT|\.STRONG\.SM)* ", text), (pattern.name, wanted)


TABLE = """==PROF== Connected to process 12 (/usr/bin/python3)
==PROF== Profiling "tw_a_1" - 0: 0%....50%....100% - 1 pass
"ID","Process ID","Kernel Name","Grid Size","l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum","other.sum"
"","","","","",""
"0","12","tw_a_1","(1, 1, 1)","1,048,576","n/a"
"1","12","tw_b_2(float *, int)","(1, 1, 1)","2048.0","3"
==PROF== Disconnected from process 12
"""


def test_the_table_of_ncu() -> None:
    rows = counters.read_table(TABLE)
    assert [row["Kernel Name"] for row in rows] == ["tw_a_1", "tw_b_2(float *, int)"]
    metric = counters.COUNTERS["global load requests"]
    found = counters.measured(rows, {"a": "tw_a_1", "b": "tw_b_2", "c": "tw_c_3"})
    assert found == {"a": {metric: 1048576}, "b": {metric: 2048}}
    assert counters.read_table("==ERROR== no kernels\n") == []
    assert counters.number("n/a") is None


def test_what_counts_as_agreement() -> None:
    sectors, wavefronts = "global load sectors", "shared load wavefronts"
    assert counters.disagreement(sectors, 100, 100) is None
    for got in (99, 101):
        assert "simulator 100, hardware" in counters.disagreement(sectors, 100, got)
    assert counters.disagreement(wavefronts, 10000, 10400) is None
    assert counters.disagreement(wavefronts, 10000, 10401).endswith("4.0 % above")
    assert counters.disagreement(wavefronts, 10000, 9999).endswith("below")
    assert counters.disagreement(wavefronts, 10000, None).endswith("not measured")


def test_the_page() -> None:
    pattern = PATTERNS[0]
    counts = dict.fromkeys(counters.COUNTERS, 8192)
    record = {
        "name": pattern.name, "note": pattern.note, "per_request": 4, "counter": pattern.counter, "simulator": counts,
        "hardware": counts, "metrics": {}, "disagreements": [],
    }  # fmt: skip
    page = counters.markdown([record], {"gpu": "H200", "date": "2026-01-01", "command": "ncu ..."})
    line = "| ld32_contiguous | 32 bits a lane, contiguous | 4 | global load sectors | 8,192 | 8,192 | 1.0000 | yes |"
    assert line in page.splitlines()
    assert "1 of 1 access patterns agree on one H200 (2026-01-01)" in page
