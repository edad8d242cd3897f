#!/usr/bin/env bash
# test_torch.sh  Builds what the backend torch adds, in build-torch, and runs the tests that it changes. Everything else
# is the same code as without it, which `make test` has tested; ccache has those objects.
# Ends with 0 where libtorch is not there and cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! scripts/setup.sh --torch; then
  echo "test-torch: skipped: the backend torch is not tested without libtorch (see above)"
  exit 0
fi
scripts/build.sh torch torch_tests cli_tests
scripts/test.sh torch -R '^torch\.|^cli\.(RanksCli\.Accelerators|AcceleratorsCli|GpuRun)'
