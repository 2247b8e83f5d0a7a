"""Programs that failed once, each as a failure file; they run before all other tests.

A file that names a subject meets that one, at the place that it names; any other meets every pass and lowering, and
the whole pipeline. To add one: move what `tilewright fuzz` or a test wrote here, under the folder of what was wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.api.testing.replay import load_failure, replay
from tilewright.api.testing.subject import REFERENCE_SIM, subject_of
from tilewright.lowering.registry import all_lowerings
from tilewright.passes.registry import CHECKS, all_passes

FOLDER = Path(__file__).parent
FILES = {str(path.relative_to(FOLDER)): path for path in sorted(FOLDER.rglob("*.mlir"))}
SUBJECTS = [REFERENCE_SIM, *(name for name in (*all_passes(), *all_lowerings()) if name not in CHECKS)]


@pytest.mark.parametrize("name", FILES)
def test_file(name: str) -> None:
    failure = load_failure(FILES[name])
    subjects = [None] if failure.subject else [subject_of(each) for each in SUBJECTS]
    for subject in subjects:
        found = replay(failure, subject)
        assert found is None, f"{failure.what}\nnow: {found}"
