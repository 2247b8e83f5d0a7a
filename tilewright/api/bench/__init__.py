"""`tilewright bench`: compiled products against cuBLAS and Triton, side by side in one process. Start at `session.py`.

`shapes` says what is measured, `measure` how (no GPU in it), `torch_lab` and `host_lab` on what; `records` keeps it,
`summary` and `report` show it.
"""
