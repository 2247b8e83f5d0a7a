"""Clusters of two blocks that share a copy: right in every order, and each fault that is planted is named."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.sim.ring_gemm import CLUSTERS, Gemm, line_of, planted
from tests.runtime.sim.test_hopper_faults import LANDINGS, kinds_at
from tilewright.diagnostics import TilewrightError


@pytest.mark.parametrize("landing", LANDINGS)
@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("grid", [2, 4])
def test_the_right_kernel_has_no_fault(landing: Any, seed: int | None, grid: int) -> None:
    gemm = Gemm(136, 136, 200)  # three rows of tiles: the last block computes a tile beyond the edge
    report = gemm.run(planted(CLUSTERS), grid=grid, landing=landing, seed=seed)
    assert not report.diagnostics, [str(d) for d in report.diagnostics]
    gemm.check()


@pytest.mark.parametrize("sizes", [(1, 8, 8), (64, 64, 64), (65, 8, 0), (129, 72, 64)])
def test_sizes_at_the_edges(sizes: tuple[int, int, int]) -> None:
    gemm = Gemm(*sizes)
    assert not gemm.run(planted(CLUSTERS), grid=2).diagnostics
    gemm.check()


FAULTS: dict[str, tuple[dict[str, str], str, tuple[str, ...]]] = {
    # name: (lines to replace, kind of fault, ops at one of which it is found)
    "the other block's slot is not waited for": (
        {
            "empty_arrivals": "simt.mbar.init %empty arrivals 4",
            "release": "simt.mbar.arrive %empty[%previous]",
            "second_release": "",
            "last_release": "simt.mbar.arrive %empty[%old]",
            "second_last_release": "",
        },
        "race",
        ("load b",),
    ),
    "released before the wait": ({"wait_1": ""}, "race", ("load a", "load b")),
    "no release at the other block": ({"second_release": ""}, "deadlock", ("full wait", "empty wait")),
    "no wait for a free slot": ({"empty_wait": ""}, "race", ("load a", "load b")),
    "no barrier of the cluster at its start": ({"init_barrier": "simt.barrier"}, "mbarrier", ("load b",)),
    "no barrier of the cluster at its end": ({"end_barrier": "// nothing"}, "left-in-flight", ("last release",)),
    "half of the tile reaches one block": (
        {"load_b": "simt.tma.load %tb[%kb, %n0] to %sb[%b0] signal %full[%slot]"},
        "deadlock",
        ("full wait", "empty wait"),
    ),
    "fewer bytes are awaited": (
        {"expect": "simt.mbar.expect %full[%slot] bytes 12288"}, "race", ("load b", "load a", "wgmma"),
    ),
    "a block that does not exist": (
        {"release": "simt.mbar.arrive %empty[%previous] at %c2"}, "out-of-bounds", ("release",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("landing", LANDINGS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_named(name: str, landing: Any) -> None:
    lines, kind, places = FAULTS[name]
    report = Gemm(136, 72, 200).run(planted(CLUSTERS, **lines), grid=2, landing=landing)
    found = kinds_at(report)
    assert kind in found, [str(d) for d in report.diagnostics]
    assert found[kind] & {line_of(place, CLUSTERS) for place in places}, [str(d) for d in report.diagnostics]


def test_a_race_with_another_block_says_so() -> None:
    lines, _, _ = FAULTS["the other block's slot is not waited for"]
    report = Gemm(136, 72, 200).run(planted(CLUSTERS, **lines), grid=2)
    (race,) = report.of_kind("race")
    what = "write to what a copy that signals %full[0] writes in another block of the cluster"
    assert race.message == f"{what}, with nothing to order the two"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": 3}, "expected a grid of whole clusters of 2 blocks, got 3 blocks"),
        ({"grid": 4, "blocks": [0, 1, 3]}, "expected whole clusters of 2 blocks, got block 3 alone"),
    ],
)
def test_a_cluster_is_launched_whole(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TilewrightError, match=message):
        Gemm(136, 72, 200).run(planted(CLUSTERS), **options)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_batch_holds_whole_clusters(batch: int) -> None:
    gemm = Gemm(264, 72, 200)
    assert not gemm.run(planted(CLUSTERS), grid=8, batch=batch).diagnostics
    gemm.check()
