"""Benchmarks: each is a module that runs alone; results with machine, versions and command are kept in `results/`."""
