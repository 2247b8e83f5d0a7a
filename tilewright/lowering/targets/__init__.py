"""Targets: what kernels are written as, and what the device that runs them can take.

`registry.py` finds targets by name without importing them, `limits.py` holds a device's limits, `base.py` the class
that every target derives from. `cuda` itself stands with its emitter, in `lowering/simt_to_cuda/target.py`.
"""

from tilewright.lowering.targets.registry import TARGETS, all_targets, register_target

__all__ = ["TARGETS", "all_targets", "register_target"]
