"""Option text becomes what the field's type says, or one line that says what was expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.utils.arg_spec import ArgSpecConvertible

from tilewright.api.opt.options import build
from tilewright.api.opt.pipeline_text import Spec, parse_pipeline, parse_single
from tilewright.diagnostics import TilewrightError


@dataclass(frozen=True)
class Sample(ArgSpecConvertible):
    name = "sample"
    count: int
    ratio: float = 0.5
    deep: bool = False
    arch: str = "sm_80"
    tile_sizes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    limit: int | None = None
    mode: Literal["fast", "exact"] = "fast"

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError("count must not be negative")


def sample(text: str) -> Sample:
    return build(Sample, parse_single(text, "<target>"), "target")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", Sample(1)),
        ("ratio=2", Sample(1, ratio=2.0)),
        ("ratio=1e-3", Sample(1, ratio=0.001)),
        ("deep", Sample(1, deep=True)),
        ("deep=false", Sample(1)),
        ("deep=true", Sample(1, deep=True)),
        ("arch=sm_90a", Sample(1, arch="sm_90a")),
        ("arch=90", Sample(1, arch="90")),
        ("arch=true", Sample(1, arch="true")),
        ('arch="a b{},=\'"', Sample(1, arch="a b{},='")),
        ("tile-sizes=8", Sample(1, tile_sizes=(8,))),
        ("tile_sizes=8,-16", Sample(1, tile_sizes=(8, -16))),
        ("names=a,1,'x y'", Sample(1, names=("a", "1", "x y"))),
        ("limit=3", Sample(1, limit=3)),
        ("limit", Sample(1)),
        ("mode=exact", Sample(1, mode="exact")),
    ],
)
def test_values_take_the_type_of_the_field(options: str, expected: Sample) -> None:
    assert sample(f"sample{{count=1 {options}}}") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sample", "target 'sample' needs the option 'count'"),
        ("sample{count=1.5}", "option 'count' of target 'sample': expected int, got '1.5'"),
        ("sample{count='1'}", "expected int, got '1'"),
        ("sample{count=-1}", "target 'sample': count must not be negative"),
        ("sample{count=1 mode=exakt}", "expected one of fast, exact, got 'exakt'; did you mean 'exact'?"),
        ("sample{count=1 tile-sizes=a}", "expected a list of int, got 'a'"),
        ("sample{count=1 tile-size=1}", "has no option 'tile-size'; did you mean 'tile-sizes'?"),
        ("sample{count=1 zzzz=1}", "has no option 'zzzz'; it has count, ratio"),
        ("sample{count=1 deep=1}", "expected bool, got '1'"),
    ],
)
def test_wrong_values(text: str, message: str) -> None:
    with pytest.raises(TilewrightError) as caught:
        sample(text)
    assert message in caught.value.message
    assert caught.value.location is not None


WORDS = st.sampled_from(["a", "cse", "tile-sizes", "x_1", "2d-slice", "any", "lin.to-tile"])
TEXTS = st.text(alphabet="a1 ,{}()='\"\\\n\u00e9", max_size=6)


@given(st.lists(st.tuples(WORDS, st.dictionaries(WORDS, st.lists(TEXTS, max_size=3), max_size=3)), max_size=4))
def test_what_is_written_is_read(passes: list[tuple[str, dict[str, list[str]]]]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def option(key: str, values: list[str]) -> str:
        return f"{key}={','.join(map(quoted, values))}" if values else key

    text = ",".join(
        name + ("{" + " ".join(option(k, v) for k, v in options.items()) + "}" if options else "")
        for name, options in passes
        if name != "any"
    )
    read = [
        (spec.name, {key: [value.text for value in values] for key, values in spec.options.items()})
        for spec in parse_pipeline(f"builtin.module({text})", "<pipeline>")
        if isinstance(spec, Spec)
    ]
    assert read == [one for one in passes if one[0] != "any"]


@given(st.text(alphabet="ab,{}()='\" \\.-", max_size=30))
def test_any_pipeline_text_is_read_or_refused_in_place(text: str) -> None:
    error: TilewrightError | None = None
    try:
        parse_pipeline(text, "<pipeline>")
    except TilewrightError as caught:
        error = caught
    if error is not None:
        assert error.location is not None
        assert error.location.column <= len(text) + 1
