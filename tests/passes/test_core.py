"""What a class must be to be a pass: name, docstring, level, anchors, and options that a pipeline's text can give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Literal

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline

from tilewright.lowering.registry import LOWERINGS
from tilewright.passes.core import LEVELS, TilewrightPass
from tilewright.passes.options import option_text, option_types
from tilewright.passes.registry import PASSES, PassEntry


class Order(Enum):
    ROW_MAJOR = 1
    COLUMN_MAJOR = 2


class Kind(Enum):
    FAST = "quick"
    SLOW = "slow"


@dataclass(frozen=True)
class RichPass(TilewrightPass):
    """Has an option of each type."""

    name = "rich"
    level = "any"

    limit: ClassVar[dict[str, int]] = {}
    on: bool = False
    rounds: int = 1
    factor: float = 1.0
    text: str = ""
    order: Order = Order.ROW_MAJOR
    kind: Kind | None = None
    way: Literal["up", "down"] = "up"
    sizes: tuple[int, ...] = ()
    pair: tuple[int, str] = (1, "")
    names: Sequence[str] = ()
    mixed: list[int | float] = field(default_factory=list)
    kinds: tuple[Kind, ...] | None = None
    computed: dict[str, int] = field(init=False, default_factory=dict)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


def test_all_option_types_are_found_but_class_variables_and_computed_fields_are_none() -> None:
    types = option_types(RichPass)
    assert list(types) == [
        *("on", "rounds", "factor", "text", "order", "kind", "way", "sizes", "pair", "names", "mixed", "kinds")
    ]
    assert types["order"] is Order
    assert types["kind"] == Kind | None
    assert types["sizes"] == tuple[int, ...]


def test_the_text_of_a_member_is_its_value_or_its_name() -> None:
    assert option_text(Kind.FAST) == "quick"
    assert option_text(Order.ROW_MAJOR) == "row-major"


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("dict[str, int]", r"dict\[str, int\]"),
        ("complex", "complex"),
        ("ModuleOp", "ModuleOp"),
        ("tuple[tuple[int, ...], ...]", "tuple"),
        ("list", "list"),
        ("int | bytes", "bytes"),
        ("Any", "Any"),
        (dict, "dict"),
    ],
)
def test_an_option_of_another_type_is_refused_when_the_class_is_defined(hint: Any, shown: str) -> None:
    with pytest.raises(TypeError, match=rf"BadPass\.option: expected an option of type bool, .* got .*{shown}"):
        type("BadPass", (TilewrightPass,), {"__annotations__": {"option": hint}, "__module__": __name__})


def test_a_type_that_is_not_known_where_the_class_is_defined_is_checked_later() -> None:
    class Local(Enum):
        ONE = 1

    @dataclass(frozen=True)
    class HiddenPass(TilewrightPass):
        """Its option's type is a name inside this function."""

        name = "hidden"
        option: Local = Local.ONE

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            pass

    with pytest.raises(TypeError, match="HiddenPass: the type of an option is not known: name 'Local'"):
        option_types(HiddenPass)


def parse_spec(text: str) -> ArgSpec:
    return next(iter(parse_pipeline(text)))


SPEC = (
    "rich{on=true rounds=3 factor=2 text=x order=column-major kind=quick way=down "
    "sizes=8,16 pair=2,y names=a,b mixed=1,2.5 kinds=slow}"
)


def test_options_come_from_a_specification_and_go_back() -> None:
    made = RichPass.from_spec(parse_spec(SPEC))
    assert made == RichPass(
        on=True,
        rounds=3,
        factor=2.0,
        text="x",
        order=Order.COLUMN_MAJOR,
        kind=Kind.FAST,
        way="down",
        sizes=(8, 16),
        pair=(2, "y"),
        names=("a", "b"),
        mixed=[1, 2.5],
        kinds=(Kind.SLOW,),
    )
    assert RichPass.from_spec(parse_spec(str(made))) == made
    assert str(RichPass()) == "rich"
    assert str(RichPass(kind=Kind.SLOW, kinds=())) == 'rich{kind="slow" kinds}'
    assert RichPass.from_spec(parse_spec("rich{on kind}")) == RichPass(on=True, kind=None)
    assert list(RichPass().spec(include_default=True).parameters) == list(option_types(RichPass))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rich{rounds=2.5}", "rich: option rounds: expected int, got 2.5"),
        ("rich{rounds=true}", "rich: option rounds: expected int, got True"),
        ("rich{rounds}", "rich: option rounds: expected int, got nothing"),
        ("rich{order=diagonal}", "rich: option order: expected Order, got diagonal"),
        ("rich{way=left}", r"rich: option way: expected .*Literal\['up', 'down'\], got left"),
        ("rich{sizes=1,x}", r"rich: option sizes: expected tuple\[int, \.\.\.\], got 1,x"),
        ("rich{pair=1}", r"rich: option pair: expected tuple\[int, str\], got 1"),
        ("rich{size=1}", "rich has no option size; it has on, rounds"),
        ("poor", "expected a specification of rich, got one of poor"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RichPass.from_spec(parse_spec(spec))


def test_an_option_without_a_default_must_be_given_unless_it_may_be_none() -> None:
    @dataclass(frozen=True)
    class NeedyPass(TilewrightPass):
        """Needs a number."""

        name = "needy"
        number: int
        more: int | None

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            pass

    assert NeedyPass.from_spec(parse_spec("needy{number=1}")) == NeedyPass(1, None)
    with pytest.raises(ValueError, match="needy needs the option number"):
        NeedyPass.from_spec(parse_spec("needy"))


def test_a_level_is_one_of_four() -> None:
    with pytest.raises(TypeError, match="expected level to be one of tensor, tile, simt, any, got 'affine'"):
        type("WrongPass", (TilewrightPass,), {"level": "affine"})


def test_anchors_hold_the_whole_module() -> None:
    with pytest.raises(TypeError, match=r"expected anchors to be a tuple with builtin\.module, got \('func\.func',\)"):
        type("WrongPass", (TilewrightPass,), {"anchors": ("func.func",)})


@pytest.mark.parametrize("entry", [*PASSES.values(), *LOWERINGS.values()], ids=lambda entry: entry.name)
def test_every_pass_of_the_package_states_its_level_and_has_options_that_text_can_give(entry: PassEntry) -> None:
    cls = entry.load()
    assert issubclass(cls, TilewrightPass)
    stated = [base for base in cls.__mro__ if "level" in base.__dict__]
    assert stated[0] is not TilewrightPass
    assert cls.level in LEVELS
    option_types(cls)


def test_lowerings_take_whole_modules() -> None:
    loaded = [entry.load() for entry in LOWERINGS.values()]
    assert [cls.anchors for cls in loaded if issubclass(cls, TilewrightPass)] == [("builtin.module",)] * len(loaded)


def test_an_option_called_level_is_the_level_that_an_instance_needs() -> None:
    verify = PASSES["verify-level"].load()
    with pytest.raises(TypeError, match="level"):
        verify()
    assert verify(level="tile").level == "tile"  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
