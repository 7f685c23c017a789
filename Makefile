.DEFAULT_GOAL := help
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
SOURCES := crds/src scheduler/src router/src operator/src cli/src

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(VENV)/.ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "HexFlow needs Python 3.11 or newer; say which with make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: install
install: $(VENV)/.ready ## Make the virtual environment from the lock

.PHONY: demo
demo: install ## A burst of questions on three emulated GPUs, answered from a real database
	$(BIN)/hexflow demo

.PHONY: test
test: install ## All tests; the last lines say what was left out and which command adds it
	$(BIN)/python -m pytest

.PHONY: vllm
vllm: install ## Install a real vLLM for the CPU, which the contract tests then run against
	tests/vllm/install.sh

.PHONY: browser
browser: install ## Install a browser (half a minute), in which the tests of the HTML reports then open them
	tests/browser/install.sh

.PHONY: cluster
cluster: install ## Build a real Kubernetes once (10 CPU minutes), which the cluster tests then use; TIER=c for real pods
	PYTHON=$(abspath $(BIN))/python tests/cluster/build.sh $(TIER)
	$(if $(filter c,$(TIER)),tests/cluster/packages.sh && PYTHON=$(abspath $(BIN))/python tests/cluster/images/build.sh)

.PHONY: cluster-up
cluster-up: install ## Keep that Kubernetes for development until ctrl-C, with fake GPU nodes
	PYTHONPATH=tests $(BIN)/python tests/cluster/up.py

.PHONY: bench
bench: install ## Measure how well an emulated instance keeps its GPU's time (some minutes, quiet machine)
	$(BIN)/python tests/bench/emulated_time.py

.PHONY: bench-grid
bench-grid: compiled ## Our policy against every baseline, each tuned in every cell (hours; goes on where it was stopped)
	PYTHONPATH=build/compiled $(BIN)/hexflow bench --rates --results build/grid.jsonl --report docs/explanation/benchmark.md

.PHONY: compiled
compiled: install ## Compile kernel and simulation into build/compiled (needs a C compiler); PYTHONPATH=build/compiled uses it
	$(BIN)/python scheduler/compile.py --into build/compiled

.PHONY: bench-paper
bench-paper: install ## The paper's figures beside ours, into docs/explanation/results.md (10 CPU minutes; goes on where it was)
	$(BIN)/python tests/bench/paper.py --results build/paper.jsonl --code $$(git rev-parse --short HEAD) \
		--page docs/explanation/results.md

.PHONY: bench-robust
bench-robust: compiled ## What our policy loses to wrong lengths, wrong speeds, bursts and a tenant in flood (minutes)
	PYTHONPATH=build/compiled $(BIN)/python tests/bench/robust.py

.PHONY: bench-operator
bench-operator: install ## Measure the operator with 500 pools and 200 workflows, and plain kopf handlers beside it (10 minutes)
	PYTHONPATH=tests $(BIN)/python tests/bench/operator_scale.py

.PHONY: bench-speed
bench-speed: compiled ## Measure how fast queries are simulated: calls per CPU second, memory over a million calls
	PYTHONPATH=build/compiled $(BIN)/python tests/bench/speed.py

.PHONY: bench-trace
bench-trace: compiled ## Simulate a trace of 2 GB and measure memory (half an hour, 2 GB in the temporary folder)
	PYTHONPATH=build/compiled $(BIN)/python tests/bench/large_trace.py

.PHONY: check
check: install ## Format, lint, types, import contracts, unit tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES) tests
	$(BIN)/lint-imports
	$(BIN)/yamllint --strict .
	$(BIN)/python -m pytest tests/unit

.PHONY: generate
generate: install ## Write anew what is generated: profiles, CRDs, reference pages
	$(BIN)/python crds/fit_profiles.py
	$(BIN)/python crds/define_resources.py
	$(BIN)/python crds/describe_resources.py
	$(BIN)/python scheduler/describe_policies.py
	$(BIN)/python -m hexflow_cli.reference > docs/reference/cli.md
	$(BIN)/python -m hexflow_router.metrics > docs/reference/metrics.md

.PHONY: golden
golden: install ## Write anew what the operator makes of tests/golden; read the difference before committing it
	$(BIN)/python tests/support/golden.py

.PHONY: format
format: install ## Rewrite the code as `make check` wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: lock
lock: install ## Renew requirements.lock: versions and hashes, no addresses
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --all-extras \
		--no-emit-index-url --no-emit-find-links --no-header --upgrade pyproject.toml -o requirements.lock

.PHONY: clean
clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
