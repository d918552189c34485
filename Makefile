.DEFAULT_GOAL := help
.PHONY: help demo test test-rust test-long test-busy test-python test-report test-torch lint lint-rust lint-others bench fuzz report-page setup setup-demo

FUZZ_SECONDS := 60
LONG_FUZZ_SECONDS := 300
# What is set up before tests and checks. With "demo" it is what a build needs only, and tests that need more are skipped.
SETUP := test
# Rust may be in ~/.cargo/bin, which is not on PATH before the next login.
export PATH := $(or $(shell scripts/setup path),$(PATH))
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
UNSUPPORTED := -p stackweave-core -p stackweave-unwind -p stackweave-capture -p stackweave-recording -p stackweave-profile

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build the Python package, record examples/shop with it, and write a report: target/demo/shop.html
	@echo "Building the package; the first time takes some minutes."
	@package="$$(scripts/build-package)" && scripts/demo "$$package" $(TARGET_DIR)/demo

test: test-rust test-python test-report ## set up, then run every test: doc, unit and integration

test-rust: ## run the tests of the Rust crates, with every Python of the machine
	@cargo test --workspace --doc
	@export STACKWEAVE_TEST_PYTHONS="$$STACKWEAVE_TEST_PYTHONS:$$(scripts/debian-pythons | paste -sd:)"; \
	if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --workspace --test-threads $$(($$(nproc) + 1)); \
	else \
		cargo test --workspace --tests; \
	fi

test-long: export STACKWEAVE_TEST_LONG = 1
test-long: test ## run every test on each Python, what is slow by design at full size, fuzz for LONG_FUZZ_SECONDS (300); models, sanitizers, oldest versions
	@scripts/fuzz $(LONG_FUZZ_SECONDS)
	@scripts/test-models
	@scripts/test-sanitizers 20
	@scripts/check-minimal-versions
	@scripts/check-rust-version

test-busy: ## run the tests, two suites at a time, while other programs keep processors, disk and memory busy
	@scripts/with-load $(MAKE) --no-print-directory --jobs 2 --output-sync=line test

test-python: ## build the Python package and test it on every Python of the machine
	@scripts/test-python

test-report: ## test the report page in Chromium and Firefox, with recordings of the Python package
	@scripts/test-report

test-torch: ## test what is about torch, with TORCH_VERSIONS from PyPI (the newest; 5 GB each)
	@scripts/test-torch

lint: lint-rust lint-others ## format, clippy, rustdoc, words, doc comments, names of types, Python and its types, licences, dependencies, file lengths, the C header, the command's page, the report page, other platforms

lint-rust:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy -p stackweave-symbolize --no-default-features --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
	RUSTFLAGS="--cfg stackweave_unsupported -D warnings" \
		cargo check $(UNSUPPORTED) --target-dir $(TARGET_DIR)/unsupported
	scripts/check-header

lint-others:
	scripts/check-words
	scripts/check-doc-comments
	scripts/check-type-names
	scripts/check-deps
	scripts/check-licences
	scripts/check-file-length
	scripts/check-python
	scripts/check-command-reference
	scripts/check-report

bench: ## measure against the peers, print the ratios, write target/bench.json
	@cargo run --release -p stackweave-bench

fuzz: ## run the fuzz targets for FUZZ_SECONDS (60)
	@scripts/fuzz $(FUZZ_SECONDS)

report-page: ## build the report page that the Rust crate holds, of the sources in report/ (needs npm)
	@scripts/report-tools
	@cd report && node build.mjs

setup: ## install what tests, checks and benches need, Rust too
	@scripts/setup $(SETUP)

setup-demo: ## install what a build needs, Rust too
	@scripts/setup demo

demo: setup-demo
test test-rust test-python test-report test-torch lint lint-rust lint-others bench fuzz report-page: setup
