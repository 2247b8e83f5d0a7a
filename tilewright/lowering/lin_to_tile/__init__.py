"""From tensors to tiles: one kernel a group, and the host function that launches them."""

from tilewright.lowering.lin_to_tile.lin_to_tile import LinToTilePass

__all__ = ["LinToTilePass"]
