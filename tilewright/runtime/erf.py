"""The error function on arrays: NumPy has none.

Rational approximations of FreeBSD's msun (s_erf.c, Copyright (C) 1993 by Sun Microsystems, Inc.; permission to use,
copy, modify and distribute is freely granted, provided that this notice is preserved), error below 1 ulp of float64.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tilewright.runtime.numerics import Array

_ERX: Final = 8.45062911510467529297e-01
_SMALL: Final = (
    (
        1.28379167095512558561e-01,
        -3.25042107247001499370e-01,
        -2.84817495755985104766e-02,
        -5.77027029648944159157e-03,
        -2.37630166566501626084e-05,
    ),
    (
        1.0,
        3.97917223959155352819e-01,
        6.50222499887672944485e-02,
        5.08130628187576562776e-03,
        1.32494738004321644526e-04,
        -3.96022827877536812320e-06,
    ),
)
"""erf(x) = x + x * P(x^2) / Q(x^2) for |x| < 0.84375; coefficients from the constant up."""
_MIDDLE: Final = (
    (
        -2.36211856075265944077e-03,
        4.14856118683748331666e-01,
        -3.72207876035701323847e-01,
        3.18346619901161753674e-01,
        -1.10894694282396677476e-01,
        3.54783043256182359371e-02,
        -2.16637559486879084300e-03,
    ),
    (
        1.0,
        1.06420880400844228286e-01,
        5.40397917702171048937e-01,
        7.18286544141962662868e-02,
        1.26171219808761642112e-01,
        1.36370839120290507362e-02,
        1.19844998467991074170e-02,
    ),
)
"""erf(x) = _ERX + P(x - 1) / Q(x - 1) for 0.84375 <= x < 1.25."""
_LARGE: Final = (
    (
        -9.86494403484714822705e-03,
        -6.93858572707181764372e-01,
        -1.05586262253232909814e01,
        -6.23753324503260060396e01,
        -1.62396669462573470355e02,
        -1.84605092906711035994e02,
        -8.12874355063065934246e01,
        -9.81432934416914548592e00,
    ),
    (
        1.0,
        1.96512716674392571292e01,
        1.37657754143519042600e02,
        4.34565877475229228821e02,
        6.45387271733267880336e02,
        4.29008140027567833386e02,
        1.08635005541779435134e02,
        6.57024977031928170135e00,
        -6.04244152148580987438e-02,
    ),
)
"""erfc(x) = exp(-x^2 - 0.5625 + P(1/x^2) / Q(1/x^2)) / x for 1.25 <= x < 1/0.35."""
_TAIL: Final = (
    (
        -9.86494292470009928597e-03,
        -7.99283237680523006574e-01,
        -1.77579549177547519889e01,
        -1.60636384855821916062e02,
        -6.37566443368389627722e02,
        -1.02509513161107724954e03,
        -4.83519191608651397019e02,
    ),
    (
        1.0,
        3.03380607434824582924e01,
        3.25792512996573918826e02,
        1.53672958608443695994e03,
        3.19985821950859553908e03,
        2.55305040643316442583e03,
        4.74528541206955367215e02,
        -2.24409524465858183362e01,
    ),
)
"""The same for 1/0.35 <= x < 6; beyond, erf is 1 in float64."""


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    above, below = (np.polynomial.polynomial.polyval(x, np.asarray(part)) for part in coefficients)
    return above / below


def erf(values: Array) -> Array:
    """erf of float64 values, in float64; NaN stays NaN."""
    x = np.asarray(values, np.float64)
    a = np.abs(x)
    with np.errstate(all="ignore"):
        small = np.minimum(a, 0.84375)
        middle = np.clip(a, 0.84375, 1.25) - 1.0
        large = np.clip(a, 1.25, 6.0)
        inverse = 1.0 / (large * large)
        exponent = np.where(a < 1.0 / 0.35, _ratio(_LARGE, inverse), _ratio(_TAIL, inverse))
        tail = 1.0 - np.exp(-large * large - 0.5625 + exponent) / large
        result = np.where(
            a < 0.84375,
            small + small * _ratio(_SMALL, small * small),
            np.where(a < 1.25, _ERX + _ratio(_MIDDLE, middle), np.where(a < 6.0, tail, 1.0)),
        )
    return np.where(np.isnan(x), x, np.copysign(result, x))
