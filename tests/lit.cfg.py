"""lit's configuration, for people: `make lit`, or `lit -v tests/filecheck/passes`.

`pytest tests/filecheck` runs the same files in one process, many times faster; see test_filecheck.py there.
"""

import runpy
import sys
from pathlib import Path

import lit.formats

_HERE = Path(__file__).parent
_BIN = Path(sys.executable).parent

config = globals()["config"]
config.name = "tilewright"
config.test_format = lit.formats.ShTest(execute_external=False)
config.test_source_root = str(_HERE)
config.test_exec_root = str(_HERE / "Output")
config.suffixes = [".mlir"]
config.excludes = ["Output", "Inputs"]
# The tools of the interpreter that runs lit, whatever else is on PATH.
config.environment["PATH"] = f"{_BIN}:{config.environment.get('PATH', '')}"
config.substitutions.extend(runpy.run_path(str(_HERE / "filecheck" / "substitutions.py"))["SUBSTITUTIONS"].items())
