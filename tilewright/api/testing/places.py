"""Where in the pipelines a pass is put to test: a `Place` is a point in `TENSOR` or in `TILE`.

    Place("TILE", "map-threads")        right after map-threads, on each variant of each kernel that a call launches
    Place("TENSOR", "")                 on the program as it is written

A pass that stands in the pipeline at that point takes its own place there; any other is put between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.passes import ModulePass

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.suggest import did_you_mean
from tilewright.lowering import pipelines

PIPELINES: dict[str, tuple[str, ...]] = {"TENSOR": pipelines.TENSOR, "TILE": pipelines.TILE}

TENSOR_POINTS = ("", "canonicalize", "decompose", "fuse-elementwise")
"""Named ops, named ops in one form, generics alone, and generics after fusion."""
TILE_POINTS = ("", "prove-bounds")
"""A free kernel as lin-to-tile leaves it, and one with all decisions right before finish-schedule."""
EVERY_TILE_POINT = ("", "map-threads", "allocate-shared")
SIMT_POINTS = ("tile-to-simt", "cse")

POINTS: dict[str, tuple[tuple[str, str], ...]] = {
    "tensor": tuple(("TENSOR", p) for p in TENSOR_POINTS),
    "tile": tuple(("TILE", p) for p in TILE_POINTS),
    "simt": tuple(("TILE", p) for p in SIMT_POINTS),
    "any": (
        *(("TENSOR", p) for p in ("", "decompose", "fuse-groups")),
        *(("TILE", p) for p in EVERY_TILE_POINT),
        ("TILE", "tile-to-simt"),
    ),
}
"""Level of a pass -> where a pass is tried that stands in neither pipeline."""


@dataclass(frozen=True)
class Place:
    """A point in a pipeline: `after` is the pass that ran last, empty at the start."""

    pipeline: Literal["TENSOR", "TILE"]
    after: str = ""

    @property
    def index(self) -> int:
        """How many passes of the pipeline come before."""
        return PIPELINES[self.pipeline].index(self.after) + 1 if self.after else 0

    @property
    def before(self) -> tuple[str, ...]:
        """The passes of this pipeline that come before."""
        return PIPELINES[self.pipeline][: self.index]

    def following(self, names: Sequence[str]) -> tuple[str, ...]:
        """The passes of this pipeline that come after passes of these names, which replace themselves."""
        rest = PIPELINES[self.pipeline][self.index :]
        return rest[len(names) :] if rest[: len(names)] == tuple(names) else rest

    def __str__(self) -> str:
        return f"{self.pipeline} after {self.after}" if self.after else f"{self.pipeline} at the start"


def parse_place(text: str) -> Place:
    """What `str(place)` wrote; TilewrightError for anything else."""
    pipeline, _, rest = text.partition(" ")
    after = rest.removeprefix("after ") if rest != "at the start" else ""
    if pipeline in ("TENSOR", "TILE") and (not after or after in PIPELINES[pipeline]):
        return Place(pipeline, after)
    raise TilewrightError(f"place: expected such as 'TILE after map-threads', got '{text}'")


def place_after(name: str, level: str) -> Place:
    """The place after a pass that the caller names; `canonicalize` is in both pipelines, and the level decides."""
    homes = [p for p, names in PIPELINES.items() if name in names]
    if not homes:
        known = [n for names in PIPELINES.values() for n in names]
        raise TilewrightError(f"after: there is no pass {name} in the pipelines{did_you_mean(name, known)}")
    pipeline = "TILE" if "TILE" in homes and (level in ("tile", "simt") or len(homes) == 1) else "TENSOR"
    return Place(pipeline, name)


def default_places(passes: Sequence[ModulePass], level: str) -> tuple[Place, ...]:
    """Where to try passes that run as one step: at their own place in the pipelines, else at points of their level."""
    names = tuple(p.name for p in passes)
    own: list[Place] = []
    for pipeline in ("TENSOR", "TILE"):
        listed = PIPELINES[pipeline]
        for start in range(len(listed) - len(names) + 1):
            if listed[start : start + len(names)] == names:
                own.append(Place(pipeline, listed[start - 1] if start else ""))
    if names == ("instantiate-variants",):
        return (Place("TENSOR", pipelines.TENSOR[-1]),)
    if own and level != "any":
        return tuple(own)
    points = POINTS.get(level)
    if points is None:
        raise TilewrightError(f"{names[0]}: expected a level of {', '.join(POINTS)}, got {level!r}")
    # pyright cannot see that the table spells the two names alone.
    return tuple(dict.fromkeys((*own, *(Place("TENSOR" if p == "TENSOR" else "TILE", a) for p, a in points))))
