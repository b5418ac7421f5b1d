# make lab     open the book in JupyterLab (make lab BOOK_LANG=zh-TW: the Chinese edition)
# make test    everything CI checks: ruff, tests, every notebook run again and compared
# make build   build what is out of date: chapters, exercise sheets, solutions   (make build ARGS="03 --lang en")
# make check   is every notebook what its source says? Runs nothing
# make lint    the book's own lints, over chapters and sheets
# make bench   the benchmarks; they write benchmarks/results/
# make sweep   every causal LM class of transformers against kvlib: cache and parameters, and 10,000 damaged configs; about 20 minutes
# make gpu     on a machine with CUDA: GPU tests and measurements, under five minutes
# make freeze  write constraints.txt anew from what is installed
#
# Options: PYTHON=python3.12   the Python that .venv is made with
#          TORCH_INDEX=<url>   a second package index, e.g. PyTorch's for CPU-only wheels
#          LAB_ARGS=…          passed to JupyterLab; TEST_ARGS=… to pytest; ARGS=… to the builder

ifeq ($(OS),Windows_NT)
PYTHON ?= python
BIN := .venv/Scripts
else
PYTHON ?= python3
BIN := .venv/bin
endif

BOOK_LANG ?= en
NOTEBOOKS := $(wildcard $(foreach folder,notebooks exercises solutions,$(folder)/en $(folder)/zh-TW))
NBVAL := --nbval --nbval-current-env --nbval-cell-timeout=120 \
	--nbval-sanitize-with=tests/book/sanitize.cfg
PIP_OPTIONS = --disable-pip-version-check -c constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
PIP_INSTALL = $(BIN)/python -m pip install $(PIP_OPTIONS)

export PYTHONUTF8 = 1

.PHONY: help lab test build check lint bench sweep gpu freeze

help:
	@sed -n '/^# make/,/^$$/s/^# \{0,1\}//p' Makefile

lab: .venv/.book
	@test -d notebooks/$(BOOK_LANG) || { echo "BOOK_LANG is $(BOOK_LANG); the book is in en and zh-TW"; exit 1; }
	@$(BIN)/python tools/reading_copy.py
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/jupyter lab --ServerApp.root_dir=. \
		--LabApp.default_url=/lab/tree/reading/notebooks/$(BOOK_LANG)/00-start.ipynb $(LAB_ARGS)

test: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -n 2 --dist loadfile $(NBVAL) tests $(NOTEBOOKS) $(TEST_ARGS)

build: .venv/.dev
	$(BIN)/python -m tools.build $(ARGS)

check: .venv/.dev
	$(BIN)/python -m tools.build --check $(ARGS)

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/python -m tools.lint

bench: .venv/.dev .venv/.peers
	$(BIN)/python benchmarks/cli_start.py
	$(BIN)/python benchmarks/calculators.py
	$(BIN)/python benchmarks/decode_attention.py
	$(BIN)/python benchmarks/token_loop.py

sweep: .venv/.dev
	$(BIN)/python tests/kvlib/sweep.py
	$(BIN)/python tests/kvlib/weights_sweep.py
	FUZZ_CASES=10000 $(BIN)/python -m pytest -q tests/kvlib/test_fuzz.py

gpu: .venv/.dev
	$(BIN)/python benchmarks/gpu.py

freeze: .venv/.dev
	$(BIN)/python -m tools.freeze

# Installed once per change of these files. A reader needs the extra `book` only.
.venv/.book: EXTRAS = book
.venv/.dev: EXTRAS = book,dev
.venv/.book .venv/.dev: pyproject.toml constraints.txt tools/lab/overrides.json | .venv/pyvenv.cfg
	$(PIP_INSTALL) -e '.[$(EXTRAS)]'
	mkdir -p .venv/share/jupyter/lab/settings
	cp tools/lab/overrides.json .venv/share/jupyter/lab/settings/
	touch .venv/.book $@

# Tools that the benchmarks run beside ours, in an environment of their own.
.venv/.peers: benchmarks/peers.txt constraints.txt | .venv/pyvenv.cfg
	$(BIN)/python -m venv .venv/peers
	$(patsubst .venv/%,.venv/peers/%,$(BIN))/python -m pip install $(PIP_OPTIONS) -r benchmarks/peers.txt
	touch $@

.venv/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
		echo "The book needs Python 3.11, 3.12 or 3.13; $(PYTHON) is: $$($(PYTHON) --version 2>&1)."; \
		echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; \
		echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv,"; \
		echo "or name a Python that can: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
