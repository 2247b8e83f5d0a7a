"""The programs that a subject is tried on unless the caller has better ones."""

from __future__ import annotations

import hypothesis.strategies as st

from tilewright.api.testing.lin_programs import lin_programs
from tilewright.api.testing.program import Lane, Program
from tilewright.api.testing.subject import Subject

MAX_OPS = 4
"""Ops of a program: small ones run many times a second, and most faults need few."""


def default_programs(subject: Subject, lane: Lane | None = None) -> st.SearchStrategy[Program]:
    """Programs that reach the places of a subject; both lanes of values unless one is given."""
    return lin_programs(max_ops=MAX_OPS, lane=lane)
