#!/usr/bin/env bash
# What is done on a machine with a GPU. In an hour: one step each call, each well below ten minutes, one JSON each. In fifteen
# minutes: `lent A` and `lent B`, two calls of five minutes, what matters most first; B runs what A left, if DONE or OUT has A's result.
# usage: tests/gpu-day.sh list | STEP... | lent A|B | replay FOLDER MODEL | bundle FILE.tar.gz
# `replay` puts what two calls left in FOLDER through verdict and tag policy, as the fixtures of MODEL (tests/fixtures/gpu/MODEL).
# Needs bash, a Python (PYTHON; one with torch tests torch too) and the built agent (AGENT, or bundled); no network, no Docker.
# Results go to OUT (gpu-day-out); the libraries are those of the Python, or of ROOT. Exit code 1: something was not as expected.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export OUT=${OUT:-$PWD/gpu-day-out}
python=${PYTHON:-python3}
if [ "${1:-}" = bundle ]; then
    # The built agent, this script, the shim of the step `negatives` as source and binary, and kernels: some 2 MB.
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/gpu-day"
    cp "$0" "$here"/gpu-day/* "${AGENT:?set AGENT to the built agent}" "$work/gpu-day/"
    [ "$(basename "$AGENT")" = agent ] || mv "$work/gpu-day/$(basename "$AGENT")" "$work/gpu-day/agent"
    cc -shared -fPIC -O2 -o "$work/gpu-day/shim.so" "$here/gpu-day/shim.c" -ldl
    tar -czf "${2:?FILE.tar.gz}" -C "$work" gpu-day
    exit
fi
steps=$here/gpu-day/steps.py
[ -f "$steps" ] || steps=$here/steps.py
if [ -z "${AGENT:-}" ]; then
    AGENT=$here/agent
fi
export AGENT
if [ "${1:-}" = replay ]; then
    "$python" "$steps" "$@"
    exec cargo test --lib verdict::replay
fi
exec "$python" "$steps" "$@"
