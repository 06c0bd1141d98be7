# What a person types. Everything here works on a machine with Rust, a C compiler, and pip or curl; no root.

SHELL := /bin/sh
CARGO ?= cargo

.PHONY: help demo build build-bench nats chromium test neighbours quick coverage check bench figures simulate fleets fuzz chaos chaos-cluster clean-state

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

nats: ## Find a usable nats-server, or install one into .muster/bin
	@sh deploy/install-nats.sh

chromium: ## Find a Chromium for the tests of the dashboard, or install it with apt-get
	@sh deploy/install-chromium.sh

build: ## Build the muster binary with all capabilities: target/release/muster
	$(CARGO) build --release --locked --bin muster

build-bench: ## The same with `muster bench`, which measures a fleet and torments it
	$(CARGO) build --release --locked --bin muster --features bench

demo: nats ## Build a small muster and ask a fleet about Muster's own documents; leaves muster-report.md
	$(CARGO) build --profile demo --locked --bin muster --no-default-features
	@sh deploy/demo.sh target/demo/muster

test: nats ## Everything the tests need, then all tests
	@server=$$(sh deploy/install-nats.sh) && export MUSTER_NATS_SERVER="$$server" && \
	browser=$$(sh deploy/install-chromium.sh || true) && export MUSTER_CHROMIUM="$$browser" && \
	if $(CARGO) nextest --version >/dev/null 2>&1; then \
		echo "$(CARGO) nextest run --workspace"; \
		$(CARGO) nextest run --profile $(or $(PROFILE),all) --test-threads $$((4 * $$(getconf _NPROCESSORS_ONLN))) \
			--locked --workspace --features bench; \
	else \
		echo "$(CARGO) test --workspace"; $(CARGO) test --locked --workspace --features bench; \
	fi

# Needs root: other users, other network namespaces. Whatever cannot be made here fails, where it is passed over elsewhere.
neighbours: nats ## Attacks from other users and network namespaces, cables pulled out for 40 s; as root, in some minutes
	@server=$$(sh deploy/install-nats.sh) && export MUSTER_NATS_SERVER="$$server" MUSTER_NO_SKIP=1 && \
	$(CARGO) nextest run --locked --workspace --features bench --run-ignored all \
		-E 'test(neighbours::) + test(machines::) + test(captured::) + binary(trust) + binary(deploy)'

quick: ## The fast loop: tests without processes or a server, of all crates
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		$(CARGO) nextest run --locked --workspace --features bench --lib --bins; \
	else \
		$(CARGO) test --locked --workspace --features bench --lib --bins; \
	fi

# All tests run again on instrumented binaries in a separate build directory. A failed test does not stop the report.
coverage: nats ## Line coverage of each crate under all tests
	@server=$$(sh deploy/install-nats.sh) && export MUSTER_NATS_SERVER="$$server" && \
	browser=$$(sh deploy/install-chromium.sh || true) && export MUSTER_CHROMIUM="$$browser" && \
	mkdir -p target/coverage && rm -f target/coverage/lcov.info && \
	{ .ci/cargo-tarpaulin --engine llvm --follow-exec --skip-clean --no-fail-fast --timeout 1200 \
		--locked --workspace --features bench --target-dir target/coverage/build \
		--out Lcov --output-dir target/coverage; status=$$?; } && \
	.ci/coverage-table target/coverage/lcov.info && exit $$status

check: ## Formatting, lints, licences and sources of dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets --features bench -- -D warnings
	.ci/cargo-deny check licenses bans sources

bench: nats ## The figures, each printed beside its bare counterpart
	@server=$$(sh deploy/install-nats.sh) && export MUSTER_NATS_SERVER="$$server" && \
	$(CARGO) bench --locked --bench figures

figures: nats ## A series of figures in ten minutes, beside the last kept one; KEEP=1 keeps it in benches/history.jsonl
	@server=$$(sh deploy/install-nats.sh) && export MUSTER_NATS_SERVER="$$server" && \
	$(CARGO) bench --locked --bench figures -- series $(if $(KEEP),--keep)

simulate: ## 100,000 simulated histories under faults; SEEDS=n for another number
	$(CARGO) run --release --locked -p muster-simulation -- --seeds $${SEEDS:-100000}

fleets: nats ## 200 random fleets: roles missing, agents broken, slow or lying, kills; FLEETS=n, FROM=seed
	@server=$$(sh deploy/install-nats.sh) && export MUSTER_NATS_SERVER="$$server" && \
	FLEETS=$${FLEETS:-200} FLEETS_FROM=$${FROM:-0} $(CARGO) test --locked --features bench --test end_to_end \
		random_fleets -- --nocapture

# `SECONDS` counts by itself in some shells: make reads it.
fuzz: ## Fuzz every door, side by side; SECONDS=n for each target (10), SEED=n for the same inputs again
	@seed=$${SEED:-$$(date +%s)}; seconds=$(or $(SECONDS),10); export CARGO_PROFILE_DEV_OPT_LEVEL=1; \
	$(CARGO) run --locked --bin muster-fuzz --workspace --features bench -- --seconds $$seconds --seed $$seed; first=$$?; \
	MUSTER_FUZZ_SECONDS=$$seconds MUSTER_FUZZ_SEED=$$seed \
		$(CARGO) test --quiet --locked --workspace --features bench --bin muster doors_tests::the_doors -- --nocapture && exit $$first

chaos: nats build-bench ## 1,000 short runs while processes are killed and frozen at random; RUNS=n for another number
	@server=$$(sh deploy/install-nats.sh) && export MUSTER_NATS_SERVER="$$server" && \
	target/release/muster bench chaos --runs $${RUNS:-1000}

chaos-cluster: nats build-bench ## 50 short runs on three servers, of which one at a time is killed too; RUNS=n for another number
	@server=$$(sh deploy/install-nats.sh) && export MUSTER_NATS_SERVER="$$server" && \
	target/release/muster bench chaos --servers 3 --runs $${RUNS:-50}

clean-state: ## Forget all local runs: stops a local fleet and removes its data from .muster, keeping nats-server
	@for muster in target/release/muster target/demo/muster target/debug/muster; do \
		if [ -x "$$muster" ] && "$$muster" down >/dev/null 2>&1; then break; fi; \
	done
	rm -rf .muster/nats .muster/log .muster/cache .muster/fleet.json .muster/fleet.json.new .muster/fleet.lock \
		.muster/port .muster/users .muster/users.lock
