#!/usr/bin/env bash
# The agent's scripts with real frameworks and no GPU: each says that its processor is a GPU, Numba and Triton simulate one. What
# cannot run so is left out: graphs, the count of allocations, cuDNN, CuPy, vLLM.
# usage: [PYTHON=python3.12] tests/frameworks-on-cpu.sh [torch|tensorflow|jax|onnxruntime|numba]...
# Makes a virtual environment for each, one after the other (torch: 7 GB, five minutes), and removes it. Exit code 1: something failed.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
code=0
of() { # NAME SCRIPT WHEELS CHECKS
    "${PYTHON:-python3}" -m venv "$folder/$1"
    # shellcheck disable=SC2086
    "$folder/$1/bin/python" -m pip install --quiet --no-cache-dir --only-binary :all: $3
    # shellcheck disable=SC2086
    TMPDIR=$folder "$folder/$1/bin/python" -B tests/support/on_cpu.py "kernels/agent/src/python/$2" "$1" $4 2>"$folder/errors" |
        sed "s/^/$1 /" | tee "$folder/lines" || true
    for check in $4; do
        grep -q "^$1 $check	passed	" "$folder/lines" || { code=1; tail -20 "$folder/errors"; }
    done
    rm -rf "${folder:?}/$1"
}
for name in "${@:-torch tensorflow jax onnxruntime numba}"; do
    for name in $name; do
        case $name in
            torch)
                # The interpreter of this Triton takes no newer NumPy.
                of torch torch_gpu.py "torch==2.8.0 numpy<2.3" "framework-matmul framework-conv framework-autocast framework-compile \
                    framework-attention framework-training framework-fp8 framework-triton framework-ddp" ;;
            tensorflow) of tensorflow others_gpu.py tensorflow-cpu "framework-matmul framework-conv framework-graph framework-training" ;;
            jax) of jax others_gpu.py jax "framework-matmul framework-conv framework-graph framework-training" ;;
            onnxruntime) of onnxruntime others_gpu.py onnxruntime framework-matmul ;;
            numba) of numba others_gpu.py "numba numba-cuda nvidia-cuda-runtime-cu12" framework-matmul ;;
            *) echo "unknown framework: $name" >&2; exit 2 ;;
        esac
    done
done
exit $code
