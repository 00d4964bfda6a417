# Runs as root in a throwaway container of the base: pip fetches uv's wheel from its own default index. Used where no
# setting names an index. Leaves the wheel in /tmp/wheel; nothing else of this container is kept.
# Inputs in /envforge: env (proxies, certificates), apt.conf, uv.in (the requirement with its hash), platform (of the
# wheel, which may be for another processor). The exit code says which step failed.
set -u
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 APT_CONFIG=/envforge/apt.conf
. /envforge/env

apt-get update -qq >&2 || exit 40
apt-get install --simulate -qq --no-install-recommends python3-pip >/dev/null || exit 45
apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-unsafe-io \
    -o Dpkg::Use-Pty=0 python3-pip >/tmp/install.log 2>&1 || { cat /tmp/install.log >&2; exit 42; }
if ! python3 -m pip download --quiet --log /tmp/pip.log --disable-pip-version-check --no-input --no-cache-dir \
    --platform "$(cat /envforge/platform)" --no-deps --only-binary=:all: --require-hashes --requirement /envforge/uv.in --dest /tmp/wheel >&2; then
    # Why an index's page could not be read is in its log only.
    grep -o 'Could not fetch URL .*' /tmp/pip.log >&2
    exit 46
fi
