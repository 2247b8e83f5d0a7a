# `make help` lists what there is. A fresh machine needs Python >= 3.11 and make; everything else goes into .venv.
#
# PYTHON is the interpreter that makes .venv. To use an environment that is there already: make VENV=/path/to/it test

PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
WORKERS ?= 2
PYTEST_FLAGS ?=
CHECK_FLAGS ?=
MUTANTS_FLAGS ?=
COVERAGE_FLAGS ?=
COVERAGE_OUTPUT ?= benchmarks/results/coverage-$(shell date +%F).json
FUZZ_CASES ?= 100000
FUZZ_SECONDS ?= 600
FUZZ_OUTPUT ?= benchmarks/results/sym-fuzz-$(shell date +%F).json

.DEFAULT_GOAL := help
.PHONY: help demo test coverage fuzz mutants lit lint types format check check-kernels sanitize wheel clean

help: ## list the targets
	@grep -hE '^[a-z.-]+:.*## ' Makefile | sed -E 's/^([a-z.-]+):.*## /\1\t/' | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

$(STAMP): pyproject.toml
	@echo "install: $(VENV)"
	@"$(PYTHON)" -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "needs Python >= 3.11, this is " + sys.version)'
	@test -x "$(PY)" || "$(PYTHON)" -m venv "$(VENV)"
	@"$(PY)" -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch "$(STAMP)"

demo: $(STAMP) ## compile and run the examples, on the GPU if there is one, and check what they give
	@"$(PY)" -m examples.demo

test: $(STAMP) ## run all tests; says what it skipped and why
	@echo "test: pytest"
	@"$(PY)" -m pytest -q -n $(WORKERS) -rs $(PYTEST_FLAGS)

coverage: $(STAMP) ## branch coverage of the tests over the package, by room; what of passes and lowering never runs
	@"$(PY)" -m tests.measure_coverage --workers $(WORKERS) --output $(COVERAGE_OUTPUT) $(COVERAGE_FLAGS)

fuzz: $(STAMP) ## random programs for every pass (FUZZ_SECONDS, 600), then 100,000 cases of the symbolic algebra
	@"$(VENV)/bin/tilewright" fuzz --time $(FUZZ_SECONDS) --workers $(WORKERS) --corpus tests/corpus
	@"$(PY)" -m tests.dialects.sym.fuzz --cases $(FUZZ_CASES) --workers $(WORKERS) --output $(FUZZ_OUTPUT)

mutants: $(STAMP) ## put faults into the compiler one at a time, and see that tests fail (an hour; goes on where it stopped)
	@"$(PY)" -m tests.mutants --workers $(WORKERS) $(MUTANTS_FLAGS)

lit: $(STAMP) ## run the .mlir tests in processes of their own, as lit does
	@"$(VENV)/bin/lit" -q tests/filecheck

lint: $(STAMP) ## check style
	@echo "lint: ruff"
	@"$(PY)" -m ruff check --quiet .
	@"$(PY)" -m ruff format --check --quiet .

types: $(STAMP) ## check types
	@echo "types: pyright"
	@"$(PY)" -m pyright --pythonpath "$(PY)"

format: $(STAMP) ## rewrite files to the style
	@"$(PY)" -m ruff check --fix --quiet .
	@"$(PY)" -m ruff format --quiet .

check: lint types test ## lint, types and test

check-kernels: $(STAMP) ## compile every kernel for sm_80 and sm_90a, hold its machine code to its IR (minutes, later seconds)
	@"$(PY)" -m tests.kernels.check $(CHECK_FLAGS)

sanitize: $(STAMP) ## run the examples on the GPU under compute-sanitizer
	@"$(PY)" -m tests.sanitize

wheel: $(STAMP) ## build dist/*.whl
	@"$(PY)" -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

clean: ## remove what make, tests and tools leave behind, .venv included
	@rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .coverage .mutants
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
