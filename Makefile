# Everything is run by bin/node, whichever Node the machine has; its folder comes first on PATH for the tools that ask
# for `node`. Not so in the set-up, where npm needs the machine's own.
NODE := PATH="$(CURDIR)/bin:$$PATH" bin/node

TEST_ALL := $(NODE) test/support/test-all.ts

.DEFAULT_GOAL := help
# Python's own folder of packages for what is not in npm; .gitignore has it.
SCHEMATHESIS := .cache/schemathesis

.PHONY: help setup check test test-api test-model test-mutants test-repeat test-scale generate docs run bench

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## bring what the project needs: Node, packages, Redis, promtool, CloudEvents SDKs (only what is missing)
	@test/support/node/install.sh
	@test/support/node/install-packages.sh
	@test/support/redis/install.sh
	@test/support/prometheus/install.sh
	@test/support/cloudevents/install.sh

check: setup ## types, lint, format and unit tests: under a minute
	@$(TEST_ALL) types lint format unit

test: ## everything: check, then against Redis, against Kubernetes, and the whole system
	@$(MAKE) --no-print-directory setup || { echo '0 passed, 1 failed'; exit 1; }
	@$(TEST_ALL)

test-model: setup ## random histories against the reference model: STEPS=20000 SEED=1, or REPLAY=… of a failure
	@STEPS='$(STEPS)' SEED='$(SEED)' REPLAY='$(REPLAY)' $(NODE) node_modules/vitest/vitest.mjs run --project redis test/model

test-api: setup $(SCHEMATHESIS)/bin/schemathesis ## /waas against its OpenAPI document: REQUESTS=20000 SEED=1 of our own, then schemathesis (half an hour)
	@REQUESTS='$(or $(REQUESTS),20000)' SEED='$(SEED)' $(NODE) node_modules/vitest/vitest.mjs run --project system test/system/rest/generator.test.ts
	@SEED='$(SEED)' $(NODE) test/api/schemathesis.ts '$(CURDIR)/$(SCHEMATHESIS)/bin/schemathesis'

$(SCHEMATHESIS)/bin/schemathesis: test/api/requirements.txt
	@python3 -m venv --clear $(SCHEMATHESIS)
	@$(SCHEMATHESIS)/bin/pip install --quiet --requirement $<
	@touch $@

test-mutants: setup ## wrong changes of the decisive places, one at a time: the tests have to notice each (an hour)
	@$(NODE) test/mutants/run.ts $(MUTANT)

test-repeat: setup ## one test file many times, to find tests that are not steady: FILE=part/of/its/path N=20
	@$(NODE) test/support/repeat.ts '$(FILE)' '$(or $(N),20)'

test-scale: setup ## one tenant with 100,000 activations and 10,000 subscriptions: SCALE=1 (half an hour), or a share of it
	@SCALE='$(or $(SCALE),1)' $(NODE) node_modules/vitest/vitest.mjs run --project scale

generate: setup ## write the files that are derived from the schemas in src/api
	@$(NODE) tools/generate/generate.ts

docs: setup ## build the documentation site into dist/site
	@tools/site/install.sh
	@$(NODE) tools/site/node_modules/vitepress/bin/vitepress.js build tools/site

run: setup ## a whole Sluice on this machine: Kubernetes API, Redis, all roles; Ctrl-C ends it
	@PATH="$(CURDIR)/bin:$$PATH" exec bin/node test/support/run.ts

bench: setup ## measure throughput and latency on this machine
	@$(NODE) test/bench/main.ts
