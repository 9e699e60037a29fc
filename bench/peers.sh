#!/bin/sh
# Installs the software that the benchmark compares with (KeOps, FastKron, NumPy with its OpenBLAS) from PyPI into a private virtual
# environment, $ZLG_BENCH_PEERS or ~/.cache/zellige-peers. Optional: without it the table has no peers. KeOps needs a C++
# compiler and compiles each formula for some seconds the first time; the results are kept beside the environment.
set -eu
home=${ZLG_BENCH_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/zellige-peers}
python=${PYTHON:-python3}
mkdir -p "$home"
[ -x "$home/venv/bin/python" ] || "$python" -m venv "$home/venv" || {
  echo "peers.sh: $python cannot make a virtual environment. On Debian: apt-get install python3-venv python3-dev g++" >&2
  exit 1
}
"$home/venv/bin/python" -m pip install --quiet --upgrade pykeops==2.3 numpy setuptools
# Its requirements (PyTorch and a gigabyte of CUDA) serve another part of it than the one that is called.
"$home/venv/bin/python" -m pip install --quiet --upgrade --no-deps pyfastkron==1.1
"$home/venv/bin/python" -c 'from importlib.metadata import version; print("peers ready:", *(f"{name} {version(name)}" for name in ("pykeops", "pyfastkron", "numpy")))'
