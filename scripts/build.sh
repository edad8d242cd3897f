#!/usr/bin/env bash
# build.sh PRESET [TARGET...]  Configures where needed and builds. Presets: release, torch, debug, tsan, coverage.
# Settings from the environment: JOBS (default: the number of cores); HEDDLE_ONLY_CONFIGURE=1 does not build;
# TORCH=1 adds the backend torch (needs libtorch, that of HEDDLE_TORCH_PYTHON where it is set), TORCH=0 takes it out
# again, without TORCH it stays as it was.
set -euo pipefail
cd "$(dirname "$0")/.."

case "$PWD" in
  *,*)
    echo "build: error: the checkout's path, $PWD, has a comma, which the linker takes for the end of it; move it" >&2
    exit 1
    ;;
esac

preset=${1:?usage: build.sh PRESET [TARGET...]}
shift
folder=build-$preset
[ "$preset" = release ] && folder=build

# The thread sanitizer needs its shadow memory where address randomisation may put libraries.
plain=()
if [ "$preset" = tsan ]; then plain=(setarch "$(uname -m)" -R); fi

# Configured for another place (the checkout moved) or with other wheels: start from an empty cache.
fresh=()
cache=$folder/CMakeCache.txt
if [ -f "$cache" ]; then
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
  if [ "$home" != "$(pwd -P)" ] && [ "$home" != "$PWD" ]; then
    fresh=(--fresh)
  elif [ .venv/heddle-stamp -nt "$cache" ]; then
    fresh=(--fresh)
  fi
fi
# The preset torch has the backend torch in any case.
torch=()
if [ -n "${TORCH:-}" ] && [ "$preset" != torch ]; then
  case "$TORCH" in
    1) wanted=ON ;;
    0) wanted=OFF ;;
    *) echo "build: error: TORCH=$TORCH: expected 1 (with the backend torch) or 0 (without)" >&2; exit 1 ;;
  esac
  has=$(sed -n 's/^HEDDLE_TORCH:BOOL=//p' "$cache" 2>/dev/null || true)
  [ "${has:-OFF}" = "$wanted" ] && [ ${#fresh[@]} -eq 0 ] || torch=("-DHEDDLE_TORCH=$wanted")
fi
if [ ! -f "$folder/build.ninja" ] || [ ${#fresh[@]} -gt 0 ] || [ ${#torch[@]} -gt 0 ]; then
  cmake --preset "$preset" "${fresh[@]}" "${torch[@]}"
  touch "$cache"
fi
[ -z "${HEDDLE_ONLY_CONFIGURE:-}" ] || exit 0
"${plain[@]}" cmake --build "$folder" -j "${JOBS:-$(nproc)}" ${1:+--target "$@"}
