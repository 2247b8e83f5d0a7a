"""A remembered call: which addresses its launches get. The driver and torch are stood in for; GPU tests have both."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

from tilewright.runtime.backends import ready_calls
from tilewright.runtime.backends.ready_calls import ADDRESSES, MapPlan, ReadyCall, ReadyLaunch

BLOCK = 0x7000_0000


class Tensor:
    """What a call asks a torch tensor."""

    def __init__(self, address: int) -> None:
        self.address = address

    def data_ptr(self) -> int:
        """Its address."""
        return self.address


class Owner:
    """A device that hands out one block."""

    def __init__(self) -> None:
        self.info = SimpleNamespace(ordinal=0)
        self.allocated: list[tuple[int, int]] = []
        self.freed = 0

    def allocate(self, wanted: int, stream: int) -> Any:
        """The block."""
        self.allocated.append((wanted, stream))
        return SimpleNamespace(pointer=BLOCK, free=self._free)

    def _free(self) -> None:
        self.freed += 1


class Function:
    """A kernel that keeps its parameters."""

    def __init__(self) -> None:
        self.got: list[tuple[int, ...]] = []

    def launch(self, grid: object, threads: int, smem: int, packed: bytes, stream: int) -> None:
        """Keep them."""
        assert (grid, threads, smem, stream) == ((3, 1, 1), 64, 128, 5)
        self.got.append(struct.unpack(f"<{len(packed) // 8}q", packed))


def make(slots: list[tuple[int, ...]], scratch: list[int | None], chosen: list[int]) -> tuple[Any, Any, Any]:
    """(call, owner, function) with two arguments and one result, and a launch for each row of slots."""
    owner: Any = Owner()  # they stand in for a device and a kernel
    function: Any = Function()
    launches = [
        ReadyLaunch(function, (3, 1, 1), 64, 128, struct.Struct(f"<{len(row) + 1}q"), row, (n,))
        for n, row in enumerate(slots)
    ]
    spans = ((0, 8), (0, 8), (0, 8))
    made: Any = ReadyCall.of(owner, (), scratch, chosen, launches, "cuda:0", spans, 3)
    return made, owner, function


@pytest.fixture(autouse=True)
def _stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_calls, "raw_stream", lambda ordinal: 5)


def test_needed_scratch_lies_in_one_block_and_what_was_chosen_is_found() -> None:
    # In a row: arguments 0 and 1, result 2, scratch 3 to 6, what two dispatches give 7 and 8.
    call, owner, function = make([(0, 4), (8, 6, 2), (1,)], [None, 300, None, 16], [-1, 4])
    out = Tensor(0x3000)
    assert call.run([Tensor(0x1000), Tensor(0x2000)], [out]) == [out]
    assert owner.allocated == [(512 + 256, 5)], "300 bytes are rounded up to 512"
    assert owner.freed == 1
    assert function.got == [(0x1000, BLOCK, 0), (BLOCK, BLOCK + 512, 0x3000, 1), (0x2000, 2)]


def test_a_dispatch_may_choose_an_argument() -> None:
    call, owner, function = make([(4, 2)], [None], [0])
    call.run([Tensor(0x1000), Tensor(0x2000)], [Tensor(0x3000)])
    assert function.got == [(0x1000, 0x3000, 0)]
    assert owner.allocated == []


@pytest.mark.parametrize(("address", "meets"), [(0x1000, True), (0x1004, True), (0x1008, False), (0xFF9, True)])
def test_an_output_that_meets_an_argument_is_left_to_a_closer_look(address: int, meets: bool) -> None:
    call, _, function = make([(0, 2)], [], [])
    out = [Tensor(address)]
    assert (call.run([Tensor(0x1000), Tensor(0x2000)], out) is None) == meets
    assert bool(function.got) != meets


def test_maps_are_kept_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []

    def encode(address: int, *rest: object) -> bytes:
        encoded.append(address)
        return address.to_bytes(8, "little")

    monkeypatch.setattr(ready_calls, "tensor_map", encode)
    plan = MapPlan(0, "bf16", 2, (8, 8), (8, 1), (8, 8), 128)
    for _ in range(2):
        for address in (16, 32):
            assert (plan.known.get(address) or plan.at(address)) == address.to_bytes(8, "little")
    assert encoded == [16, 32]
    for address in range(ADDRESSES):
        plan.at(16 * address)
    assert len(plan.known) <= ADDRESSES
