#!/usr/bin/env bash
# Builds one image of each framework for real and prints the rows of the table in docs/src/benchmarks.md: spec, image size, seconds, checks.
# usage: tests/frameworks.sh [SPEC...]      needs a container engine, the network, and 25 GB of disk for each image
# Each image is removed again, by the tags this run made. A spec that fails its checks is told and makes the exit code 1.
set -uo pipefail
cd "$(git rev-parse --show-toplevel)"
program=${ENVFORGE:-target/release/envforge}
[ -x "$program" ] || { echo "$program is missing: cargo build --release, or set ENVFORGE" >&2; exit 2; }
[ $# -gt 0 ] || set -- cupy-cuda:14.2.0-cu12 jax-cuda:0.10.2-cu12 numba-cuda:0.30.4-cu12 onnxruntime-cuda:1.26.0-cu12 \
    tensorflow-cuda:2.20.0 vllm-cuda:0.32.0
failed=0
echo "| spec | image | seconds | checks |"
echo "|---|---|---|---|"
for spec in "$@"; do
    free=$(df --output=avail -BG "$(docker info --format '{{.DockerRootDir}}')" | tail -1 | tr -dc 0-9)
    if [ "$free" -lt 25 ]; then
        echo "| $spec | not built: $free GB are free | | |"
        failed=1
        continue
    fi
    log=$(mktemp)
    began=$SECONDS
    if "$program" build "$spec" --no-progress >"$log.out" 2>"$log"; then
        name=$("$program" plan "$spec" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["name"])')
        size=$(docker image inspect "$name-unverified" "$name" --format '{{.Size}}' 2>/dev/null | head -1)
        passed=$(sed -n 's/^passed: \([0-9]*\) checks.*/\1/p' "$log")
        skipped=$(sed -n 's/^passed: .*, \([0-9]*\) skipped.*/\1/p' "$log")
        echo "| $spec | $((size / 1000000)) MB | $((SECONDS - began)) | $passed passed, ${skipped:-0} skipped |"
        docker image ls --filter dangling=false --filter "label=io.envforge.name=$name" --format '{{.Repository}}:{{.Tag}}' | xargs -r docker rmi >/dev/null
    else
        echo "| $spec | failed | $((SECONDS - began)) | $(grep '^failed ' "$log" | tr '|\n' '/ ' | cut -c1-300) |"
        failed=1
    fi
    rm -f "$log" "$log.out"
done
exit "$failed"
