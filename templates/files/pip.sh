#!/bin/sh
# pip of this image: installs go to ~/.venv; what /opt/env holds counts as installed, and its versions are constraints.
. /opt/envforge/venv.sh
"$VIRTUAL_ENV/bin/python" -m pip "$@"
code=$?
[ "$code" -eq 0 ] || [ "${1:-}" != install ] || explain
exit "$code"
