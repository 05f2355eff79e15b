# `make demo` and `make test` need only Python (3.11 or later) and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test lint bench results paper promise clean

help:  ## List what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev,data,plot]'
	@touch $(READY)

setup: $(READY)  ## Make .venv with everything in it

demo: $(READY)  ## Watch an embedded example stream until it rings
	$(BIN)/tocsin demo

test: $(READY)  ## Run all tests
	$(BIN)/python -m pytest

lint: $(READY)  ## Style, strict types, import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)  ## Speed, side by side with alibi-detect in an environment of its own
	$(BIN)/python -m benchmarks.speed

results: $(READY)  ## The accuracy figures of docs/results/core.md (about half an hour)
	$(BIN)/python -m benchmarks.promise
	$(BIN)/python -m benchmarks.discrete

paper: $(READY)  ## The paper's tables and figures, full size (about an hour), and docs/results/paper.md
	$(BIN)/tocsin reproduce paper --output docs/results/paper
	$(BIN)/python -m benchmarks.page

promise: $(READY)  ## Intervals, memories and rare alarms (about three hours), and docs/results/promise.md
	$(BIN)/tocsin reproduce promise --output docs/results/promise
	$(BIN)/python -m benchmarks.page

clean:  ## Remove what was made
	rm -rf $(VENV) .peer-venv build dist
