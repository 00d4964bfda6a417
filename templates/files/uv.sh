#!/bin/sh
# uv of this image: `uv pip install` goes to ~/.venv. uv looks at that folder alone, so it is told to leave out what
# /opt/env holds; afterwards pip says whether what came fits what is there.
case " $* " in
*" pip install "*) ;;
*) exec /opt/env/bin/uv "$@" ;;
esac
. /opt/envforge/venv.sh
UV_EXCLUDE=/opt/envforge/locked.txt /opt/env/bin/uv "$@" &&
    "$VIRTUAL_ENV/bin/python" /opt/envforge/satisfied.py "$@" &&
    "$VIRTUAL_ENV/bin/python" -m pip check --quiet >&2
code=$?
[ "$code" -eq 0 ] || explain
exit "$code"
