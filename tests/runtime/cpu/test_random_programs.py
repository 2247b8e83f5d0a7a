"""Random tensor programs through the whole compiler: the simulator and the CPU give the same bits.

The two take their exponentials from different libraries, in f64; that this shows in f32 has odds of one in 2^30.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.passes.test_fusion_properties import programs
from tests.runtime.cpu.support import Array, assert_same_bits
from tilewright.dialects.parsing import parse_module
from tilewright.dialects.registry import make_context
from tilewright.runtime import dtypes
from tilewright.runtime.compile import compile_module
from tilewright.runtime.plan import parameter_of

pytestmark = pytest.mark.cxx


@given(text=programs(), seed=st.integers(0, 1000), data=st.data())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_programs(text: str, seed: int, data: st.DataObject) -> None:
    module = parse_module(text, "program.mlir", make_context())
    sim, cpu = compile_module(module, "sim"), compile_module(module, "cpu")
    sizes = {name: data.draw(st.sampled_from([1, 2, 3, 31, 33, 40, 0]), name) for name in ("M", "N", "K")}
    function = next(op for op in module.ops if op.name == "func.func")
    random = np.random.default_rng(seed)
    arrays: list[Array] = []
    for n, argument in enumerate(function.regions[0].block.args):
        parameter = parameter_of(argument.type, f"arg{n}")
        shape = tuple(d.evaluate(sizes) for d in parameter.dims or ())
        kind = dtypes.element_type(parameter.dtype).numpy_dtype()
        arrays.append((random.standard_normal(shape) * (8 if parameter.dtype == "i32" else 1)).astype(kind))
    simulated, computed = sim(*arrays), cpu(*arrays)
    for one, other in zip(_several(computed), _several(simulated), strict=True):
        assert_same_bits(one, other)


def _several(results: object) -> list[Array]:
    return list(results) if isinstance(results, tuple) else [results]  # pyright: ignore[reportReturnType]
