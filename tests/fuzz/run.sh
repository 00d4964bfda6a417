#!/usr/bin/env bash
# Fuzzes every target with coverage for SECONDS each (600 if not said), on stable Rust; what is found joins the corpus.
#
#   tests/fuzz/run.sh [SECONDS] [TARGET...]
#
# Needs cargo-bolero: cargo install cargo-bolero --no-default-features. CI does not fuzz: `cargo test` replays the corpus.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(ls tests/fuzz/__fuzz__ | sed 's/^fuzz__//')
fi
for target in "${targets[@]}"; do
    echo "== $target, $seconds s"
    cargo bolero test --sanitizer NONE --rustc-bootstrap -T "${seconds}s" "fuzz::$target"
done
