# Each target makes .venv when it is missing; with it in place nothing is installed again.
PYTHON ?= python3
EXTRAS ?=
VENV := .venv
BIN := $(VENV)/bin
comma := ,
STAMP := $(VENV)/installed$(if $(EXTRAS),-$(subst $(comma),-,$(EXTRAS)))
WHOLE := $(VENV)/installed-whole
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e
JOBS ?= 2
# Where this is set, each of the many processes of a run or a test compiles all modules anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run serve install test check bench fingerprints docs-pictures service-picture theory library clean

run: $(STAMP)
	$(BIN)/tradewind tour -o out

# The demo of examples/serve.yaml: a service on this machine, http://127.0.0.1:8642. Ctrl-C ends it; it goes on where it was.
serve: $(VENV)/installed-dev-serve
	$(BIN)/tradewind serve examples/serve.yaml --data out/serve --open

$(VENV)/installed-dev-serve: pyproject.toml constraints.txt | $(VENV)/made
	$(PIP) '.[dev,serve]'
	touch $@

install: $(STAMP)
	$(BIN)/python -m tradewind.cli.warm

$(VENV)/made:
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "python3-venv is missing: apt-get install python3-venv, or PYTHON=/path/to/python3.11 make"; exit 1; }
	touch $@

$(STAMP): pyproject.toml constraints.txt | $(VENV)/made
	$(PIP) '.$(if $(EXTRAS),[$(EXTRAS)])'
	touch $@

# Tests and checks need everything: real training, a driver for PostgreSQL, Ray, the service, Kubernetes, pandas, and the programs that Debian has and pip has not.
$(WHOLE): pyproject.toml constraints.txt tools/system-packages | $(VENV)/made
	tools/system-packages
	$(PIP) '.[dev,train,postgres,ray,serve,kubernetes,frames]'
	$(BIN)/python -m tradewind.cli.warm
	touch $@

# Four workers for two cores: tests on clusters mostly wait. FULL=1 tries more random cases, as many as a night allows.
TESTERS ?= 4
test: $(WHOLE)
	$(if $(FULL),TRADEWIND_TESTS=full )$(BIN)/python -m pytest -n $(TESTERS) --dist worksteal -rs

check: $(WHOLE)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(PIP) '.[dev,bench]'
	$(BIN)/python -m benchmarks $(ONLY)

# Shows that a change of the code changed no result; WRITE=1 records new hashes.
fingerprints: $(STAMP)
	$(BIN)/python tools/fingerprints.py $(if $(WRITE),--write)

docs-pictures: $(STAMP)
	$(BIN)/tradewind tour -o out --pictures docs/pictures
	$(BIN)/tradewind gallery -o docs --work out/reproduce --jobs $(JOBS)

# The page of the demo of examples/serve-mixed.yaml in a browser (Chromium).
service-picture: $(VENV)/installed-dev-serve
	$(BIN)/python tools/service_picture.py

# The constants of the papers' theorems beside measured ratios; FULL=1 takes the full studies' instances.
theory: $(STAMP)
	$(BIN)/python -m tradewind.lab.theory $(if $(FULL),--full)

# Longer searches for better values: LEVEL=1, 2 or 3, ONLY=part of a name. It can be stopped and goes on later.
LEVEL ?= 2
library: $(STAMP)
	$(BIN)/tradewind library improve --level $(LEVEL) --only "$(ONLY)" --jobs $(JOBS)
	$(BIN)/tradewind library page -o docs

clean:
	rm -rf $(VENV) out build src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
