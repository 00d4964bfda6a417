#!/usr/bin/env bash
# Installs envforge in a dev container. Copy envforge-ci.sh next to this file. The options arrive as PACKAGE and SHA256.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export ENVFORGE_PACKAGE=${PACKAGE:-} ENVFORGE_SHA256=${SHA256:-} ENVFORGE_PREFIX=${PREFIX:-/usr/local}
"$here/envforge-ci.sh" install
