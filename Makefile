# All targets use bin/node, which finds a suitable version of Node. Its folder is added to PATH for tools that start
# `node`. The exception is `packages` because npm requires the Node that is installed on the machine.
NODE := PATH="$(CURDIR)/bin:$$PATH" bin/node

TEST_ALL := $(NODE) test/support/suites/test-all.ts

.DEFAULT_GOAL := help
# The Python virtual environment for packages that are not available on npm.
SCHEMATHESIS := .cache/schemathesis

.PHONY: help packages setup check format test test-api test-chaos test-limits test-model test-hostile test-mutants test-repeat test-scale test-node test-outages test-gitops generate docs image run bench install-files

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

packages: ## install missing dependencies of Sluice: Node, packages, Redis
	@test/support/node/install.sh
	@test/support/node/install-packages.sh
	@test/support/redis/install.sh

setup: packages ## install additional test dependencies: Prometheus, CloudEvents SDKs, a container registry, a browser, Lua, faketime
	@test/support/prometheus/install.sh
	@test/support/cloudevents/install.sh
	@test/support/registry/install.sh
	@test/support/browser/install.sh
	@test/gitops/install.sh
	@test/chaos/install.sh

check: setup ## run the type checks, lint, format, and unit tests (less than a minute)
	@$(TEST_ALL) types lint format unit

format: packages ## format all files
	@$(NODE) node_modules/@biomejs/biome/bin/biome check --write

test: ## run all tests: check, followed by the tests with Redis, with Kubernetes, and of the whole system (WITH=node adds a real node)
	@$(MAKE) --no-print-directory setup || { echo '0 passed, 1 failed'; exit 1; }
	@$(if $(filter node,$(WITH)),test/support/node-cluster/install.sh)
	@$(TEST_ALL) all $(WITH)

test-model: setup ## run random histories against the models, every schedule of two leaders, a part against its reference, and the token ledgers with lost replies: STEPS=12000 SEED=1, or REPLAY=… or HISTORY=… of a failure
	@$(NODE) node_modules/vitest/vitest.mjs run --project slow test/model
	@STEPS='$(or $(STEPS),12000)' SEED='$(SEED)' REPLAY='$(REPLAY)' HISTORY='$(HISTORY)' SCHEDULES=all STATES=2000 $(NODE) node_modules/vitest/vitest.mjs run --project redis test/model src/controller/fence src/dataplane/dispatcher/replay-sweep src/facade/explain-agreement
	@HISTORY= SEEDS=100 RUNS=40 HISTORIES=120 SEED='$(SEED)' $(NODE) node_modules/vitest/vitest.mjs run --project redis test/part/random test/part/histories src/part/tokens/ledger-faults

test-api: setup $(SCHEMATHESIS)/bin/schemathesis ## test /waas with forged tokens, and against its OpenAPI document: TOKENS=50000 REQUESTS=100000 SEED=1, then schemathesis (40 minutes)
	@TOKENS='$(or $(TOKENS),50000)' SEED='$(SEED)' $(NODE) node_modules/vitest/vitest.mjs run --project slow src/facade/auth/forged-tokens
	@MALFORMED=50000 $(NODE) node_modules/vitest/vitest.mjs run --project unit src/dataplane/ingress/protocol
	@REQUESTS='$(or $(REQUESTS),100000)' SEED='$(SEED)' $(NODE) node_modules/vitest/vitest.mjs run --project system test/system/rest/generator.test.ts
	@SEED='$(SEED)' $(NODE) test/api/schemathesis.ts '$(CURDIR)/$(SCHEMATHESIS)/bin/schemathesis'

test-chaos: setup ## inject faults into the data plane, and check that events are not lost or reordered: SECONDS=120 FAULT=kill,stop SEED=1
	@$(NODE) test/chaos/main.ts '$(or $(SECONDS),120)' '$(FAULT)' '$(SEED)'

