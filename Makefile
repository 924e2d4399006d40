# Two commands do everything on a fresh machine: `make demo` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
SETUP := $(VENV)/.installed
# Set up, and translations compiled.
READY := $(VENV)/.ready
ENGINE_VENV := .venv-vllm
export LOREKEEPER_VLLM_PYTHON ?= $(CURDIR)/$(ENGINE_VENV)/bin/python
# Tests wait for processes and sockets a good part of their time.
WORKERS ?= 3
# It takes some six minutes by itself.
CHAOS := tests/e2e/test_cache_chaos.py
# What drives the whole stack on a real engine has the machine for itself; the rest doesn't need it.
# The browser's driver keeps an event loop running in its process, where others need none.
define TEST_E2E
$(PY) -m pytest -m e2e --ignore tests/e2e -n 2 --dist loadscope
$(PY) -m pytest -m e2e tests/e2e/web -n 2
$(PY) -m pytest -m e2e tests/e2e --ignore tests/e2e/web --deselect $(CHAOS)
endef
# Where bytecode is not kept, each of the many processes that tests start compiles everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup engine demo up test test-fast test-e2e test-chaos browser lint types format messages screenshots bench-validation bench-revocation bench-upload bench-audit bench-coldpath bench-planner bench-replay bench-cache bench-agent bench-gateway bench-gateway-faults soak-gateway bench-judge bench-release bench-ui test-compiled clean

help:  ## Show this help
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(SETUP): requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(READY): $(SETUP) $(wildcard */locale/*/LC_MESSAGES/django.po)
	$(PY) -m config.messages.compile
	@touch $@

setup: $(READY)  ## Make the virtual environment with everything pinned

engine: $(READY)  ## Make the engine's own virtual environment (vLLM for CPUs)
	@[ "$(LOREKEEPER_VLLM_PYTHON)" != "$(CURDIR)/$(ENGINE_VENV)/bin/python" ] || $(PY) -m deploy.engine.environment --venv $(ENGINE_VENV)

demo: engine  ## The main job on a real engine, step by step (KEEP=1 leaves it running)
	$(PY) -m deploy.demo $(if $(KEEP),--keep)

up: $(READY)  ## Start the embedded stack; Ctrl-C stops it
	$(PY) -m deploy.embedded up

lint: $(READY)  ## Style, templates and import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/djlint templates --check --quiet

types: $(READY)  ## mypy, strict
	LOREKEEPER_SECRET_KEY=types $(BIN)/mypy .

messages: $(READY)  ## Write new texts into the catalogues of translations, and compile them
	$(PY) -m config.messages.update
	$(PY) -m config.messages.compile

format: $(READY)  ## Write the style
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

test-fast: $(READY)  ## Everything without an engine or the whole stack; about 7 minutes on 2 cores
	$(PY) -m pytest -m "not e2e" -n $(WORKERS)

test-compiled: $(READY)  ## The gateway's tests on its compiled form, which is what the image has
	cd $$($(PY) -m deploy.compiled) && $(CURDIR)/$(PY) -m pytest -m "not e2e" -n $(WORKERS) \
		tests/unit/gateway tests/integration/gateway tests/property/test_engine_bytes.py tests/property/test_engine_reads.py

test-e2e: engine browser  ## The real engine and the whole stack of processes
	$(TEST_E2E)

test-chaos: engine  ## The stack hurt in the middle of loads on a real engine, with the figures
	$(PY) -m pytest $(CHAOS) -s

browser:  ## Install Debian's Chromium for the tests of pages, unless there is one
	@[ -n "$${LOREKEEPER_CHROMIUM:-}" ] || command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	    || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q && apt-get install -y -q chromium fonts-noto-cjk; } \
	    || { echo "Tests of pages need Chromium: apt-get install chromium fonts-noto-cjk, or name one in LOREKEEPER_CHROMIUM." >&2; exit 1; }

screenshots: $(READY) browser  ## Pictures of every page in every look and language, into .screenshots/
	LOREKEEPER_SCREENSHOTS=$(CURDIR)/.screenshots $(PY) -m pytest -m e2e $$(grep -l '\.shoot(' tests/e2e/web/test_*.py)

test: engine browser lint types  ## Everything but the chaos, from a fresh machine on
	$(PY) -m pytest -m "not e2e" -n $(WORKERS)
	$(TEST_E2E)

bench-validation: engine  ## Every kind of adapter, good and bad, on the checks and on a real vLLM; time and memory for an 8B base
	$(PY) -m bench.validation

bench-revocation: $(READY)  ## From the commit of a revocation to a gateway's first refusal
	$(PY) -m bench.revocation

bench-upload: $(READY)  ## MB/s of a push beside a bare S3 upload, and the memory that web takes for it
	$(PY) -m bench.upload

bench-coldpath: $(READY)  ## From a cold request to the command at the node, and from the node's word back to the request
	$(PY) -m bench.coldpath

bench-audit: $(READY)  ## What a record of the audit log costs, and eight writers of one chain
	$(PY) -m bench.audit

bench-cache: engine  ## Misses, waiting and bytes loaded on one real vLLM: by Lorekeeper, and driven by hand
	$(PY) -m bench.cache

bench-agent: $(READY)  ## 10,000 versions on one node's agent: its memory, commands a second, where the time of a load goes
	$(PY) -m bench.agent

bench-replay: $(READY)  ## Eviction policies side by side on a synthetic day: misses, bytes loaded, what requests waited
	$(PY) -m bench.replay

bench-planner: $(READY)  ## 1,000 nodes x 10,000 versions planned from scratch, after one change and step by step
	$(PY) -m bench.planner

bench-gateway: $(READY)  ## Added latency, requests a second and CPU of the gateway beside direct calls and other routers
	$(PY) -m bench.gateway

bench-gateway-faults: $(READY)  ## Engines that die, hang, break off, fail and lie; a tenant with 500 connections beside the others
	$(PY) -m bench.gateway.faults

soak-gateway: engine  ## 24 streams over 6 aliases of a real vLLM for ten minutes (SOAK=seconds)
	LOREKEEPER_SOAK_SECONDS=$(or $(SOAK),600) $(PY) -m pytest tests/e2e/test_gateway_streams.py -s

bench-release: engine  ## Releases on a real vLLM under load: one promoted, four found out and rolled back by themselves; the button's p95
	$(PY) -m bench.release

bench-judge: $(READY)  ## How often the judge of releases is wrong and how soon it is right, over simulated releases
	$(PY) -m bench.judge

bench-ui: $(READY)  ## Server time and queries of every page over 100,000 versions and 5 million audit records
	$(PY) -m bench.ui

clean:  ## Remove what setup and runs have made
	rm -rf $(VENV) $(ENGINE_VENV) .lorekeeper .lorekeeper-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .screenshots \
		build *.egg-info celerybeat-schedule*
	rm -f */locale/*/LC_MESSAGES/*.mo
