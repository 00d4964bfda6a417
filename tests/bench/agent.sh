#!/usr/bin/env bash
# How large the agent is, and how much of level quick on the fake libraries is its own: the rest is the fakes, which compute what
# a GPU would.
# usage: tests/bench/agent.sh AGENT     AGENT: target/*/build/envforge-*/out/agent. Needs cc and perf.
set -euo pipefail
agent=$(realpath "${1:?usage: tests/bench/agent.sh AGENT}")
cd "$(dirname "$0")/../support"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libraries=$work/root/usr/local/cuda/lib64
mkdir -p "$work/driver" "$work/nvml" "$libraries"
fake() { # SOURCE OUT MORE...
    cc -shared -fPIC -O2 -ffp-contract=off -o "$2" "$1" "${@:3}" -lm -ldl
}
fake fake_libcuda.c "$work/driver/libcuda.so.1" fake_kernels.cpp -Wno-unknown-pragmas -lstdc++
fake fake_libnvml.c "$work/nvml/libnvidia-ml.so.1"
fake fake_libnvrtc.c "$libraries/libnvrtc.so.12"
fake fake_libcublas.c "$libraries/libcublas.so.12"
fake fake_libcublas.c "$libraries/libcublasLt.so.12"
fake fake_libcudnn.c "$libraries/libcudnn.so.9"
fake fake_libnccl.c "$libraries/libnccl.so.2"
quick() { # WRAPPER...
    env -i PATH=/usr/bin:/bin LD_LIBRARY_PATH="$work/driver:$work/nvml" FAKE_COMPUTE=1 FAKE_NVML=1 \
        "$@" "$agent" quick --stage gpu --json --root "$work/root"
}
echo "agent: $(stat -c %s "$agent") bytes (bound 1500000)"
for round in 1 2 3 4 5; do
    seconds=$(quick | sed -n 's/^{"done":true,"seconds":\(.*\)}$/\1/p')
    # cpu-clock counts in units of time, whatever the processor's clock.
    quick perf record -q -e cpu-clock -F 1000 -o "$work/perf" >/dev/null 2>&1 || true
    own=$(perf report -i "$work/perf" --sort dso --stdio -F sample,dso 2>/dev/null | awk '$2 == "agent" { print $1 / 1000 }')
    all=$(perf report -i "$work/perf" --sort dso --stdio -F sample,dso 2>/dev/null | awk '$1 ~ /^[0-9]+$/ { sum += $1 } END { print sum / 1000 }')
    echo "quick, run $round: $seconds s in all; ${own:-?} s of $all s of the processor are the agent's (bound 3 s)"
done
