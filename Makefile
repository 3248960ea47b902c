# make train   an agent learns on real ARC tasks        make test   every test
# Both build .venv first when it is missing or out of date. PYTHON=python3.12 chooses the interpreter, ARGS="..." is
# passed on: make train ARGS="training.seed=1", make test ARGS="-k flood".

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
READY := .venv/.ready
BUILDING := .venv/.building
PEERS := benchmarks/.venv-peers

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help train test lint format types docs wheel clean benchmark-peers compare-rules
.DEFAULT_GOAL := help

help:
	@echo "make train    train an agent on real ARC tasks    (ARGS: what 'jaxarc train --help' lists)"
	@echo "make test     run every test                      (ARGS: pytest options)"
	@echo "make lint     ruff, check and format              make format   let ruff repair both"
	@echo "make types    pyright                             make docs     build the pages into dist/docs"
	@echo "make wheel    build the wheel into dist           make clean    remove .venv, caches and dist"
	@echo "make compare-rules     play the same small games with JaxARC 1.0.3 and ARCLE 0.2.6, and write docs/comparison.md"
	@echo "make benchmark-peers   compare the speed with JaxARC 1.0.3 and ARCLE 0.2.6   (ARGS: --quick, --help)"

train: $(READY)
	$(BIN)/jaxarc train $(if $(findstring experiment=,$(ARGS)),,experiment=ladder_l2_small) $(ARGS)

test: $(READY)
	$(BIN)/python -m pytest $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY)
	$(BIN)/pyright

docs: $(READY)
	$(BIN)/python -m pip install -qq --constraint constraints.txt --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

wheel: $(READY)
	$(BIN)/python -m pip wheel -qq --no-deps --wheel-dir dist .

compare-rules: $(READY) $(PEERS)/.ready
	$(BIN)/python benchmarks/rules/compare_rules.py

benchmark-peers: $(READY) $(PEERS)/.ready
	$(BIN)/python benchmarks/compare_peers.py $(ARGS)

clean:
	rm -rf .venv $(PEERS) dist .pytest_cache .hypothesis .ruff_cache .coverage
	find src tests -name __pycache__ -prune -exec rm -rf {} +

# READY is the last file to be written, BUILDING lies there while pip works: a .venv in which it is still found was
# interrupted, and one whose Python does not start has lost its interpreter. Neither is trusted; both are made anew.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
	    echo "jaxarc needs Python 3.11, 3.12 or 3.13, and '$(PYTHON)' is `$(PYTHON) --version 2>&1`." \
	         "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@if [ -e $(BUILDING) ] || ! $(BIN)/python -c '' 2>/dev/null; then rm -rf .venv; fi
	@echo "Building .venv with `$(PYTHON) --version` (once; a few minutes, mostly download) ..."
	@mkdir -p .venv && touch $(BUILDING)
	@[ -x $(BIN)/pip ] || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --editable ".[dev]"
	@rm -f $(BUILDING) && touch $(READY)
	@echo ".venv is ready"

# Both jaxarc and JaxARC are imported as jaxarc, so the peers live in an environment of their own.
$(PEERS)/.ready: benchmarks/requirements-peers.txt | $(READY)
	@echo "Building $(PEERS) (once; about a minute, mostly download) ..."
	@rm -rf $(PEERS)
	@$(BIN)/python -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install -qq --requirement benchmarks/requirements-peers.txt
	@touch $@
