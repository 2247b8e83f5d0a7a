"""The class of targets: limits, a pipeline that keeps them, and the text of kernels through an emitter table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils import target as xdsl_target

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.memory import RegsAllocOp, StoreOp
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.types import GlobalType, MbarType, RegsType, SharedType, TmapType
from tilewright.lowering import pipelines
from tilewright.lowering.simt_to_cuda.table import EMITTERS
from tilewright.lowering.simt_to_cuda.types import CUDA_CPP, Spelling
from tilewright.lowering.simt_to_cuda.writer import Write, Writer
from tilewright.lowering.targets.limits import DTYPES, Limits
from tilewright.passes.core import error_at
from tilewright.passes.element_size import bytes_of
from tilewright.passes.pipeline import OnAfter, run_pipeline
from tilewright.passes.remarks import remark


@dataclass(frozen=True)
class Target(xdsl_target.Target, ABC):
    """What simt kernels are written as. A subclass is a frozen dataclass whose fields are its options.

    It states `name`, `extension` and `limits`, and writes `header` and `head`; it may replace entries of `emitters`,
    the `spelling` of types and the `pipeline`. The first line of its docstring is what `--list-targets` shows.
    """

    extension: ClassVar[str]
    """How files of this language end, with the dot."""

    emitters: ClassVar[Mapping[type[Operation], Write]] = EMITTERS
    """From the class of an op to the function that writes it (`lowering/simt_to_cuda/table.py`)."""

    spelling: ClassVar[Spelling] = CUDA_CPP
    """How types, casts and constants are written."""

    pipeline: ClassVar[tuple[str, ...]] = pipelines.TILE
    """Names of the passes that take a kernel variant from tiles to threads."""

    @property
    @abstractmethod
    def limits(self) -> Limits:
        """What the device takes, which may depend on the target's options."""

    @abstractmethod
    def header(self, kernels: Sequence[KernelOp]) -> str:
        """The text in front of kernels: what defines the wrappers that the emitters call."""

    @abstractmethod
    def head(self, w: Writer, kernel: KernelOp) -> str:
        """What stands before a kernel's `{`: attributes, name and parameters. Binds the body's arguments in `w`."""

    def prologue(self, w: Writer, kernel: KernelOp) -> None:
        """Write what a kernel begins with, nothing by default."""

    def options(self) -> dict[str, dict[str, Any]]:
        """Options of the pipelines' passes, by the name of the pass: those that follow from the limits.

        A target whose device wants others adds them, such as `{"lin-to-tile": {"tile_sizes": (16, 16)}}`.
        """
        return self.limits.pass_options()

    def tile_passes(self) -> list[ModulePass]:
        """The passes of `pipeline`, told the limits."""
        return pipelines.make_passes(self.pipeline, self.options())

    def lower(
        self, module: ModuleOp, ctx: Context, *, verify_each: bool = False, on_after: OnAfter | None = None
    ) -> None:
        """Take a tensor-level module down to simt kernels for this target, one for each variant, in place.

        The launch plan is dropped on the way: it is what `tilewright.compile` runs kernels by.
        """
        tensor = pipelines.make_passes((*pipelines.TENSOR, "instantiate-variants"), self.options())
        run_pipeline(module, ctx, [*tensor, *self.tile_passes()], verify_each=verify_each, on_after=on_after)

    def check(self, kernel: KernelOp) -> None:
        """Raise TilewrightError, at the op concerned, where a kernel needs more than the limits allow."""
        limits, who = self.limits, f"target {self.name}: @{kernel.sym_name.data}"
        threads, shared = kernel.threads.value.data, kernel.smem.value.data
        if threads > limits.threads:
            raise error_at(kernel, f"{who} has {threads} threads a block, at most {limits.threads} are allowed")
        if shared > limits.shared_bytes:
            raise error_at(
                kernel, f"{who} needs {shared} bytes of shared memory, at most {limits.shared_bytes} are allowed"
            )
        for op, type_ in scalar_types(kernel):
            if str(type_) not in limits.dtypes and str(type_) in DTYPES:
                raise error_at(op, f"{who} uses {type_}, expected one of {', '.join(limits.dtypes)}")
        words = sum(_words(op) for op in kernel.walk() if isinstance(op, RegsAllocOp))
        if words > limits.registers:
            remark(kernel, self.name, f"{words} registers for arrays alone, of {limits.registers}: they spill")

    def source(self, kernels: Sequence[KernelOp]) -> str:
        """The complete text of kernels, in order. TilewrightError at an op that has no entry or is over a limit."""
        for kernel in kernels:
            self.check(kernel)
        return "\n".join([self.header(kernels), *(self._kernel(kernel) for kernel in kernels)])

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the source of all simt kernels of the module to `output`; TilewrightError where there is none."""
        kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
        if not kernels:
            raise TilewrightError(
                f"target {self.name}: expected a simt.kernel in the module, got none: run tile-to-simt first"
            )
        output.write(self.source(kernels))

    def _kernel(self, kernel: KernelOp) -> str:
        w = Writer(self.emitters, read_only_pointers(kernel), spelling=self.spelling, target=self.name)
        try:
            head = self.head(w, kernel)
        except TilewrightError as error:
            raise error if error.location is not None else error_at(kernel, error.message) from None
        with w.braces(head):
            self.prologue(w, kernel)
            w.body(kernel.body.block)
        return "\n".join(w.lines) + "\n"


def read_only_pointers(kernel: KernelOp) -> set[SSAValue]:
    """The kernel's global pointers through which it never stores."""
    written = {op.memory for op in kernel.walk() if isinstance(op, StoreOp)}
    return {pointer for pointer in kernel.pointers if pointer not in written}


def scalar_types(kernel: KernelOp) -> list[tuple[Operation, Attribute]]:
    """The scalar types of a kernel's values, of elements for arrays and pointers, each with the first op of it."""
    found: dict[Attribute, Operation] = {}
    for op in kernel.walk():
        values: list[SSAValue] = list(op.results)
        for region in op.regions:
            for block in region.blocks:
                values += block.args
        for value in values:
            t = value.type
            found.setdefault(t.element if isinstance(t, GlobalType | SharedType | RegsType | TmapType) else t, op)
    return [(op, type_) for type_, op in found.items()]


def uses_shared_memory(kernel: KernelOp) -> bool:
    """Whether the kernel has a shared array."""
    return bool(shared_memory_types(kernel))


def shared_memory_types(kernel: KernelOp) -> list[SharedType | MbarType]:
    """The types of what lies in a kernel's shared memory: arrays, and barriers."""
    values = (value for op in kernel.walk() for value in op.results)
    return [value.type for value in values if isinstance(value.type, SharedType | MbarType)]


def _words(op: RegsAllocOp) -> int:
    count = 1
    for size in op.res.type.sizes:
        count *= size
    return -(-count * bytes_of(op.res.type.element) // 4)
