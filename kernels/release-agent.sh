#!/bin/sh
# Builds the agent for releases: it starts on every C library since glibc 2.17 (Debian 8, CentOS 7), where one that the
# machine's own compiler links needs the machine's own glibc.
#
#   kernels/release-agent.sh OUT [TARGET]      TARGET: x86_64-unknown-linux-gnu (default) or aarch64-unknown-linux-gnu
#   ENVFORGE_AGENT=OUT cargo build --profile dist
#
# Needs cargo-zigbuild and ziglang, from the package index: pip install ziglang cargo-zigbuild
set -eu
floor=2.17
out=${1:?usage: kernels/release-agent.sh OUT [TARGET]}
target=${2:-x86_64-unknown-linux-gnu}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A package around the one source file: build.rs needs none, cargo-zigbuild does.
cat >"$work/Cargo.toml" <<TOML
[package]
name = "envforge-agent"
version = "0.0.0"
edition = "2024"

[[bin]]
name = "envforge-agent"
path = "$here/agent/main.rs"

[profile.release]
opt-level = "s"
strip = true
panic = "abort"
codegen-units = 1

[workspace]
TOML
RUSTFLAGS="--remap-path-prefix=$(dirname "$here")=envforge --remap-path-prefix=$work=work" \
    cargo zigbuild --quiet --release --offline --manifest-path "$work/Cargo.toml" --target "$target.$floor" \
    --target-dir "$work/target"
built=$work/target/$target/release/envforge-agent

# The promise, checked on what came out.
highest=$(grep -aoE 'GLIBC_[0-9]+\.[0-9.]+' "$built" | sed 's/GLIBC_//' | sort -uV | tail -n 1)
if [ "$(printf '%s\n%s\n' "$highest" "$floor" | sort -V | tail -n 1)" != "$floor" ]; then
    echo "the agent needs glibc $highest, more than $floor" >&2
    exit 1
fi
cp "$built" "$out"
echo "$out: $(wc -c <"$out") bytes, needs glibc $highest"
