#!/usr/bin/env bash
# Makes everything that users install, from one release build: a wheel, a Debian package, a tarball. Nothing is published.
#
#   .ci/package/build.sh [OUT]         OUT: target/package
#   PROFILE=release …                  faster to compile than `dist`, larger
#
# With cargo-zigbuild and ziglang (`pip install cargo-zigbuild ziglang`) the program starts on every glibc since 2.17; without
# them on this machine's and newer. The names of wheel and package say which. The same commit, compiler and folder give the
# same bytes: dates are SOURCE_DATE_EPOCH or those of the newest commit.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
out=${1:-target/package}
profile=${PROFILE:-dist}
floor=2.17
target=$(rustc -vV | sed -n 's/^host: //p')
folder=${CARGO_TARGET_DIR:-target}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
# No path of this machine in the program.
export RUSTFLAGS="--remap-path-prefix=$root=envforge --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
mkdir -p "$out"

if command -v cargo-zigbuild >/dev/null; then
    kernels/release-agent.sh "$out/agent" "$target"
    ENVFORGE_AGENT=$(realpath "$out/agent") cargo zigbuild --locked --profile "$profile" --bin envforge --target "$target.$floor"
    rm "$out/agent"
else
    echo "cargo-zigbuild is not installed: the packages require this machine's glibc" >&2
    cargo build --locked --profile "$profile" --bin envforge --target "$target"
fi
python3 .ci/package/pack.py "$folder/$target/$profile/envforge" "$out"
