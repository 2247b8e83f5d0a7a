"""Faults of asynchronous kernels, planted in a product that is right: each is named, whenever copies land."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.sim.ring_gemm import Gemm, line_of, planted
from tilewright.diagnostics import TilewrightError

LANDINGS = ("latest", "earliest")


def kinds_at(report: Any) -> dict[str, set[int]]:
    """The lines at which each kind of fault was found."""
    found: dict[str, set[int]] = {}
    for each in report.diagnostics:
        assert each.site.location is not None
        found.setdefault(each.kind, set()).add(each.site.location.line)
    return found


@pytest.mark.parametrize("landing", LANDINGS)
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_the_right_kernel_has_no_fault(landing: Any, seed: int | None) -> None:
    gemm = Gemm(136, 72, 200)
    report = gemm.run(grid=2, landing=landing, seed=seed)
    assert not report.diagnostics, [str(d) for d in report.diagnostics]
    gemm.check()


LOOP = (
    "%slot_end, %phase_end = scf.for %t = %block to %tiles step %grid "
    "iter_args(%slot0 = %c0, %phase0 = PARITY) -> (i32, i32) : i32 {"
)
PRODUCER, CONSUMER = LOOP.replace("PARITY", "%c0"), LOOP.replace("PARITY", "%c1")
LOAD, LOAD_B, WGMMA, STORE, STMATRIX = ("load a", "load b", "wgmma", "store", "stmatrix")

FAULTS: dict[str, tuple[dict[str, str], str, tuple[str, ...]]] = {
    # name: (lines to replace, kind of fault, ops at one of which it is found)
    "no full wait": ({"full_wait": ""}, "uninitialised-shared", (WGMMA,)),
    "no empty wait": ({"empty_wait": ""}, "race", (LOAD,)),
    "producer starts with the wrong parity": ({"producer_starts": PRODUCER}, "deadlock", ("full wait", "empty wait")),
    "consumer starts with the wrong parity": ({"consumer_starts": CONSUMER}, "uninitialised-shared", (WGMMA,)),
    "too many bytes expected": (
        {"expect": "simt.mbar.expect %full[%slot] bytes 16400"}, "deadlock", ("full wait", "empty wait"),
    ),
    "too few bytes expected": ({"expect": "simt.mbar.expect %full[%slot] bytes 8192"}, "race", (LOAD_B, WGMMA)),
    "no barrier before stmatrix": ({"barrier_before_stmatrix": ""}, "race", (STMATRIX,)),
    "no barrier after stmatrix": ({"barrier_after_stmatrix": ""}, "race", (STORE,)),
    "no fence async": ({"fence_async": ""}, "race", (STORE,)),
    "no bulk wait read": ({"bulk_wait_read": ""}, "race", (STMATRIX,)),
    "the wrong slot released": (
        {"release": "simt.mbar.arrive %empty[%slot]"}, "deadlock", ("full wait", "empty wait"),
    ),
    "released before the wait": ({"wait_1": ""}, "race", (LOAD,)),
    "wait too weak": ({"wait_1": "simt.wgmma.wait 2"}, "race", (LOAD,)),
    "no wait 0": ({"wait_0": ""}, "accumulator-in-flight", ("accumulator",)),
    "wait 0 does not name the accumulators": (
        {"wait_0": "simt.wgmma.wait 0"}, "accumulator-in-flight", ("accumulator",),
    ),
    "a slot overwritten too early": (
        {"empty_wait": "simt.mbar.wait %empty[%slot] parity %c1"}, "race", (LOAD,),
    ),
    "empty takes too few arrivals": (
        {"empty_arrivals": "simt.mbar.init %empty arrivals 2"}, "missed-phase", ("empty wait",),
    ),
    "a copy that nobody waits for": (
        {"after_the_producer's_loop": "simt.tma.load %ta[%c0, %c0] to %sa[%c0] signal %full[%c0]"},
        "left-in-flight",
        ("after the producer's loop",),
    ),
    "a store that nobody waits for": ({"last_bulk_wait": ""}, "left-in-flight", (STORE,)),
    "all tiles stored to one place": (
        {"store": "simt.tma.store %sc[%c0] to %tc[%c0, %c0]"}, "global-race", (STORE,),
    ),
    "coordinates that wrap": (
        {
            "store": "%big = arith.constant 2147483647 : i32 %m1 = arith.addi %big, %c64 : i32 "
            "simt.tma.store %sc[%c0] to %tc[%m1, %n0]"
        },
        "index-wrap",
        (STORE,),
    ),
    "no fence before wgmma": ({"wgmma_fence": ""}, "wgmma", (WGMMA,)),
    "no fence after the barriers' start": ({"init_fence": ""}, "mbarrier", (LOAD,)),
    "no barrier after the barriers' start": ({"init_barrier": ""}, "mbarrier", ("empty wait", "full wait")),
}  # fmt: skip


@pytest.mark.parametrize("landing", LANDINGS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_named(name: str, landing: Any) -> None:
    lines, kind, places = FAULTS[name]
    report = Gemm(136, 72, 200).run(planted(**lines), grid=2, landing=landing)
    found = kinds_at(report)
    assert kind in found, [str(d) for d in report.diagnostics]
    assert found[kind] & {line_of(place) for place in places}, [str(d) for d in report.diagnostics]


def test_a_deadlock_below_level_check_is_an_error() -> None:
    text = planted(expect="simt.mbar.expect %full[%slot] bytes 16400")
    message = r"deadlock: role consumer of 1 left waits for phase 0 \(parity 0\) of %full\[0\] .* 16 bytes are missing"
    with pytest.raises(TilewrightError, match=message):
        Gemm(64, 64, 64).run(text, level="fast")


def test_a_race_names_both_sides() -> None:
    report = Gemm(136, 72, 200).run(planted(wait_1=""), grid=2)
    races = {d.message for d in report.of_kind("race")}
    assert "write to what a matrix instruction of warpgroup 0 reads, with nothing to order the two" in races
    report = Gemm(136, 72, 200).run(planted(fence_async=""), grid=2)
    (race,) = report.of_kind("race")
    assert race.message == "read of what warp 0 writes, without a simt.fence async after that"


SYNCHRONISING = frozenset(
    "simt." + name
    for name in (
        "barrier", "bulk.commit", "bulk.wait", "fence", "mbar.arrive", "mbar.expect", "mbar.init", "mbar.wait",
        "named_barrier", "wgmma.commit", "wgmma.fence", "wgmma.wait",
    )
)  # fmt: skip
COUNT = sum(text.strip().split(" ")[0] in SYNCHRONISING for text in planted().splitlines())


@pytest.mark.parametrize("landing", LANDINGS)
@pytest.mark.parametrize("number", range(COUNT))
def test_each_synchronising_op_is_missed(number: int, landing: Any) -> None:
    lines = planted().splitlines()
    (at,) = [[i for i, text in enumerate(lines) if text.strip().split(" ")[0] in SYNCHRONISING][number]]
    removed, lines[at] = lines[at], "%nothing = arith.constant 0 : i32"
    report = Gemm(136, 72, 200).run("\n".join(lines), grid=2, landing=landing)
    assert report.diagnostics, removed
