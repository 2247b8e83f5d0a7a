"""`tilewright-opt`: run passes over IR text, as MLIR users know it from mlir-opt. The driver is in `main.py`."""
