# The targets of a day.  `make` alone prints them; each makes .venv from the lock file first when that is needed.

.DEFAULT_GOAL := help
.PHONY: help demo demo-cni demo-topology test check sim faults bench soak peers docs
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# In the order of tests/support/whole_run.py, each file on one worker.  Many tests wait for a server: more workers than cores.
SPREAD := -n 3 --dist loadfile --no-loadscope-reorder
# Python is started a few thousand times in a run: what it compiled is kept, also where the environment says that nothing is.
export PYTHONDONTWRITEBYTECODE :=

help:
	@echo 'make demo          the main job on this machine, from signed commits to Ready objects'
	@echo 'make demo-cni      a cluster moves from kube-proxy to Cilium and back, with pull requests on a real Gitea'
	@echo 'make demo-topology racks come into an inventory in Git, with a real Kueue and Node Feature Discovery'
	@echo 'make test          all tests in everyday size; builds the real components once, beside the fast tests'
	@echo 'make check         format, lint, types, layers, sizes, generated files: what a commit must pass'
	@echo 'make sim           simulations with a sample of faults; make soak has one at every I/O point'
	@echo 'make faults        tests of docs/what-can-go-wrong.md and of the promises; lists the ids without one'
	@echo 'make bench         side-by-side measurements, as a table and as JSON'
	@echo 'make soak          full sizes of what test scales down'
	@echo 'make peers         builds the real components and runs the tests against them'
	@echo 'make docs          builds the documentation'

.venv/.synced: uv.lock pyproject.toml tools/setup.sh
	@tools/setup.sh

demo: .venv/.synced
	@$(BIN)/gitops-ctl demo

demo-cni: .venv/.synced
	@$(BIN)/gitops-ctl demo cni

demo-topology: .venv/.synced
	@$(BIN)/gitops-ctl demo topology

test: .venv/.synced
	@$(BIN)/python -m tools.peers --beside $(PYTEST) $(SPREAD) -m 'not soak'

check: .venv/.synced
	@$(BIN)/ruff format --check --quiet . || { echo 'format: run .venv/bin/ruff format .'; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tools.check_rooms
	@$(BIN)/python -m gitops_ctl.api.generate --check

sim: .venv/.synced
	@$(PYTEST) $(SPREAD) -m 'simulation and not soak'

faults: .venv/.synced
	@$(BIN)/python -m tools.peers --beside $(BIN)/python -m tools.faults

bench: .venv/.synced
	@$(BIN)/python -m tools.peers
	@$(BIN)/python -m tools.bench

soak: .venv/.synced
	@$(BIN)/python -m tools.peers
	@$(PYTEST) -m 'soak or property' --hypothesis-profile random --timeout 7200

peers: .venv/.synced
	@$(BIN)/python -m tools.peers
	@$(PYTEST) -m peers

docs: .venv/.synced
	@$(BIN)/mkdocs build --strict
