"""What a module can be written as, by name, for `-t`: `TARGETS["cuda"]()` imports and returns the class.

A target from elsewhere becomes known when a module that the program imports, or a file that `--load` runs, decorates it
with `@register_target`, or when an installed package names it in the entry point group `tilewright.targets`. A name of
ours is never taken over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, TypeVar, cast

from tilewright.diagnostics import TilewrightError
from tilewright.passes.registry import note_registration, place_of

if TYPE_CHECKING:
    from xdsl.utils.target import Target

ENTRY_POINT_GROUP = "tilewright.targets"
"""Other packages name targets here: `my-device = "my_package.my_module:MyTarget"`."""


def _cuda() -> type[Target]:
    from tilewright.lowering.simt_to_cuda.target import CudaTarget

    return CudaTarget


_OWN: dict[str, Callable[[], type[Target]]] = {"cuda": _cuda}

_registered: dict[str, type[Target]] = {}  # filled by `register_target` alone, for the life of the process

_TargetT = TypeVar("_TargetT", bound="type[Target]")


def register_target(cls: _TargetT) -> _TargetT:
    """Class decorator: make a target known by its name in this process. TilewrightError when the name is taken."""
    known = _registered.get(cls.name)
    if cls.name in _OWN or (known is not None and place_of(known) != place_of(cls)):
        raise TilewrightError(
            f"there is a target {cls.name} already; {cls.__module__}.{cls.__qualname__} needs a name of its own"
        )
    _registered[cls.name] = cls
    note_registration(cls.name)
    return cls


@cache
def _plugins() -> dict[str, Callable[[], type[Target]]]:
    return {point.name: _loader(point) for point in entry_points(group=ENTRY_POINT_GROUP) if point.name not in _OWN}


def _loader(point: EntryPoint) -> Callable[[], type[Target]]:
    def load() -> type[Target]:
        try:
            found = point.load()
        except Exception as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise TilewrightError(f"target {point.name} is not available: {reason}") from error
        if not (isinstance(found, type) and getattr(found, "name", None) == point.name and hasattr(found, "emit")):
            raise TilewrightError(f"target {point.name} is not available: {point.value} is no target of that name")
        return cast("type[Target]", found)

    return load


def all_targets() -> dict[str, Callable[[], type[Target]]]:
    """Every target by name: this package's, those registered in this process, plugins'; call a value to load it."""
    # Neither of the latter two holds a name of ours.
    return {**_OWN, **_plugins(), **{name: _constant(cls) for name, cls in _registered.items()}}


def _constant(cls: type[Target]) -> Callable[[], type[Target]]:
    return lambda: cls


class _Table(Mapping[str, Callable[[], "type[Target]"]]):
    """`all_targets` as it is at each look."""

    def __getitem__(self, name: str) -> Callable[[], type[Target]]:
        return all_targets()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(all_targets())

    def __len__(self) -> int:
        return len(all_targets())


TARGETS: Mapping[str, Callable[[], type[Target]]] = _Table()
"""Each target by name; a view of `all_targets`."""
