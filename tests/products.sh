#!/usr/bin/env bash
# Two rows of each product that has a script in kernels/agent/src/python/products/ (the oldest and the newest of the fixture of locked rows) are
# built and checked, one image at a time, and removed. Needs an engine and about 15 GB of disk; without a GPU the level is static.
# usage: [ENVFORGE=target/debug/envforge] tests/products.sh [warp|cudf|cuml|faiss|sglang|tensorrt]...
# Exit code 1: an image was not built, or a check failed.
set -euo pipefail
cd "$(dirname "$0")/.."
envforge=${ENVFORGE:-target/debug/envforge}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
products=("$@")
if [ $# -eq 0 ]; then
    for script in kernels/agent/src/python/products/*.py; do products+=("$(basename "$script" .py)"); done
fi
code=0
for product in "${products[@]}"; do
    specs=$(sed -n "s/^row \($product-cuda:[^ ]*\) .*/\1/p" tests/fixtures/wheels/rows.txt)
    [ -n "$specs" ] || { echo "no row of $product in tests/fixtures/wheels/rows.txt" >&2; exit 2; }
    for spec in $specs; do
        began=$(date +%s)
        if "$envforge" build "$spec" --target any --lockfile "$folder/$product.lock" >"$folder/tags" 2>"$folder/log"; then
            echo "ok $spec $(($(date +%s) - began)) s"
        else
            code=1
            echo "FAILED $spec $(($(date +%s) - began)) s"
            tail -40 "$folder/log"
        fi
        # By the tags that the build printed; an image that failed its checks has none, and the hint names it.
        sed -n 's/.*docker rmi \(sha256:[0-9a-f]*\).*/\1/p' "$folder/log" | cat "$folder/tags" - |
            xargs -r "${DOCKER:-docker}" rmi >/dev/null
        rm -f "$folder/$product.lock"
    done
done
exit $code
