# Everything is run by bin/node, whichever Node the machine has; its folder comes first on PATH for the tools that ask
# for `node`. Not so in the set-up, where npm needs the machine's own.
NODE := PATH="$(CURDIR)/bin:$$PATH" bin/node

TEST_ALL := $(NODE) test/support/test-all.ts

.DEFAULT_GOAL := help
.PHONY: help setup check test generate run bench

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## bring what the project needs: Node, packages, Redis (only what is missing)
	@test/support/node/install.sh
	@test/support/node/install-packages.sh
	@test/support/redis/install.sh

check: setup ## types, lint, format and unit tests: under a minute
	@$(TEST_ALL) types lint format unit

test: ## everything: check, then against Redis, against Kubernetes, and the whole system
	@$(MAKE) --no-print-directory setup || { echo '0 passed, 1 failed'; exit 1; }
	@$(TEST_ALL)

generate: setup ## write the files that are derived from the schemas in src/api
	@$(NODE) config/generate.ts

run: setup ## a whole Sluice on this machine: Kubernetes API, Redis, all roles; Ctrl-C ends it
	@PATH="$(CURDIR)/bin:$$PATH" exec bin/node test/support/run.ts

bench: setup ## measure throughput and latency on this machine
	@$(NODE) test/bench/main.ts
