"""All variants of a planned module beside one another, for pipelines in `tilewright-opt`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.dialects.host.ops import FuncOp, LaunchOp
from tilewright.dialects.tile.structure import KernelOp
from tilewright.lowering.instantiate import instantiate, variant_of, variant_symbol
from tilewright.passes.core import TilewrightPass, error_at


@dataclass(frozen=True)
class InstantiateVariantsPass(TilewrightPass):
    """Replaces the kernels of a planned module by one kernel for each variant that its plan launches.

    Each variant is named kernel_variant and carries `assumes` and `index_width`, so that the passes of the tile
    pipeline run on all variants at once. `only="k/vector32"` keeps one variant of one kernel; `arch` is
    the architecture whose instructions their schedules may use. The plan itself, which
    names kernels before they are instantiated, is dropped. Relies on host-plan.
    """

    name: ClassVar[str] = "instantiate-variants"
    level: ClassVar[str] = "tile"
    anchors: ClassVar[tuple[str, ...]] = ("builtin.module",)

    only: str = ""
    arch: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Instantiate the variants of every `host.func` of the module, in the order of the plan."""
        launches: dict[str, LaunchOp] = {}
        for each in op.walk():
            if isinstance(each, LaunchOp):
                launches.setdefault(f"{each.kernel.string_value()}/{variant_of(each)}", each)
        if self.only and self.only not in launches:
            raise error_at(op, f"instantiate-variants: expected one of {', '.join(launches)}, got '{self.only}'")
        made: dict[str, Operation] = {}
        for name, launch in launches.items():
            if not self.only or name == self.only:
                variant = next(k for k in instantiate(op, launch, self.arch).ops if isinstance(k, KernelOp))
                variant.detach()
                made[variant_symbol(launch)] = variant
        for each in list(op.ops):
            if isinstance(each, KernelOp | FuncOp):
                each.detach()
                each.erase()
        op.body.block.add_ops(made.values())
