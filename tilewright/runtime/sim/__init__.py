"""`sim`: runs simt kernels in NumPy on any machine, and counts and checks what their memory accesses do.

Start at `launch.py` (`simulate`); `compiler.py` says how a kernel becomes a list of Python functions.
"""
