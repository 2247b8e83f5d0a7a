"""Contractions spelled as einsum, and lin.generic, reach the kernels of the named products."""

from __future__ import annotations

import pytest

from benchmarks.contractions import FORMS, Form, entries, launched


@pytest.mark.parametrize(("dtype", "arch"), [("bf16", "sm_90a"), ("f32", "sm_90a"), ("f16", "sm_80")])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.spec)
def test_einsum_launches_what_the_named_product_does(form: Form, dtype: str, arch: str) -> None:
    spelled, named = entries(form, dtype, arch)
    assert spelled.sites.keys() == named.sites.keys()
    for size in (1, 24, 100, 129, 1000, 4096):
        for odd in (0, 1):
            sizes = {letter: size + odd * (n % 2) for n, letter in enumerate(form.sizes[0])}
            shapes = form.shapes(sizes)
            assert launched(spelled, shapes) == launched(named, shapes), sizes


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.spec)
def test_large_ones_take_matrix_instructions(form: Form) -> None:
    spelled, _ = entries(form, "bf16", "sm_90a")
    for sizes in form.sizes:
        texts = [text for text, _ in launched(spelled, form.shapes(sizes))]
        assert "tile.mma" in texts[-1]
        assert "index_width 32" in texts[-1]
