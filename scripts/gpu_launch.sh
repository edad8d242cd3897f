#!/bin/sh
# Starts the program of the bundle that has this link's name, with the libtorch of PYTHON (default python3).
here=$(dirname "$(readlink -f "$0")")
libraries=$("${PYTHON:-python3}" -c '
import glob, importlib.util, os, sys
found = importlib.util.find_spec("torch")
if found is None:
    sys.exit(f"heddle-gpu: {sys.executable} has no torch; set PYTHON to a Python with torch 2.11")
torch = found.submodule_search_locations[0]
cuda = sorted(glob.glob(os.path.join(torch, "..", "nvidia", "cu[0-9]*", "lib"))) + ["/usr/local/cuda/lib64"]
print(":".join(os.path.realpath(p) for p in [os.path.join(torch, "lib"), *cuda] if os.path.isdir(p)))
') || exit 2
LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/bin/$(basename "$0")" "$@"
