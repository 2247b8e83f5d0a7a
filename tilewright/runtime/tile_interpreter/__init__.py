"""Executes the tile level in NumPy, block by block and without threads: `kernel.py` a kernel, `host.py` an entry."""
