#!/bin/sh
# Builds the agent for releases: it starts on every glibc since 2.17 (Debian 8, CentOS 7). An agent that the machine's own
# compiler links requires the machine's own glibc.
#
#   kernels/release-agent.sh OUT [TARGET]      TARGET: x86_64-unknown-linux-gnu (default) or aarch64-unknown-linux-gnu
#   kernels/release-agent.sh --check           only whether the copied crates compile, by cargo alone
#   ENVFORGE_AGENT=OUT cargo build --profile dist
#
# Requires cargo-zigbuild and ziglang, from the package index: pip install ziglang cargo-zigbuild
set -eu
floor=2.17
out=${1:?usage: kernels/release-agent.sh OUT [TARGET]}
target=${2:-x86_64-unknown-linux-gnu}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The two crates alone, with a profile of their own; the agent's build script has a module in the folder build.
crates=$work/kernels
mkdir "$crates"
cp -rL "$here/agent" "$here/protocol" "$here/cuda" "$here/ptx" "$crates"
cp -rL "$here/../build" "$work"
cat >"$crates/Cargo.toml" <<TOML
[workspace]
members = ["agent", "protocol"]
resolver = "3"

[workspace.lints]

[profile.release]
opt-level = "s"
strip = true
panic = "abort"
codegen-units = 1
TOML
# Tests need other crates, the agent does not.
sed -i '/^\[dev-dependencies\]/,/^$/d' "$crates/agent/Cargo.toml"
if [ "$out" = --check ]; then
    cargo check --quiet --offline --manifest-path "$crates/Cargo.toml" --package envforge-agent --target-dir "$work/target"
    exit
fi
RUSTFLAGS="--remap-path-prefix=$crates=envforge" \
    cargo zigbuild --quiet --release --offline --manifest-path "$crates/Cargo.toml" --package envforge-agent \
    --target "$target.$floor" --target-dir "$work/target"
built=$work/target/$target/release/envforge-agent

# Checks the result.
highest=$(grep -aoE 'GLIBC_[0-9]+\.[0-9.]+' "$built" | sed 's/GLIBC_//' | sort -uV | tail -n 1)
if [ "$(printf '%s\n%s\n' "$highest" "$floor" | sort -V | tail -n 1)" != "$floor" ]; then
    echo "the agent requires glibc $highest, newer than $floor" >&2
    exit 1
fi
cp "$built" "$out"
echo "$out: $(wc -c <"$out") bytes, requires glibc $highest"
