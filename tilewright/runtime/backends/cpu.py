"""Backend `cpu`: the CUDA C++ of the chosen variants, compiled by the machine's C++ compiler and run on its cores.

It executes what the emitter printed, as a GPU would; `sim` executes the IR. Both give the same bits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from tilewright.lowering.simt_to_cuda import emit_kernel
from tilewright.runtime.backends.host import HostBackend, HostLaunch
from tilewright.runtime.cpu_unit import CpuKernel, CpuSource, build
from tilewright.runtime.plan import Site
from tilewright.runtime.variants import CompiledEntry, Lowered


class CpuBackend(HostBackend):
    """Runs kernels in place on the caller's memory; the blocks of a launch are shared among the cores."""

    name = "cpu"

    def __init__(self, entry: CompiledEntry) -> None:
        super().__init__(entry)
        self._kernels: dict[str, CpuKernel] = {}
        self._lock = threading.Lock()

    def run(self, launches: Sequence[HostLaunch], force: bool) -> None:
        """Run the launches; variants that no call has wanted yet are compiled together."""
        self.prepare([each.lowered for each in launches])
        for each in launches:
            self._kernels[each.lowered.name].launch([t.pointer for t in each.tensors], each.scalars, each.grid)

    def prepare(self, wanted: Sequence[Lowered]) -> None:
        """Compile those of the variants that are not compiled yet, in one translation unit."""
        with self._lock:
            missing = {each.name: each for each in wanted if each.name not in self._kernels}
            if not missing:
                return
            started = time.perf_counter()
            sources = [CpuSource(each.kernel, emit_kernel(each.kernel, self.entry.arch)) for each in missing.values()]
            self._kernels.update(zip(missing, build(sources), strict=True))
            self.entry.compile_seconds += time.perf_counter() - started

    def details(self, site: Site) -> dict[str, Any]:
        """Shared memory, which the kernel states itself."""
        return {"smem_bytes": self.entry.lower(site).kernel.smem.value.data} if self.entry.is_lowered(site) else {}
