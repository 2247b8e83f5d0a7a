"""Target `auto` without a GPU: a call runs in the simulator, or on the cores where that would take long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilewright.runtime.backends.cpu import CpuBackend
from tilewright.runtime.backends.host import HostBackend, HostLaunch
from tilewright.runtime.backends.sim import SimBackend
from tilewright.runtime.cpu_unit import of_sm_90a
from tilewright.runtime.cxx import cxx_unavailable_reason
from tilewright.runtime.plan import Site
from tilewright.runtime.variants import CompiledEntry

LARGE_SECONDS: Final = 3.0
"""Estimated time of the simulator above which a call goes to the `cpu` backend. Compiling a kernel for it takes half a
second, and the estimate is good to a factor of two or three."""


class AutoBackend(HostBackend):
    """`name` and `reason` are those of the last call; before the first one, the simulator's."""

    name = "sim"

    def __init__(self, entry: CompiledEntry, why: str) -> None:
        super().__init__(entry)
        self._sim, self._cpu = SimBackend(entry), CpuBackend(entry)
        self._why = why
        self._last: HostBackend = self._sim
        self._reason = why

    @property
    def reason(self) -> str:
        """Why it is that one."""
        return self._reason

    def run(self, launches: Sequence[HostLaunch], force: bool) -> None:
        """Estimate the simulator's time for all launches, and choose."""
        seconds = sum(self._sim.estimate(each) for each in launches)
        self._last, self._reason = self._sim, self._why
        if seconds > LARGE_SECONDS and any(of_sm_90a(each.lowered.kernel) is not None for each in launches):
            self._reason += (
                f"; simulating will take about {seconds:.0f} s, and backend cpu does not run the instructions of sm_90a"
            )
        elif seconds > LARGE_SECONDS:
            # The compiler is looked for only where it is wanted.
            missing = cxx_unavailable_reason()
            self._last = self._cpu if missing is None else self._sim
            choice = missing or "a C++ compiler is there"
            self._reason += f"; simulating would take about {seconds:.0f} s, and {choice}"
        self.name = self._last.name
        self._last.run(launches, force)

    def details(self, site: Site) -> dict[str, Any]:
        """Shared memory, which the kernel states itself."""
        return self._last.details(site)
