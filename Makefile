# Two targets do everything on a fresh machine, virtual environment included: `make quickstart` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
SEED   ?= 0
OUT    ?= runs/quickstart-$(SEED)
READY   = $(VENV)/.ready

.PHONY: install quickstart test check test-docker test-browser test-postgres test-vllm test-slow clean

# The CPU build of torch first: asked for later, another package would pull a build of several gigabytes.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[train,gguf,dev]'
	touch $(READY)

install: $(READY)

quickstart: $(READY)
	$(BIN)/python examples/01_quickstart/run.py --seed $(SEED) --out $(OUT)

# One thread of arithmetic a process: two test processes share the cores better than their threads do.
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Optional lanes; each skips with a reason where its component is absent.
test-slow: $(READY)
	$(BIN)/python -m pytest -m slow --timeout=1800
test-docker: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "docker and not slow"
test-postgres: $(READY)
	$(BIN)/python -m pytest -m "postgres and not slow"
test-browser: $(READY)
	$(BIN)/python -m pytest -m "browser and not slow"
test-vllm: $(READY)
	$(BIN)/python -m pytest -m vllm

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache
