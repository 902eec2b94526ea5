# Two targets do everything: `make demo` runs the advisor on sample clusters, `make test` passes all checks.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null || echo $(BIN)/uv)
export UV_PYTHON_DOWNLOADS := never

.PHONY: demo test lint docs lock clean

demo: $(VENV)/.runtime
	$(BIN)/gpu-advisor demo

test: lint
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("gpu-advisor needs Python 3.11 or later; set PYTHON=/path/to/python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(BIN)/uv: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/build.txt

$(VENV)/.runtime: requirements/runtime.txt pyproject.toml | $(BIN)/python $(UV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/build.txt -r requirements/runtime.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.runtime
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@touch $@

# The pages that are made from the rules; a test says when they are stale.
docs: $(VENV)/.runtime
	$(BIN)/gpu-advisor rules --docs docs
	$(BIN)/python -m rules.custom.reference > docs/facts.md
	$(BIN)/gpu-advisor rbac > deploy/rbac.yaml

# Locks are pinned and hashed for every platform and name no host.
LOCK = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate
lock: | $(BIN)/python $(UV)
	$(LOCK) pyproject.toml --extra dev -o requirements/dev.txt
	$(LOCK) pyproject.toml -c requirements/dev.txt -o requirements/runtime.txt
	printf 'hatchling\neditables\nuv\n' | $(LOCK) - -c requirements/dev.txt -o requirements/build.txt

clean:
	rm -rf $(VENV) build dist *.egg-info
