"""A compiled entry as the user holds it: call it, read its code, ask what it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.backends.base import Backend
from tilewright.runtime.variants import CompiledEntry


class Kernel:
    """Made by `compile_module`. Calls take arrays in the entry's argument order and return its result or a tuple."""

    def __init__(self, entry: CompiledEntry, backend: Backend, reason: str) -> None:
        self._entry = entry
        self._backend = backend
        self._reason = reason

    @property
    def backend(self) -> str:
        """Name of the backend that runs it; with target auto and no GPU, the one of the last call (sim before it)."""
        return self._backend.name

    @property
    def backend_reason(self) -> str:
        """Why it is that one, in one line."""
        return self._backend.reason or self._reason

    @property
    def name(self) -> str:
        """The entry's name."""
        return self._entry.entry

    @property
    def arch(self) -> str:
        """The architecture that variants are lowered for."""
        return self._entry.arch

    @property
    def compile_seconds(self) -> float:
        """Time spent on compiling so far, that of variants which calls have chosen included."""
        return self._entry.compile_seconds

    def __call__(self, *arrays: object, out: object = None, stream: object = None, force: bool = False) -> Any:
        """Run on arrays (NumPy, DLPack, `__cuda_array_interface__`; numbers for scalars) and return the result, or a
        tuple of several, in the kind of the first tensor argument.

        `out` is a tensor (a tuple for several results) to write in place of a new one; it must not overlap an input.
        `stream` is a CUDA stream. `force` lets the simulator run however long it takes. Raises `TilewrightError` where
        an argument, a size or a guard of the plan does not fit.
        """
        given: list[object] | None = None
        if out is not None:
            given = list(cast("Sequence[object]", out)) if isinstance(out, tuple | list) else [out]
        results = self._backend.call(arrays, given, stream, force)
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def source(self) -> Mapping[str, str]:
        """`kernel/variant` to CUDA C++; variants that no call has chosen yet are lowered for it."""
        from tilewright.lowering.simt_to_cuda import emit_kernel

        return {
            name: emit_kernel(self._entry.lower(site).kernel, self._entry.arch)
            for name, site in self._entry.sites.items()
        }

    def ir(self, level: str) -> str:
        """IR text at level tensor, tile, scheduled, simt or host; of all variants for scheduled and simt."""
        return self._entry.ir(level)

    def stats(self) -> dict[str, Any]:
        """`backend` and `launches` of the last call, `pipeline_runs` of the tensor half, and for each variant in
        `kernels`: name, variant, compiled (whether a call has wanted it), code (the symbol of what it runs, which
        variants that differ in names alone share), registers, spill_bytes, stack_bytes, smem_bytes, occupancy (blocks a
        multiprocessor); None where unknown."""
        unknown = dict.fromkeys(("registers", "spill_bytes", "stack_bytes", "smem_bytes", "occupancy"))
        kernels: list[dict[str, Any]] = []
        if self._entry.pipeline_runs:
            for site in self._entry.sites.values():
                wanted = self._entry.is_lowered(site)
                kernels.append(
                    {
                        "name": site.kernel,
                        "variant": site.variant,
                        "compiled": wanted,
                        "code": self._entry.lower(site).name if wanted else None,
                        **unknown,
                        **self._backend.details(site),
                    }
                )
        return {
            "backend": self.backend,
            "launches": self._backend.launches,
            "pipeline_runs": self._entry.pipeline_runs,
            "kernels": kernels,
        }

    def __repr__(self) -> str:
        return f"Kernel(@{self.name}, backend={self.backend}, arch={self.arch})"


def expect_one_of(names: list[str], wanted: str | None) -> str:
    """The entry to compile: the only one, else the one asked for by name."""
    if wanted is not None:
        name = str(wanted).removeprefix("@")
        if name not in names:
            raise TilewrightError(f"entry: expected one of {', '.join(names) or 'none'}, got {wanted!r}")
        return name
    if len(names) != 1:
        many = ", ".join(names)
        raise TilewrightError(
            "expected a public func.func in the module, got none"
            if not names
            else f"the module has several entries ({many}): name one with entry (--entry)"
        )
    return names[0]
