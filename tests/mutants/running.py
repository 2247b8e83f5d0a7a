"""Running one mutant: a copy of the project, the fault in it, and a pytest of its own that runs the chosen tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.mutants.mapping import KnownTest
from tests.mutants.mutants import Mutant
from tests.mutants.trees import PACKAGE, copy_project, environment, python

SECONDS: Final = 40.0
"""What a mutant gets, starting and collecting included."""
_STARTING: Final = 1.5
"""Before the plugin's clock runs: interpreter and pytest."""
_GRACE: Final = 4.0
"""What a running test gets beyond that to end by itself."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `verdict`: `caught` (a test failed, or the process died), `timeout` (a test hangs, which counts
    as caught), `survived` (all passed, or the time was spent), `unreached` (no test reaches the file)."""

    verdict: str
    by: str = ""
    message: str = ""
    ran: int = 0
    planned: int = 0
    seconds: float = 0.0


class ControlFailed(Exception):
    """A test that catches a mutant fails without it too, so it says nothing."""


@dataclass
class Worker:
    """A copy of the project in `folder`, in which one mutant after the other stands."""

    folder: Path
    patience: float = 10.0
    """Seconds after which a short test is thought to hang."""
    tree: Path = field(init=False)
    _process: subprocess.Popen[str] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.tree = self.folder / "tree"
        if not self.tree.exists():
            copy_project(self.tree)

    def run(self, mutant: Mutant | None, tests: Sequence[KnownTest], seconds: float = SECONDS) -> Outcome:
        """Run the tests in this order until one fails, with the mutant or, for None, without."""
        if not tests:
            return Outcome("unreached")
        if mutant is None:
            return self._pytest(tests, seconds)
        place = self.tree / PACKAGE / mutant.file
        if place.read_text(encoding="utf-8") != mutant.text:
            raise RuntimeError(f"{mutant.file} changed while the mutants were listed; start again")
        try:
            place.write_text(mutant.changed(), encoding="utf-8")
            return self._pytest(tests, seconds)
        finally:
            place.write_text(mutant.text, encoding="utf-8")

    def stop(self) -> None:
        """End the pytest that runs, and what it started."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def _pytest(self, tests: Sequence[KnownTest], seconds: float) -> Outcome:
        scratch = self.folder / "scratch"
        subprocess.run(["rm", "-rf", str(scratch)], check=True)
        env = environment(self.tree, scratch, TILEWRIGHT_MUTANTS_PLAN=str(scratch / "plan.json"))
        plan = {
            "tests": [[t.name, t.seconds] for t in tests],
            "tree": str(self.tree),
            "seconds": seconds - _STARTING,
            "patience": self.patience,
            "result": str(scratch / "result.json"),
        }
        (scratch / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        files = list(dict.fromkeys(t.name.partition("::")[0] for t in tests))
        plugins = ["-p", "tests.mutants.verdicts", "-p", "no:cacheprovider", "-p", "no:xdist"]
        command = [python(), "-m", "pytest", "-x", "-q", *plugins, *files]
        started = time.monotonic()
        with (scratch / "log").open("w") as log:
            with self._lock:
                self._process = subprocess.Popen(
                    command, cwd=self.tree, env=env, stdout=log, stderr=log, text=True, start_new_session=True
                )
            try:
                code: int | None = self._process.wait(seconds + _GRACE)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                self.stop()
                self._process.wait()
        result = scratch / "result.json"
        state: dict[str, Any] = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
        outcome = self._judge(code, state, (scratch / "log"))
        spent = round(time.monotonic() - started, 2)
        return Outcome(outcome[0], outcome[1], outcome[2], int(state.get("ran", 0)), len(tests), spent)

    @staticmethod
    def _judge(code: int | None, state: dict[str, Any], log: Path) -> tuple[str, str, str]:
        """Verdict, the test that decided, and what it said."""
        running = str(state.get("running", ""))
        if state.get("ended") == "hang" or (code is None and running and time.time() > state["until"]):
            return "timeout", running, "does not end"
        if state.get("by") is not None:
            return "caught", str(state["by"]), str(state["message"])
        if code in (0, None) or (code == 2 and state.get("ended") == "budget"):
            return "survived", "", "" if code == 0 else "the time was spent"
        said = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        if code is not None and (code < 0 or code in (1, 3, 4, 134, 139)) and "not from" not in "".join(said[-3:]):
            # conftest or a plugin fails to import the mutated package, or the process is gone.
            return "caught", running or "(starting)", f"exit code {code}: {said[-1] if said else ''}"[:200]
        raise RuntimeError(f"pytest could not run the tests of a mutant (exit code {code}):\n" + "\n".join(said[-20:]))


@dataclass
class Control:
    """Whether tests pass without any mutant, each asked once."""

    known: dict[str, bool] = field(default_factory=dict[str, bool])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def confirm(self, worker: Worker, outcome: Outcome, tests: Sequence[KnownTest], seconds: float = SECONDS) -> None:
        """Raise ControlFailed if the test that caught a mutant fails in the same copy without it."""
        test = next((t for t in tests if t.name == outcome.by), None)
        if outcome.verdict not in ("caught", "timeout"):
            return
        # What fails when modules are imported is no test of the map; then the first test of the plan stands for it.
        test = test or tests[0]
        with self._lock:
            passed = self.known.get(test.name)
        if passed is None:
            passed = worker.run(None, [test], seconds).verdict == "survived"
            with self._lock:
                self.known[test.name] = passed
        if not passed:
            raise ControlFailed(f"{test.name} fails without a mutant too")
