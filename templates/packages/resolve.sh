# Runs as root in a throwaway container of the base: apt resolves the distribution packages, uv the wheels.
# Prints sections to stdout; src/packages/output.rs reads them. Nothing of this container is kept.
# Inputs in /envforge: env (proxies), apt.conf, system.list, *.in, uv, uv.toml. The exit code says which step failed.
set -u
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 APT_CONFIG=/envforge/apt.conf
. /envforge/env

section() { printf '\n==envforge:%s==\n' "$1"; }

apt-get update -qq >&2 || exit 40

# shellcheck disable=SC2046
apt-get install --no-install-recommends --print-uris -qq $(cat /envforge/system.list) >/tmp/uris || exit 41
section uris
cut -d' ' -f1-2 /tmp/uris
# `name_1%3a2.3_amd64.deb` -> `name:amd64=1:2.3`. print-uris of bookworm knows MD5 only; the index has SHA256.
cut -d' ' -f2 /tmp/uris | sed 's/\.deb$//; s/%3a/:/' |
    awk -F_ '$3 == "all" { print $1 "=" $2; next } { print $1 ":" $3 "=" $2 }' >/tmp/selected
section show
if [ -s /tmp/selected ]; then
    xargs apt-cache show </tmp/selected >/tmp/show || exit 41
    grep -E '^(Package|Version|Architecture|Filename|Size|SHA256): |^$' /tmp/show
fi

apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-unsafe-io \
    -o Dpkg::Use-Pty=0 python3 >/tmp/install.log 2>&1 || { cat /tmp/install.log >&2; exit 42; }
section python
python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' || exit 42

# compile NAME [OPTION...]: resolves /envforge/NAME.in and prints the result as section NAME.
compile() {
    name=$1
    shift
    /envforge/uv pip compile "/envforge/$name.in" --output-file "/tmp/pylock.$name.toml" --format pylock.toml \
        --config-file /envforge/uv.toml --python /usr/bin/python3 --cache-dir /tmp/uv-cache \
        --no-header --quiet "$@" || exit 43
    section "$name"
    cat "/tmp/pylock.$name.toml"
}
# The whole set decides, keeping old pins where they still fit (uv reads an existing output file as preferences).
# The smaller sets, held to the same versions, only say which layer a wheel belongs to.
if [ -f /envforge/pylock.all.toml ]; then cp /envforge/pylock.all.toml /tmp/; fi
compile all
awk -F'"' '/^name = / { name = $2 } /^version = / && name { print name "==" $2; name = "" }' \
    /tmp/pylock.all.toml >/tmp/constraints.txt
if [ -f /envforge/stack.in ]; then compile stack --constraints /tmp/constraints.txt; fi
compile framework --constraints /tmp/constraints.txt
section end
