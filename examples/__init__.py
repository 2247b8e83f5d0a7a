"""Example programs: each is a module with `EXAMPLE`, and runs alone as `python -m examples.<name>`."""
