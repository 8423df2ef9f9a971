# The targets a contributor needs. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup warm fmt lint type test demo bench coverage soak lock clean

bin := .venv/bin
# Two processes with a Spark each took 17 minutes where one took 27, on two cores.
TEST_WORKERS ?= 2
TESTS ?= tests

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

setup: ## Python packages into .venv, and a look for Java; fast when nothing changed
	@scripts/setup

warm: setup ## once per machine: store Spark's classes, which halves the work of each start
	@$(bin)/python -m freshview.runtime.warm_up

fmt: setup ## format the code and fix what can be fixed
	@$(bin)/ruff format --quiet .
	@$(bin)/ruff check --quiet --fix .

lint: setup ## check format and rules
	@$(bin)/ruff format --check --quiet . || { echo "lint: run make fmt"; $(bin)/ruff format --check .; exit 1; }
	@$(bin)/ruff check .

type: setup ## check the types of the package
	@$(bin)/mypy

test: setup ## run the tests (TESTS=path, TEST_WORKERS=n, PYTEST_ADDOPTS=...)
	@$(bin)/python -m pytest -q -n $(TEST_WORKERS) --dist loadscope --no-loadscope-reorder $(TESTS)

demo: setup ## a warehouse, views and changes, with what each refresh cost
	@$(bin)/freshview demo

bench: setup ## every number of the README and the docs, measured on this machine
	@$(bin)/freshview bench basics --out .bench-data/basics.json
	@$(bin)/freshview bench change-tables --out .bench-data/change-tables.json
	@$(bin)/python bench/small_plans.py 25
	@$(bin)/python bench/moves.py .bench-data/moves
	@$(bin)/python bench/recomputes.py .bench-data
	@$(bin)/python bench/lookups.py .bench-data/lookups

coverage: setup ## every TPC query as a view under STRICT, compared after each batch; writes docs/coverage.md
	@$(bin)/python -m tests.tpc.coverage

SEED ?= 1
soak: setup ## hours of kills, storms and random queries, each version of each view checked (SEED=n)
	@$(bin)/python -m soak.run --minutes 2 --kills 0 --seed $(SEED) --actors transfer-1 refresh-1 refresh-2
	@$(bin)/python -m soak.kills --count 200 --seed $(SEED)
	@$(bin)/python -m soak.run --minutes 10 --kills 60 --seed $(SEED)
	@$(bin)/python -m tests.random_queries.soak --seed $(SEED)

lock: setup ## resolve the dependencies again (LOCK_FLAGS=--upgrade for newer ones)
	@scripts/lock $(LOCK_FLAGS)

clean: ## remove what can be made again, except .venv
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	@find . -path ./.venv -prune -o -type d -name __pycache__ -exec rm -rf {} +