$(SCHEMATHESIS)/bin/schemathesis: test/api/requirements.txt
	@python3 -m venv --clear $(SCHEMATHESIS)
	@$(SCHEMATHESIS)/bin/pip install --quiet --requirement $<
	@touch $@

test-mutants: setup ## create mutants of critical code, and list the mutants that are not detected by the tests (less than an hour): MUTANT=limits FROM=20 JOBS=2
	@$(NODE) test/mutants/run.ts $(MUTANT)

test-repeat: setup ## run a test file repeatedly to find flaky tests: FILE=part/of/its/path N=20
	@$(NODE) test/support/suites/repeat.ts '$(FILE)' '$(or $(N),20)'

test-scale: setup ## test 100,000 activations, 10,000 subscriptions, 500 draining streams, and neighbours: SCALE=1 (35 minutes) or less
	@SCALE='$(or $(SCALE),1)' CHANGES=4000 $(NODE) node_modules/vitest/vitest.mjs run --project scale --project large test/scale/tenant test/scale/turns test/scale/draining test/system/failure/barrier

test-limits: setup ## create objects and store events through several replicas at the same time, and check that no limit is exceeded: ROUNDS=1000 SEED=1 (30 s)
	@ROUNDS='$(or $(ROUNDS),1000)' SEED='$(SEED)' $(NODE) node_modules/vitest/vitest.mjs run --project slow src/facade/objects/limit-guard-replicas
	@ROUNDS='$(or $(ROUNDS),1000)' SEED='$(SEED)' $(NODE) node_modules/vitest/vitest.mjs run --project redis src/part/space/space-rounds

test-hostile: setup ## flood every route, ingress, and their connections as one tenant, and print the latencies of another tenant: FLOOD_MS=3000 FLOOD=listCatalog (12 minutes)
	@FLOOD_MS='$(FLOOD_MS)' FLOOD='$(FLOOD)' $(NODE) node_modules/vitest/vitest.mjs run --project large test/hostile

test-node: packages ## start a real node with kubelet and containerd, and install and remove Sluice (requires root, SHORT=1 only does this once)
	@test/support/node-cluster/install.sh
	@test/support/registry/install.sh
	@test/support/prometheus/install.sh
	@$(NODE) node_modules/vitest/vitest.mjs run --project node $(if $(SHORT),test/node/install.test.ts)

test-outages: setup ## make Redis and then the API server unavailable for Pods on a real node, for two minutes each (requires root, 8 minutes)
	@test/support/node-cluster/install.sh
	@$(NODE) node_modules/vitest/vitest.mjs run --project outages

test-gitops: packages ## run the real Argo CD and the waiter of Helm 4 on Sluice's objects: IDLE_MINUTES=3 (the first run builds them: 8 min)
	@test/gitops/install.sh
	@IDLE_MINUTES='$(IDLE_MINUTES)' $(NODE) node_modules/vitest/vitest.mjs run --project gitops

generate: packages ## write the generated files: CRDs, RBAC, alerts, dashboard, docs
	@$(NODE) tools/generate/generate.ts

docs: packages ## build the documentation site into dist/site
	@tools/site/install.sh
	@$(NODE) tools/site/node_modules/vitepress/bin/vitepress.js build tools/site

image: ## build the container images of Sluice and Redis in dist for amd64 and arm64, without a container engine
	@test/support/node/install.sh
	@test/support/node/install-packages.sh
	@$(NODE) --disable-warning=ExperimentalWarning tools/image/main.ts

install-files: packages ## write dist/install.yaml, and another file with a Redis for evaluation: REGISTRY=registry.example.com
	@$(NODE) tools/generate/install-files.ts '$(REGISTRY)'

run: packages ## run Sluice on this machine with a Kubernetes API and Redis (Ctrl-C stops it)
	@PATH="$(CURDIR)/bin:$$PATH" exec python3 test/support/foreground.py bin/node test/support/run.ts

bench: packages ## measure throughput and latency on this machine
	@$(NODE) test/bench/main.ts
