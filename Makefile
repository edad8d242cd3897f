# Everything a user or CI does with the checkout. `make help` lists it.
.DEFAULT_GOAL := help
.PHONY: help setup wheelhouse build install deb wheel docs demo test test-torch test-deploy gpu-bundle check debug tsan sanitize fuzz format format-check tidy coverage bench clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

setup: ## install what is missing: system packages (as root) and wheels into .venv
	@scripts/setup.sh

wheelhouse: setup ## copy the wheels into wheelhouse/, from which other checkouts are set up without a network
	@scripts/setup.sh --wheelhouse

build: setup ## configure and build build/heddle; TORCH=1 adds the backend torch
	@scripts/build.sh release

install: setup ## build, then install below PREFIX (default /usr/local)
	@scripts/build.sh release heddle
	@cmake --install build --prefix "$(or $(PREFIX),/usr/local)"

wheel: setup ## build the Python package into dist/, for pip
	@scripts/wheel.sh

deb: setup ## build, then a Debian package in build/
	@scripts/build.sh release heddle
	@cd build && cpack

docs: ## build the documentation's site into build-docs/
	@scripts/setup.sh --docs
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict -q
	@echo "docs: open build-docs/index.html"

demo: ## what this needs of the set-up, then build, plan, run and explain two real models
	@scripts/setup.sh --demo
	@scripts/build.sh release heddle
	@scripts/demo.sh

test: build ## build, then all tests; TORCH=1 with those of the backend torch
	@scripts/build.sh debug fuzz_targets
	@scripts/test.sh release

test-torch: setup ## the tests of the backend torch alone, in a build of their own; skipped where there is no libtorch
	@scripts/test_torch.sh

test-deploy: build ## the tests of heddle deploy on a real Slurm, Ray and NATS, which `make test` skips where they are missing
	@scripts/setup.sh --deploy
	@HEDDLE_ONLY_CONFIGURE=1 scripts/build.sh release
	@scripts/test.sh release -R '^deploy\.'

gpu-bundle: setup ## a packed folder that tests and measures Heddle on a bare machine with CUDA, in build-gpu/
	@scripts/gpu_bundle.sh

debug: setup ## all tests under the address and undefined-behaviour sanitizers
	@scripts/build.sh debug
	@scripts/test.sh debug

tsan: setup ## all tests under the thread sanitizer
	@scripts/build.sh tsan
	@scripts/test.sh tsan

# Readers, costs, plans, solvers and fleets: what needs no inference engine.
ENGINELESS = base cluster cost plan solve fleet

sanitize: setup ## the part of `make debug` that fits into CI: tests that need no inference engine
	@scripts/build.sh debug $(ENGINELESS:%=%_tests)
	@scripts/test.sh debug -R "^($$(echo $(ENGINELESS) | tr ' ' '|'))\."

fuzz: setup ## the fuzz targets, each for HEDDLE_FUZZ_SECONDS (default 10)
	@scripts/build.sh debug fuzz_targets
	@HEDDLE_ONLY_CONFIGURE=1 scripts/build.sh release
	@scripts/test.sh release -R '^fuzz\.'

format: ## format all C++ sources in place
	@scripts/format.sh

format-check: ## fail when a source is not formatted
	@scripts/format.sh --check

tidy: setup ## clang-tidy over src
	@scripts/setup.sh --tidy
	@scripts/tidy.sh

check: format-check tidy test debug tsan ## everything: format, tests, both sanitizer builds, clang-tidy

coverage: setup ## line and branch coverage of src by all tests
	@scripts/setup.sh --coverage
	@scripts/coverage.sh

bench: setup ## build, then the core benchmarks beside their baselines
	@scripts/build.sh release heddle
	@build/heddle bench core

clean: ## remove the build folders and the demo's output; keeps the Python environments
	@rm -rf build build-debug build-tsan build-tidy build-coverage build-torch build-gpu build-docs build-wheel-* demo-out dist
