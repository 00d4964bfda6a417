# Runs in a throwaway container of envforge's own image: uv says where the wheels of /envforge/all.in are, by its own defaults or the
# host's settings. Prints pylock.toml. Inputs in /envforge: env, python, uv.sha256, uv if /cache may not have it. Installs nothing.
set -u
. /envforge/env
. /envforge/uv_program.sh
uv pip compile /envforge/all.in --no-deps --only-binary :all: --format pylock.toml --quiet --no-header --python "$python" \
    --cache-dir /cache/uv || exit 43
