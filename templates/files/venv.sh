# Sourced by the pip and uv wrappers: the user's own environment, which sees the locked one in /opt/env.
VIRTUAL_ENV=${VIRTUAL_ENV:-$HOME/.venv}
if [ ! -x "$VIRTUAL_ENV/bin/python" ]; then
    /opt/env/bin/python -m venv --without-pip "$VIRTUAL_ENV" || exit 1
    for site in "$VIRTUAL_ENV"/lib/python3.*/site-packages; do
        printf '%s\n' /opt/env/lib/python3.*/site-packages >"$site/envforge.pth"
    done
fi
export VIRTUAL_ENV

# What to say when an install fails, below what the tool itself said.
explain() {
    echo "envforge: this image pins its framework; /opt/envforge/constraints.txt lists the versions in force." >&2
}
