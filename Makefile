# Two commands do everything on a fresh machine with Python 3.11 or newer:
#   make demo    install MLCD, run the example job on the simulated cloud, write its report
#   make test    install the tools, then lint, type-check and test

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test clean

demo: .venv/installed
	MLCD_HOME=.mlcd $(BIN)/mlcd train examples/resnet50.yaml -y
	MLCD_HOME=.mlcd $(BIN)/mlcd report last --to report.html

test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/installed-dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@ .venv/installed

clean:
	rm -rf .venv .mlcd report.html
