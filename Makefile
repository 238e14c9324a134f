# Each of these does its own set-up: make demo | test | check | bench | docs | data-report
# With another interpreter: make test PYTHON=python3.13 VENV=.venv-3.13

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
export NUMBA_CACHE_DIR ?= $(shell $(PYTHON) tests/kernel_cache.py)

.PHONY: demo test check bench docs data-report clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "softmap needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

# One stamp per extra, so that each target installs what it needs, once per change of pyproject.toml.
$(VENV)/installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

demo: $(VENV)/installed-plot
	$(BIN)/softmap demo --out demo

test: $(VENV)/installed-test
	$(BIN)/python tests/warm_up.py
	$(BIN)/python -m pytest -n $(WORKERS)

check: $(VENV)/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

# PGMax lists much that is not needed here; what it does need comes with the extra.
bench: $(VENV)/installed-bench
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps pgmax
	$(BIN)/python -m benchmarks

docs: $(VENV)/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

data-report: $(VENV)/installed-opengm
	$(BIN)/python -m benchmarks.data_report

clean:
	rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis docs/_build demo
