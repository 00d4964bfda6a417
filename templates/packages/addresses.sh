# Runs in a throwaway container with the image's Python: uv says where the wheels of /envforge/all.in are, by its own defaults
# or the host's settings. Prints pylock.toml. Installs nothing.
set -u
. /envforge/env
exec /envforge/uv pip compile /envforge/all.in --no-deps --only-binary :all: --format pylock.toml --quiet --no-header \
    --python /usr/bin/python3 --cache-dir /cache/uv
