"""A short stream of random shapes and layouts over the examples; `python -m benchmarks.stream` runs a thousand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import stream
from tilewright.runtime.kernel import Kernel


def test_a_stream_of_shapes_keeps_its_promises():
    found, broken = stream.run(40, seed=5)
    assert broken == []
    assert sum(each["calls"] for each in found["examples"].values()) == 40
    assert all(each["runs of the tensor half"] == 1 for each in found["examples"].values())
    assert all(1 <= len(v) <= 4 for each in found["examples"].values() for v in each["sources by schedule"].values())


def test_a_wrong_element_and_one_beside_the_result_are_noticed(monkeypatch: pytest.MonkeyPatch):
    original = Kernel.__call__

    def wrong(self: Kernel, *arrays: object, **options: Any) -> Any:
        result = original(self, *arrays, **options)
        if result.size:
            result[(-1,) * result.ndim] += 1
        if isinstance(result.base, np.ndarray):
            owner = result.base
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            owner.reshape(-1)[0] = 5
        return result

    monkeypatch.setattr(Kernel, "__call__", wrong)
    _, broken = stream.run(15, seed=5)
    assert any("beyond the bound" in line for line in broken)
    assert any("elements beside the result were written" in line for line in broken)
