# Runs as root in a throwaway container of envforge's own image: apt chooses the distribution packages above a base. Of the base
# it has files only, named in apt.conf; nothing of it runs, and no login but a mirror's is here.
# Prints answers as lines of JSON (answer.sh); src/packages/resolve_debs.rs reads them.
# Inputs in /envforge: env (proxies), apt.conf, keys, sources/ and preferences of the base, lists (the folder of apt's lists, below
# /lists, which lasts), status (dpkg's) or base.list (packages that stand in it as installed), system.list, apt.list (the user's),
# vendor.sources and unpack.list (nvcc), renew (lists that lie there are too old).
# The exit code says which step failed.
set -uf
export LC_ALL=C.UTF-8 APT_CONFIG=/envforge/apt.conf
. /envforge/env
. /envforge/answer.sh

# Lists last a day. Others may read or renew the same ones.
kept=$(cat /envforge/lists)
mkdir -p "$kept/apt/partial" /tmp/apt/archives/partial /tmp/sources
find /lists -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
exec 9>"$kept/lock"
flock 9
touch "$kept"
cp -R /envforge/sources/. /tmp/sources/
if [ -f /envforge/renew ] || [ -z "$(find "$kept/done" -mmin -1440 2>/dev/null)" ]; then
    rm -f "$kept/done"
    apt-get update -qq >&2 || exit 40
    # The vendor's repository on its own, so that its faults are told from the distribution's.
    if [ -f /envforge/vendor.sources ]; then
        cp /envforge/vendor.sources /tmp/sources/
        apt-get update -qq >&2 || exit 47
    fi
    touch "$kept/done"
elif [ -f /envforge/vendor.sources ]; then
    cp /envforge/vendor.sources /tmp/sources/
fi
flock -s 9

# What is installed.
if [ -f /envforge/status ]; then
    cp /envforge/status /tmp/status
else
    : >/tmp/status
    # shellcheck disable=SC2046
    apt-cache show $(cat /envforge/base.list) >/tmp/base.show || exit 41
    sed 's/^Package: .*/&\nStatus: install ok installed/' /tmp/base.show >/tmp/status
fi

# The signed indexes that apt has read: the name of each and its date.
find "$kept/apt" -maxdepth 1 -type f \( -name '*_InRelease' -o -name '*_Release' \) | sort | while read -r list; do
    printf '%s %s\n' "${list##*/}" "$(sed -n '/^Date: /{s///p;q}' "$list")"
done >/tmp/indexes
answer indexes /tmp/indexes

# `name_1%3a2.3_amd64.deb` -> `name:amd64=1:2.3`. print-uris knows MD5 only; the index has SHA256.
# chosen NAME URIS: the answers NAME (these files) and NAME-show (what the index says of them).
chosen() {
    cut -d' ' -f1-2 "$2" >/tmp/chosen
    answer "$1" /tmp/chosen
    : >/tmp/show
    cut -d' ' -f2 "$2" | sed 's/\.deb$//; s/%3a/:/; s/%7e/~/g' |
        awk -F_ '$3 == "all" { print $1 "=" $2; next } { print $1 ":" $3 "=" $2 }' >/tmp/selected
    # A name that is an option of apt is none of a distribution's.
    if grep -qvE '^[a-z0-9][a-z0-9+.-]*(:[a-z0-9-]+)?=[A-Za-z0-9.+:~-]+$' /tmp/selected; then
        cat /tmp/selected >&2
        exit 41
    fi
    if [ -s /tmp/selected ]; then
        # shellcheck disable=SC2046
        apt-cache show $(cat /tmp/selected) >/tmp/all.show || exit 41
        grep -E '^(Package|Version|Architecture|Filename|Size|SHA256): |^$' /tmp/all.show >/tmp/show
    fi
    answer "$1-show" /tmp/show
}
install() { apt-get install --no-install-recommends --print-uris -qq "$@"; }

# shellcheck disable=SC2046
install $(cat /envforge/system.list) >/tmp/uris || exit 41
chosen uris /tmp/uris

# What the user asked for: resolved together with the rest, of which it may change nothing.
if [ -f /envforge/apt.list ]; then
    # shellcheck disable=SC2046
    install $(cat /envforge/system.list) $(cat /envforge/apt.list) >/tmp/both || exit 49
    if grep -Fxvf /tmp/both /tmp/uris >&2; then exit 50; fi
    grep -Fxvf /tmp/uris /tmp/both >/tmp/added || true
    chosen apt-uris /tmp/added
fi

# nvcc and its profilers: their files alone, without what they depend on.
if [ -f /envforge/unpack.list ]; then
    # shellcheck disable=SC2046
    apt-get download --print-uris -qq $(cat /envforge/unpack.list) >/tmp/unpack || exit 48
    chosen unpack-uris /tmp/unpack
fi
: >/tmp/nothing
answer end /tmp/nothing
