"""Products through the tile pipeline for matrix instructions, executed after each pass in the tile interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tests.passes.support import CONTEXT
from tests.passes.tile.support import check_facts
from tilewright.api.build import build_module
from tilewright.api.tensor import Tensor
from tilewright.api.testing.execute import SCHEDULE, PlannedCall, kernel_of
from tilewright.lowering import pipelines
from tilewright.lowering.instantiate import instantiate
from tilewright.lowering.lin_to_tile import LinToTilePass
from tilewright.passes.form_clusters import FormClustersPass
from tilewright.passes.pipeline import run_pipeline
from tilewright.passes.remarks import Remark, collecting_remarks
from tilewright.runtime.inputs import make_inputs
from tilewright.runtime.reference import compare, run_reference

ARCH = "sm_90a"
MATRIX = ("choose-mma", "stage-results", "make-persistent", "pipeline-copies", "specialise-warps")
"""The passes that act on kernels for matrix instructions alone."""


def planned(
    source: Tensor | Sequence[Tensor], tiles: tuple[int, ...], arch: str = ARCH, along: str | None = None
) -> tuple[ModuleOp, ModuleOp, func.FuncOp]:
    """(program, the same with a launch plan over tiles of these sizes, its function); `along` asks for clusters."""
    module = build_module(source)
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    lowered = module.clone()
    made: dict[str, ModulePass] = {"lin-to-tile": LinToTilePass(tiles, arch), "form-clusters": FormClustersPass(along)}
    passes = [made[n] if n in made else pipelines.make_passes([n])[0] for n in pipelines.TENSOR]
    run_pipeline(lowered, CONTEXT, passes, verify_each=True, on_after=check_facts)
    return module, lowered, function


class Matrix:
    """A program with its plan, and its variants for an architecture after each pass of the tile pipeline."""

    def __init__(
        self,
        source: Tensor | Sequence[Tensor],
        tiles: tuple[int, ...] = (64, 64, 64),
        arch: str = ARCH,
        along: str | None = None,
    ) -> None:
        self.arch = arch
        self.module, self.planned, self.function = planned(source, tiles, arch, along)
        self.remarks: list[Remark] = []
        self._stages: dict[str, list[tuple[str, ModuleOp]]] = {}

    def stages(self, call: PlannedCall, name: str) -> list[tuple[str, ModuleOp]]:
        """A variant as it is instantiated and after each pass that changed it, verified, facts proved again."""
        if name in self._stages:
            return self._stages[name]
        module = instantiate(self.planned, call.sites[name].launch, self.arch)
        found = [("instantiate", module.clone())]
        for each in SCHEDULE:
            with collecting_remarks() as remarks:
                run_pipeline(module, CONTEXT, pipelines.make_passes([each]), verify_each=True, on_after=check_facts)
            self.remarks += remarks
            if not module.is_structurally_equivalent(found[-1][1]):
                found.append((each, module.clone()))
        self._stages[name] = found
        return found

    def check(self, sizes: Mapping[str, int], seed: int = 0, inputs: Sequence[Any] | None = None) -> set[str]:
        """Run one call after each pass; results must stay within the reference's bounds. The passes that changed
        a kernel that ran."""
        arrays = make_inputs(self.function, sizes, seed) if inputs is None else list(inputs)
        expected = run_reference(self.module, self.function.sym_name.data, arrays, dict(sizes))
        call = PlannedCall(self.planned, arrays)
        stages = {name: self.stages(call, name) for name in call.sites}
        steps = [step for step in ("instantiate", *SCHEDULE) if any(step == s for x in stages.values() for s, _ in x)]
        for step in steps:
            at = ("instantiate", *SCHEDULE).index(step)
            reached = {
                name: [m for s, m in found if ("instantiate", *SCHEDULE).index(s) <= at][-1]
                for name, found in stages.items()
            }
            results = call.interpret({name: kernel_of(module) for name, module in reached.items()})
            for number, (got, want) in enumerate(zip(results, expected, strict=True)):
                mismatch = compare(got, want)
                text = "\n".join(str(m) for m in reached.values())
                assert mismatch is None, f"after {step}, {dict(sizes)}, result {number}: {mismatch}\n{text}"
        return set(steps)
