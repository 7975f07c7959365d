PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 2

.PHONY: install demo test test-fast hostile bench lint docs clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: install
	$(BIN)/python examples/demo.py

test: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal

# the fast ring: everything but trainings and other slow tests
test-fast: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not slow and not gpu"

# every case of the corpus; `make hostile ONLY=pyg` one kind, `make hostile CASE=pyg/x-complex` one case
hostile: install
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m hostile $(if $(ONLY),--only $(ONLY)) $(if $(CASE),--case '$(CASE)')

bench: install .bench-chemprop/.installed
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.molecules
	$(BIN)/python -m benchmarks.tables
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.predict_molecules

# chemprop is a peer to measure against and nothing else, so it has an environment of its own
.bench-chemprop/.installed:
	test -x .bench-chemprop/bin/python || $(PYTHON) -m venv .bench-chemprop
	.bench-chemprop/bin/pip install --quiet --disable-pip-version-check torch==2.13.0 chemprop==2.3.1
	touch $@

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# the documentation, to docs/_build/index.html; warnings are errors
docs: install
	$(BIN)/python -m sphinx -W --keep-going -q -E docs docs/_build

clean:
	rm -rf $(VENV) .bench-chemprop runs docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
