# make train   an agent learns on real ARC tasks        make test   the tests, in a few minutes
# Both build .venv first when it is missing or out of date. PYTHON=python3.12 chooses the interpreter, ARGS="..." is
# passed on: make train ARGS="training.seed=1", make test ARGS="-k flood".

# JAX 0.11 and later need Python 3.12. pyenv starts only the versions that are chosen, so each that it has is chosen here.
PYTHON ?= $(shell export PYENV_VERSION=$$(pyenv versions --bare 2>/dev/null | grep -E '^3\.1[123]\.' | paste -sd:); \
    for name in python3.12 python3.13 python3; do $$name -c 'import sys; print(sys.executable)' 2>/dev/null && exit; done; echo python3)
ARGS ?=
BIN := .venv/bin
READY := .venv/.ready
BUILDING := .venv/.building
PAGES_READY := .venv/.ready-docs
PEERS := benchmarks/.venv-peers
MUTANTS := tests/campaign/.venv-mutants
CUDA := tests/campaign/accelerator/.venv-cuda
SANITIZED := dist
ZIG := .venv/zig
WHEELS := linux-x86_64 linux-aarch64 macos-arm64 windows-x86_64

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help train test test-all test-nightly lint format types docs wheel wheels clean benchmark-peers
.PHONY: coverage modes sanitize sanitize-kernels sanitize-calls sanitize-search emulate fuzz mutants kills corrupt fuzz-input soak audit
.PHONY: accelerator accelerator-measure
.DEFAULT_GOAL := help

help:
	@echo "make train    train an agent on real ARC tasks    (ARGS: what 'jaxarc train --help' lists)"
	@echo "make test     run the tests but slow ones         (ARGS: pytest options)"
	@echo "make test-all run slow ones too, as CI does       make test-nightly   run what CI leaves to the night"
	@echo "make lint     ruff, check and format              make format   let ruff repair both"
	@echo "make types    pyright                             make docs     build the pages into dist/docs"
	@echo "make wheel    build the wheel into dist           make clean    remove .venv, caches and dist"
	@echo "make wheels   build that of every platform, with the C++ libraries (0.5 GB of compilers, mostly download)"
	@echo "make benchmark-peers   compare the speed with JaxARC 1.0.3 and ARCLE 0.2.6   (ARGS: --quick, --help)"
	@echo
	@echo "Campaigns, which try more than a test may (all take ARGS=--help; docs/reliability.md says what they found):"
	@echo "make coverage     run every test, and tell what of src none of them ran"
	@echo "make modes        run tests in other modes of JAX, on other Pythons and versions"
	@echo "make fuzz         play random episodes against the reference, 50 million steps"
	@echo "make sanitize     play random steps through the C++ kernels, watched by sanitizers (ARGS: number of batches)"
	@echo "make emulate      play them as the wheels compile them for arm64 and Windows, under qemu and wine"
	@echo "make mutants      change the rules in one place at a time, and list what no test notices"
	@echo "make kills        kill processes that write files, 200 times, and compare what they leave"
	@echo "make corrupt      damage every kind of file that is read, 1,000 times each, and see that it is noticed"
	@echo "make fuzz-input   feed every reader with 5,000 wrong inputs"
	@echo "make soak         train and roll out for two hours under limits: is memory flat, does speed stay?"
	@echo "make accelerator  compile for an NVIDIA H200 without one: launches, loops, bytes and bounds (Linux, 6 GB)"
	@echo "make accelerator-measure   on a GPU: the same bits as a CPU, then how fast it is beside those bounds"
	@echo "make audit        look up known vulnerabilities of the packages in constraints.txt"

train: $(READY)
	$(BIN)/jaxarc train $(ARGS)

test: $(READY)
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

test-all: $(READY)
	$(BIN)/python -m pytest -m "not nightly" $(ARGS)

test-nightly: $(READY)
	$(BIN)/python -m pytest -m nightly $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY)
	$(BIN)/pyright

$(PAGES_READY): $(READY)
	$(BIN)/python -m pip install -qq --constraint constraints.txt --editable ".[docs]"
	touch $@

docs: $(PAGES_READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# By folder, not by package: a file of the package that is run as a script, as benchmarks do, is no module of it.
coverage: $(READY)
	$(BIN)/python -m pytest --cov=$(CURDIR)/src/jaxarc --cov-report=term-missing --cov-report=html:dist/coverage $(ARGS)

modes: $(READY)
	$(BIN)/python -m pip install -qq --constraint constraints.txt nox uv
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/nox $(ARGS)

wheel: $(READY)
	$(BIN)/python -m pip wheel -qq --no-deps --wheel-dir dist .

# A wheel that JAXARC_WHEEL does not name is pure. Each is built from this tree, and none from the one before.
wheels: $(ZIG)/.ready
	rm -f dist/jaxarc_rl-*.whl
	for name in "" $(WHEELS); do \
	    JAXARC_WHEEL=$$name $(ZIG)/bin/python -m hatchling build --target wheel --directory dist || exit 1; \
	done
	$(ZIG)/bin/twine check --strict dist/jaxarc_rl-*.whl
	for wheel in dist/jaxarc_rl-*-manylinux*.whl; do $(ZIG)/bin/auditwheel show $$wheel || exit 1; done

benchmark-peers: $(READY) $(PEERS)/.ready
	$(BIN)/python benchmarks/compare_peers.py $(ARGS)

fuzz: $(READY)
	PYTHONPATH=tests $(BIN)/python -m campaign.episodes.fuzz_episodes $(ARGS)

# The kernels alone, without JAX: the sanitizers see every byte of the arrays. The calls need the headers of jaxlib. -g1:
# reports name the line; what -g adds takes a third of the time of compiling.
SANITIZE = $(CXX) -std=c++17 -O1 -g1 -march=native -Wall -Wextra -Werror -Wno-psabi -fsanitize=address,undefined \
    -fno-sanitize-recover=all -I src/jaxarc/native

sanitize: sanitize-kernels sanitize-calls sanitize-search

sanitize-kernels: $(READY)
	@mkdir -p $(SANITIZED)
	$(SANITIZE) tests/campaign/native/sanitize.cc -o $(SANITIZED)/sanitize
	$(SANITIZED)/sanitize $(ARGS)

sanitize-calls: $(READY)
	@mkdir -p $(SANITIZED)
	$(SANITIZE) -isystem $$($(BIN)/python -c 'import jax; print(jax.ffi.include_dir())') \
	    tests/campaign/native/sanitize_calls.cc -o $(SANITIZED)/sanitize_calls
	$(SANITIZED)/sanitize_calls

sanitize-search: $(READY)
	@mkdir -p $(SANITIZED)
	$(SANITIZE) tests/campaign/native/sanitize_search.cc -o $(SANITIZED)/sanitize_search
	$(SANITIZED)/sanitize_search

emulate: $(ZIG)/.ready
	PYTHONPATH=.:src $(ZIG)/bin/python tests/campaign/native/emulate.py $(ARGS)

mutants: $(READY) $(MUTANTS)/.ready
	PYTHONPATH=tests $(MUTANTS)/bin/python -m campaign.mutants $(ARGS)

soak: $(READY)
	PYTHONPATH=tests $(BIN)/python -m campaign.soak $(ARGS)

kills: $(READY)
	PYTHONPATH=tests $(BIN)/python -m campaign.faults.kills $(ARGS)

corrupt: $(READY)
	PYTHONPATH=tests JAX_PLATFORMS=cpu $(BIN)/python -m campaign.faults.corruption $(ARGS)

fuzz-input: $(READY)
	INPUTS=$${INPUTS:-5000} $(BIN)/python -m pytest tests/campaign/inputs/test_bad_inputs.py $(ARGS)

accelerator: $(CUDA)/.ready
	PYTHONPATH=tests:benchmarks:$(CUDA)/tpu JAX_PLATFORMS=cpu $(CUDA)/bin/python -m campaign.accelerator.check $(ARGS)

accelerator-measure: $(CUDA)/.ready
	PYTHONPATH=tests:benchmarks $(CUDA)/bin/python -m campaign.accelerator.measure $(ARGS)

# --strict: a package that the service does not know is an error, so that silence never passes for a clean answer.
audit: $(READY)
	@$(BIN)/python -m pip install -qq --target .venv/audit --upgrade pip-audit==2.10.1
	@PYTHONPATH=.venv/audit $(BIN)/python -m pip_audit --strict --disable-pip --no-deps --progress-spinner off \
	    --requirement constraints.txt $(ARGS) || { \
	    echo "make audit: there are vulnerabilities, or the service could not be asked about every package: see above." \
	         "Nothing was audited where it says so. ARGS=\"--vulnerability-service osv\" asks another one." >&2; exit 1; }

clean:
	rm -rf .venv $(PEERS) $(MUTANTS) $(CUDA) .nox dist .pytest_cache .hypothesis .ruff_cache .coverage
	find src tests -name __pycache__ -prune -exec rm -rf {} +

# READY is the last file to be written, BUILDING lies there while pip works: a .venv in which it is still found was
# interrupted, and one whose Python does not start has lost its interpreter. Neither is trusted; both are made anew.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
	    echo "constraints.txt is for Python 3.11, 3.12 or 3.13, and '$(PYTHON)' is `$(PYTHON) --version 2>&1`." \
	         "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@if [ -e $(BUILDING) ] || ! $(BIN)/python -c '' 2>/dev/null; then rm -rf .venv; fi
	@echo "Building .venv with `$(PYTHON) --version` (once; a few minutes, mostly download) ..."
	@mkdir -p .venv && touch $(BUILDING)
	@[ -x $(BIN)/pip ] || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --editable ".[dev,gymnax]"
	@rm -f $(BUILDING) && touch $(READY)
	@echo ".venv is ready"

# Both jaxarc and JaxARC are imported as jaxarc, so the peers live in an environment of their own.
$(PEERS)/.ready: benchmarks/requirements-peers.txt | $(READY)
	@echo "Building $(PEERS) (once; about a minute, mostly download) ..."
	@rm -rf $(PEERS)
	@$(BIN)/python -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install -qq --requirement benchmarks/requirements-peers.txt
	@touch $@

# zig compiles for every system. A library that was compiled with the headers of the oldest jaxlib loads on every newer one.
$(ZIG)/.ready: pyproject.toml | $(READY)
	@echo "Building $(ZIG) (once; about a minute, mostly download) ..."
	@rm -rf $(ZIG)
	@$(BIN)/python -m venv $(ZIG)
	@$(ZIG)/bin/python -m pip install -qq "hatchling>=1.27" ziglang==0.17.1 auditwheel==6.8.2 twine==7.0.0
	@$(ZIG)/bin/python -m pip install -qq --no-deps "jaxlib==$$(sed -n 's/^ *"jaxlib>=\([0-9.]*\).*/\1/p' pyproject.toml)"
	@touch $@

# The tool that makes mutants has a database and a web server in tow, so it stays out of .venv.
$(MUTANTS)/.ready: tests/campaign/requirements-mutants.txt | $(READY)
	@echo "Building $(MUTANTS) (once; about half a minute, mostly download) ..."
	@rm -rf $(MUTANTS)
	@$(BIN)/python -m venv $(MUTANTS)
	@$(MUTANTS)/bin/python -m pip install -qq --requirement tests/campaign/requirements-mutants.txt
	@touch $@

# JAX's plugin for CUDA brings XLA's compiler for GPUs and the libraries that it needs; no driver. libtpu, XLA's
# compiler for TPUs, stands apart, so that a measurement on a GPU does not look for a TPU; "jax[tpu]" asks for this version.
$(CUDA)/.ready: constraints.txt | $(READY)
	@echo "Building $(CUDA) (once; five minutes and 6 GB, mostly download) ..."
	@rm -rf $(CUDA)
	@$(BIN)/python -m venv $(CUDA)
	@$(CUDA)/bin/python -m pip install -qq --constraint constraints.txt --editable ".[train]" "jax[cuda12]"
	@$(CUDA)/bin/python -m pip install -qq --no-deps --target $(CUDA)/tpu "libtpu==0.0.42.*"
	@touch $@
