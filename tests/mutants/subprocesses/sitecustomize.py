"""On PYTHONPATH while the map is made: every Python process records the lines it runs (COVERAGE_PROCESS_START)."""

import coverage

coverage.process_startup()
