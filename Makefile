.DEFAULT_GOAL := help
.PHONY: help setup up down test check test-compose bench docs env lock
SHELL := /bin/sh
export PYTHON

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | awk -F '|' '{printf "  %-18s %s\n", $$1, $$2}'

setup: ## make .venv with everything that is needed to run
	@deploy/setup.sh

up: setup ## install, start everything here, train; the page is on http://localhost:8090
	@exec .venv/bin/ratchet up

down: ## stop what `make up` started
	@if [ -x .venv/bin/ratchet ]; then exec .venv/bin/ratchet down; else echo "nothing is installed, so nothing runs"; fi

test: ## install what tests need and run them
	@deploy/setup.sh --dev
	@deploy/browser.sh
	@deploy/prometheus.sh
	@OMP_NUM_THREADS=1 .venv/bin/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

check: ## style, types and import rules
	@deploy/setup.sh --dev
	@failed=; for tool in "ruff check --output-format concise" "ruff format --check" mypy lint-imports; do \
	    echo "== $$tool"; .venv/bin/$$tool || failed="$$failed, $${tool%% -*}"; \
	done; [ -z "$$failed" ] || { echo "check failed: $${failed#, }" >&2; exit 1; }

test-compose: ## build and run the Compose stack, and see an adapter come out of it
	@deploy/test-compose.sh

bench: ## run the whole loop from nothing and print its figures
	@deploy/setup.sh
	.venv/bin/python bench/loop.py --quick

docs: ## build the documentation into site/; a link that leads nowhere fails
	@deploy/setup.sh --dev
	@rm -rf site
	@.venv/bin/python -m zensical build --clean --strict
	@echo "look at it, with its search: .venv/bin/python -m http.server --bind 127.0.0.1 --directory site"

env: ## write .env with fresh passwords for Compose
	@deploy/env.sh

lock: ## resolve requirements/*.in again into the hashed lock files (needs uv)
	python3 requirements/lock.py
