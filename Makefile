# Every target installs what it needs into .venv and is quiet when nothing is to do. Needs Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Test processes; two suit a small machine, since integration tests start servers of their own.
JOBS ?= 2
# The JavaScript SDK. Node.js comes from PATH or from the registry.
JS := sdk/js
NPM := cd $(JS) && ../../$(BIN)/python ../../tools/node.py npm
.DEFAULT_GOAL := help
.PHONY: help venv demo test test-plain test-faults test-slow test-browser test-js again conformance check format bench soak
.PHONY: docs e2e image sbom lock clean

help: ## Show this list.
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

venv: $(VENV)/.run ## Make .venv with the command `relayrouter`.
	@:

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "RelayRouter needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements/run.txt pyproject.toml sdk/python/pyproject.toml | $(BIN)/python
	@echo "installing into $(VENV)"
	@$(PIP) install --require-hashes -r requirements/run.txt
	@$(PIP) install --no-deps --no-build-isolation --editable . --editable sdk/python
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	@echo "installing test tools into $(VENV)"
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

demo: $(VENV)/.run ## Run three gateways and a web page to break them on. Ctrl-C ends it.
	@$(BIN)/relayrouter demo

# Fault tests stop and kill processes, and mostly wait. What judges latency, and a browser, run alone. Each part is a target
# of its own, so that `make -k test` goes on to the next one, and remembers by itself that it passed, or what failed in it.
SLOW := tests/integration/test_faults_slow.py
READY := $(VENV)/.dev $(JS)/dist/.built
PARTS := test-plain test-faults test-slow test-browser test-js
PASSED := .pytest_cache/$$PART.passed
AT_ONCE := -n $(JOBS) --dist loadfile
BEGIN = $(if $(AGAIN),test -e $(PASSED) ||,mkdir -p .pytest_cache; rm -f $(PASSED);)
part = @PART=$(1); $(BEGIN) { $(BIN)/python -m pytest -q $(if $(AGAIN),--last-failed) -o cache_dir=.pytest_cache/$$PART $(2) && touch $(PASSED); }
test: $(PARTS) ## Run the tests: about twenty minutes on two cores.

test-plain: $(READY)
	$(call part,plain,tests/unit tests/chart tests/dashboards tests/image sdk/python/tests tests/integration -m "not soak and not fault" $(AT_ONCE))

test-faults: $(READY)
	$(call part,faults,tests/integration -m "fault and not soak" $(AT_ONCE) --ignore $(SLOW))

test-slow: $(READY)
	$(call part,slow,$(SLOW) -m "not soak")

test-browser: $(READY)
	$(call part,browser,tests/browser)

test-js: $(READY)
	@$(NPM) run --silent test
	@$(NPM) run --silent size
	@$(NPM) run --silent pack:test
	@$(NPM) run --silent check:demo

again: # What did not pass, once more: what failed in it, or all where nothing was reported.
	@$(MAKE) --no-print-directory -k $(PARTS) AGAIN=1

# What its users install, and what is tested.
$(JS)/node_modules/.installed: $(JS)/package-lock.json | $(VENV)/.dev
	@echo "installing the JavaScript SDK's tools"
	@$(NPM) ci --no-audit --no-fund --silent
	@touch $@

$(JS)/dist/.built: $(shell find $(JS)/src $(JS)/scripts -type f 2>/dev/null) $(JS)/package.json $(JS)/node_modules/.installed
	@$(NPM) run --silent build
	@touch $@

conformance: $(VENV)/.dev $(JS)/dist/.built ## Try both SDKs on every scenario, then on real gateways with faults.
	@$(BIN)/python -m sdk.conformance --real

soak: $(VENV)/.dev ## Run the tests that take longer.
	@$(BIN)/python -m pytest tests -m soak -q

check: $(VENV)/.dev $(JS)/dist/.built ## Check format, lint, types, layers and generated docs.
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python tools/gen_docs.py --check
	@$(BIN)/python -m tools.dashboards --check
	@$(NPM) run --silent check
	@$(NPM) run --silent check:demo

format: $(VENV)/.dev ## Format and fix what can be fixed.
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

docs: $(VENV)/.dev $(JS)/node_modules/.installed ## Write what is generated: tables in docs/, the demo's copy of the SDK.
	@$(BIN)/python tools/gen_docs.py
	@$(BIN)/python -m tools.dashboards
	@$(NPM) run --silent build:demo

bench: $(VENV)/.dev ## Measure; prints a table and writes build/bench.json.
	@mkdir -p build
	@$(BIN)/python -m loadtest.bench

# Error 3 (make's own status is 2 for whatever fails): this machine cannot, and the line before says why.
e2e: $(VENV)/.dev ## Prove it on a real Kubernetes; writes build/e2e.json and docs/evidence.md. Needs root.
	@$(BIN)/python -m loadtest.e2e

image: $(VENV)/.run ## Build the container image, with docker or buildah.
	@$(BIN)/python -m tools.image build

sbom: $(VENV)/.run ## List the image's parts in build/sbom.json (CycloneDX).
	@$(BIN)/python -m tools.image sbom

lock: ## Pin the newest allowed versions (needs uv).
	@tools/lock.sh

clean: ## Remove .venv and everything built.
	@rm -rf $(VENV) build dist $(JS)/dist $(JS)/node_modules .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
