"""The queries of the benchmark: three solvers agree on them, and the two larger ones are decided."""

from __future__ import annotations

import pytest

from benchmarks.sym import Query, by_isl, by_z3, chain, own, queries, texts_of, wide_sum
from tilewright.dialects.sym import parse_relation


@pytest.mark.parametrize("query", queries(), ids=lambda q: q.name.split()[0])
def test_the_solvers_agree(query: Query) -> None:
    assert own(query, [parse_relation(text) for text in texts_of(query)]) == query.expected
    assert by_z3(query) == query.expected
    if query.isl is not None:
        assert by_isl(query) == query.expected


def test_larger_queries_are_decided() -> None:
    assert chain(64) == "proved"
    assert wide_sum() == "proved"
