"""Random tensor programs through the whole compiler: the simulator and the CPU give the same bits.

The two take their exponentials from different libraries, in f64; that this shows in f32 has odds of one in 2^30.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.runtime.cpu.support import Array, assert_same_bits
from tilewright.api.testing.execute import entry_of, parse
from tilewright.runtime.compile import compile_module
from tilewright.testing import Program, lin_programs, make_inputs

pytestmark = pytest.mark.cxx


@given(lin_programs(max_ops=5))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_programs(program: Program) -> None:
    module = parse(program)
    sim, cpu = compile_module(module, "sim"), compile_module(module, "cpu")
    arrays = make_inputs(entry_of(module), program.sizes, program.seed, program.lane)
    simulated, computed = sim(*arrays), cpu(*arrays)
    for one, other in zip(_several(computed), _several(simulated), strict=True):
        assert_same_bits(one, other)


def _several(results: object) -> list[Array]:
    return list(results) if isinstance(results, tuple) else [results]  # pyright: ignore[reportReturnType]
