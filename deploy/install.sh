#!/bin/sh
# Installs gpu-advisor and its hashed, pinned dependencies into the virtual environment $1, from the tree this script
# stands in. Build tools stay outside that environment. Used by the image; works on any machine with Python 3.11+.
set -eu
target=$1
tree=$(cd "$(dirname "$0")/.." && pwd)
export UV_PYTHON_DOWNLOADS=never
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT

python3 -m venv "$tools/venv"
"$tools/venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$tree/requirements/build.txt"
(cd "$tree" && "$tools/venv/bin/hatchling" build --target wheel --clean --directory "$tools/dist" >/dev/null)
python3 -m venv --without-pip "$target"
"$tools/venv/bin/uv" pip install --quiet --python "$target/bin/python" --require-hashes -r "$tree/requirements/runtime.txt"
"$tools/venv/bin/uv" pip install --quiet --python "$target/bin/python" --no-deps --offline "$tools"/dist/*.whl
"$target/bin/python" -m compileall -q "$target/lib" || true
"$target/bin/gpu-advisor" version
