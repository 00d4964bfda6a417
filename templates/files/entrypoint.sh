#!/bin/sh
# Gives any user id a home it can write to, then becomes the command. Needs no root and changes no account.
if [ ! -w "${HOME:-/nonexistent}" ] || [ "$HOME" = / ]; then
    if home=$(mktemp -d /tmp/home.XXXXXX 2>/dev/null); then
        export HOME="$home" PATH="$home/.venv/bin:$PATH"
    fi
fi
# What was installed past the wrappers of pip and uv hides what this image was checked with.
if [ -d "$HOME/.venv/lib" ]; then
    other=$(ls -d "$HOME"/.venv/lib/python3.*/site-packages/*.dist-info 2>/dev/null |
        sed 's|.*/||; s/-.*//; s/_/-/g' | grep -Fxi -f /opt/envforge/locked.txt | tr '\n' ' ')
    [ -z "$other" ] ||
        echo "envforge: ~/.venv holds packages in place of those this image was checked with: ${other% }" >&2
fi
exec "$@"
