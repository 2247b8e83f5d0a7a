"""Which backend a target name means here and now, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tilewright.diagnostics import TilewrightError

TARGETS: Final = ("auto", "cuda", "cpu", "sim", "reference")
DEFAULT_ARCH: Final = "sm_80"
"""Architecture that code is generated for where there is no GPU to ask."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A backend by name, the architecture to lower for, and one line that says why.

    Backend auto is sim, or cpu for the calls that would take long there.
    """

    backend: str
    arch: str
    reason: str
    processors: int | None = None
    """Multiprocessors of the device; None where there is none."""


def choose(target: str, arch: str | None) -> Choice:
    """Resolve a target. A backend that is named is taken or refused, never replaced; `auto` takes cuda, else sim,
    or cpu where there is a C++ compiler and much to do."""
    if target not in TARGETS:
        raise TilewrightError(f"target: expected one of {', '.join(TARGETS)}, got {target!r}")
    if arch is not None and re.fullmatch(r"sm_[0-9]{2,3}[af]?", str(arch)) is None:
        raise TilewrightError(f"arch: expected sm_<number> such as sm_80 or sm_90a, got {arch!r}")
    if arch is not None and int(re.sub(r"\D", "", arch)) < 80:
        raise TilewrightError(f"arch: expected sm_80 or later, got {arch!r}")
    if target in ("sim", "reference"):
        return Choice(target, arch or DEFAULT_ARCH, f"{target} was asked for")
    if target == "cpu":
        from tilewright.runtime.cxx import cxx_unavailable_reason

        no_compiler = cxx_unavailable_reason()
        if no_compiler is not None:
            raise TilewrightError(f"target cpu: {no_compiler}")
        return Choice(target, arch or DEFAULT_ARCH, "cpu was asked for")
    # The driver is looked for only where it is wanted.
    from tilewright.runtime.cuda_driver import cuda_unavailable_reason, device

    reason = cuda_unavailable_reason()
    if reason is None:
        from tilewright.runtime.nvrtc import nvrtc_unavailable_reason

        reason = nvrtc_unavailable_reason()
    if reason is None:
        info = device(0).info
        why = f"{info.name} is usable" if target == "auto" else "cuda was asked for"
        return Choice("cuda", arch or info.arch, why, info.multiprocessors)
    if target == "cuda":
        raise TilewrightError(f"target cuda: {reason}")
    return Choice("auto", arch or DEFAULT_ARCH, f"no GPU: {_in_short(reason)}")


def _in_short(reason: str) -> str:
    """What is missing, without the system's own words and the remedy, which `tilewright doctor` has."""
    return re.sub(r" \(.*", "", reason.removeprefix("CUDA: "), flags=re.DOTALL).split(": ")[0]
