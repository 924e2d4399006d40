# Two commands do everything on a fresh machine: `make demo` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
SETUP := $(VENV)/.installed
ENGINE_VENV := .venv-vllm
export LOREKEEPER_VLLM_PYTHON ?= $(CURDIR)/$(ENGINE_VENV)/bin/python
# Tests wait for processes and sockets a good part of their time.
WORKERS ?= 3
# Where bytecode is not kept, each of the many processes that tests start compiles everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup engine demo up test test-fast test-e2e lint types format bench-validation bench-revocation bench-upload bench-audit clean

help:  ## Show this help
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(SETUP): requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

setup: $(SETUP)  ## Make the virtual environment with everything pinned

engine: $(SETUP)  ## Make the engine's own virtual environment (vLLM for CPUs)
	@[ "$(LOREKEEPER_VLLM_PYTHON)" != "$(CURDIR)/$(ENGINE_VENV)/bin/python" ] || $(PY) -m deploy.engine.environment --venv $(ENGINE_VENV)

demo: engine  ## The main job on a real engine, step by step (KEEP=1 leaves it running)
	$(PY) -m deploy.demo $(if $(KEEP),--keep)

up: $(SETUP)  ## Start the embedded stack; Ctrl-C stops it
	$(PY) -m deploy.embedded up

lint: $(SETUP)  ## Style, templates and import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/djlint templates --check --quiet

types: $(SETUP)  ## mypy, strict
	LOREKEEPER_SECRET_KEY=types $(BIN)/mypy .

format: $(SETUP)  ## Write the style
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

test-fast: $(SETUP)  ## Everything without an engine or the whole stack; under 3 minutes
	$(PY) -m pytest -m "not e2e" -n $(WORKERS)

test-e2e: engine  ## The real engine and the whole stack of processes
	$(PY) -m pytest -m e2e

test: engine lint types  ## Everything, from a fresh machine on
	$(PY) -m pytest -m "not e2e" -n $(WORKERS)
	$(PY) -m pytest -m e2e

bench-validation: engine  ## Every kind of adapter, good and bad, on the checks and on a real vLLM; time and memory for an 8B base
	$(PY) -m bench.validation

bench-revocation: $(SETUP)  ## From the commit of a revocation to a gateway's first refusal
	$(PY) -m bench.revocation

bench-upload: $(SETUP)  ## MB/s of a push beside a bare S3 upload, and the memory that web takes for it
	$(PY) -m bench.upload

bench-audit: $(SETUP)  ## What a record of the audit log costs, and eight writers of one chain
	$(PY) -m bench.audit

clean:  ## Remove what setup and runs have made
	rm -rf $(VENV) $(ENGINE_VENV) .lorekeeper .lorekeeper-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
