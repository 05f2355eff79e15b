# `make demo` and `make test` need only Python (3.11 or later) and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# What PyTorch's, ONNX's and Spark's tests need besides: they skip without it.
EXTRAS := torch==2.13.0 pillow onnx onnxruntime pyspark==4.3.0 protobuf
ALL_READY := $(VENV)/.all-ready

# File by file: many tests of a file share random numbers, which come in the order of the tests.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadfile

.PHONY: help setup demo test test-all browser-and-java test-gpu lint bench bench-versions bench-gpu bench-spark faults-spark results paper promise clean

help:  ## List what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev,data,plot]'
	@touch $(READY)

$(ALL_READY): $(READY)
	$(BIN)/python -m pip install --quiet $(EXTRAS)
	@touch $(ALL_READY)

setup: $(READY)  ## Make .venv with everything in it

demo: $(READY)  ## Watch an embedded example stream until it rings
	$(BIN)/tocsin demo

test: $(READY)  ## Run the tests; those that need PyTorch, ONNX, Spark or a browser skip without them
	$(PYTEST)

test-all: $(ALL_READY) browser-and-java  ## Install those too, and run all tests
	$(PYTEST)

browser-and-java:
	@command -v chromium >/dev/null && command -v java >/dev/null || { \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium default-jre-headless; \
	} >/dev/null || echo "Chromium and Java are not both here, and cannot be installed: what needs them skips."

test-gpu: $(READY)  ## Run the tests of the PyTorch backend on a GPU (with the PyTorch that is installed in .venv)
	TOCSIN_TEST_DEVICE=cuda $(BIN)/python -m pytest tests/test_gpu.py tests/test_bank.py tests/test_torch.py \
		tests/test_views_gpu.py tests/test_compute.py tests/test_oracle.py tests/test_contract.py -k "gpu or torch or bank"

lint: $(READY)  ## Style, strict types, import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench-gpu: $(READY)  ## The figures of docs/results/gpu.md, on a GPU
	$(BIN)/python -m benchmarks.gpu

bench-spark: $(READY)  ## Keyed streams on Spark, beside one process (Java 17; minutes)
	$(BIN)/python -m pip install --quiet --editable '.[spark]'
	$(BIN)/python -m benchmarks.scale --parts

faults-spark: $(READY)  ## What is lost or doubled when parts of a Spark stream die (Java 17; an hour)
	$(BIN)/python -m pip install --quiet --editable '.[spark]'
	$(BIN)/python -m benchmarks.faults

bench: $(READY)  ## Speed, side by side with alibi-detect in an environment of its own
	$(BIN)/python -m benchmarks.speed

BEFORE ?= HEAD
bench-versions: $(READY)  ## Speed and results beside an earlier version's, by turns (make bench-versions BEFORE=REVISION)
	$(BIN)/python -m benchmarks.versions $(BEFORE)

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
