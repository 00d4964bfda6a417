#!/bin/sh
# Builds the image of this folder's project, and the child on top of exactly that.
set -eu
cd "$(dirname "$0")"
base=$(envforge build | head -n 1)
docker build --build-arg "BASE=$base" -t example-child:1 .
docker run --rm example-child:1
