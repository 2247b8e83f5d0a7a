"""How far a softmax that is computed in f32 may be off."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Attribute

from tilewright.runtime.numerics import Array, ulp
from tilewright.runtime.reference.bounded import Bounded

F32_ABSOLUTE = 1e-6
"""For f32 results, which lie in [0, 1]: about 8 ulps of 1, for exp, the sum and the division together."""


def softmax_error(element_type: Attribute, axis: int, x: Bounded, y: Array) -> Array:
    """The bound of `y`, the unrounded softmax of `x` along `axis`.

    Its own error is `F32_ABSOLUTE`, or one ulp of f16 and bf16, which dwarfs what f32 loses. The operand brings
    |dy_i| <= y_i (|dx_i| + sum_j y_j |dx_j|) <= 2 y_i max |dx|, to first order.
    """
    own = np.full((), F32_ABSOLUTE) if isinstance(element_type, Float32Type) else ulp(element_type, y)
    if x.is_exact:
        return np.broadcast_to(own, y.shape)
    if y.size == 0:
        return np.zeros(y.shape)
    worst = np.max(np.broadcast_to(x.error, y.shape), axis=axis, keepdims=True)
    # expm1 takes in the higher orders: each of numerator and denominator moves by a factor of exp(e) at most.
    return own + y * np.expm1(2.0 * worst)
