# Runs as root in a throwaway container of the base: apt resolves the distribution packages, uv the wheels.
# Prints sections to stdout; src/packages/output.rs reads them. Nothing of this container is kept but what lies in /cache.
# Inputs in /envforge: env (proxies), apt.conf, system.list, apt.list (the user's), *.in (all, stack, framework; source-NAME of
# what may be built), uv.sha256, uv if /cache may not have it, uv.toml, base (a name of it),
# parts.toml, sources.toml, order, only-*.toml (more than the default index), framework.url (the framework's own index),
# refresh (what the indexes said before does not count); for an image of another processor foreign (Debian's and uv's
# name of it) and base.list. Without system.list the packages of the distribution are known already.
# The exit code says which step failed.
set -u
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 APT_CONFIG=/envforge/apt.conf
. /envforge/env

# uv, by its hash: it is sent once and then lies in /cache. Those that nobody used in a month go.
sha256=$(cat /envforge/uv.sha256)
uv=/cache/uv-$sha256
if [ -f /envforge/uv ]; then
    find /cache -maxdepth 1 -type f -name 'uv-*' -mtime +30 -delete
    sent=$(mktemp /cache/uv-XXXXXX) && cp /envforge/uv "$sent" && chmod 755 "$sent" && mv "$sent" "$uv" || exit 51
fi
echo "$sha256  $uv" | sha256sum -c --status 2>/dev/null && touch "$uv" || exit 51

section() { printf '\n==envforge:%s==\n' "$1"; }

# Python of the base, unpacked: uv asks it what it is.
python=/cache/python-$(cat /envforge/base)
if [ -f /envforge/system.list ] || [ ! -d "$python" ]; then
    apt-get update -qq >&2 || exit 40
fi
# The vendor's repository on its own, so that its faults are told from the distribution's.
if [ -f /envforge/vendor.list ]; then
    if [ -s /envforge/sources.list ]; then
        cat /envforge/vendor.list >>/envforge/sources.list
    else
        cp /envforge/vendor.list /etc/apt/sources.list.d/envforge-vendor.list
    fi
    apt-get update -qq >&2 || exit 47
fi

# apt of the image's processor. Where that is another one than this container's, it reads that one's indexes, and the
# packages of the base (base.list) stand in its status as if they were installed.
platform=
the_apt() { "$@"; }
if [ -f /envforge/foreign ]; then
    read -r architecture platform </envforge/foreign
    the_apt() {
        program=$1
        shift
        "$program" -o APT::Architecture="$architecture" -o APT::Architectures::="$architecture" \
            -o Dir::State::lists=/tmp/foreign/lists -o Dir::State::status=/tmp/foreign/status \
            -o Dir::Cache=/tmp/foreign "$@"
    }
fi
foreign_indexes() {
    mkdir -p /tmp/foreign/lists/partial /tmp/foreign/archives/partial
    : >/tmp/foreign/status
    the_apt apt-get update -qq >&2 || exit 40
    # shellcheck disable=SC2046
    the_apt apt-cache show $(cat /envforge/base.list) >/tmp/base.show || exit 41
    sed 's/^Package: .*/&\nStatus: install ok installed/' /tmp/base.show >/tmp/foreign/status
}

# `name_1%3a2.3_amd64.deb` -> `name:amd64=1:2.3`. print-uris of bookworm knows MD5 only; the index has SHA256.
# show URIS: what the index says of these files.
show() {
    cut -d' ' -f2 "$1" | sed 's/\.deb$//; s/%3a/:/; s/%7e/~/g' |
        awk -F_ '$3 == "all" { print $1 "=" $2; next } { print $1 ":" $3 "=" $2 }' >/tmp/selected
    if [ -s /tmp/selected ]; then
        # shellcheck disable=SC2046
        the_apt apt-cache show $(cat /tmp/selected) >/tmp/show || exit 41
        grep -E '^(Package|Version|Architecture|Filename|Size|SHA256): |^$' /tmp/show
    fi
}

# The signed indexes that apt has read: the name of each and its date.
indexes() {
    lists=/var/lib/apt/lists
    if [ -f /envforge/foreign ]; then lists=/tmp/foreign/lists; fi
    section indexes
    for list in "$lists"/*_InRelease "$lists"/*_Release; do
        [ -f "$list" ] || continue
        printf '%s %s\n' "${list##*/}" "$(sed -n '/^Date: /{s///p;q}' "$list")"
    done
}

# The packages of the distribution.
distribution() {
    indexes
    # shellcheck disable=SC2046
    the_apt apt-get install --no-install-recommends --print-uris -qq $(cat /envforge/system.list) >/tmp/uris || exit 41
    section uris
    cut -d' ' -f1-2 /tmp/uris
    section show
    show /tmp/uris

    # What the user asked for: resolved together with the rest, of which it may change nothing.
    if [ -f /envforge/apt.list ]; then
        # shellcheck disable=SC2046
        the_apt apt-get install --no-install-recommends --print-uris -qq $(cat /envforge/system.list) \
            $(cat /envforge/apt.list) >/tmp/both || exit 49
        if grep -Fxvf /tmp/both /tmp/uris >&2; then exit 50; fi
        grep -Fxvf /tmp/uris /tmp/both >/tmp/added || true
        section apt-uris
        cut -d' ' -f1-2 /tmp/added
        section apt-show
        show /tmp/added
    fi

    # nvcc and its profilers: their files alone, without what they depend on.
    if [ -f /envforge/unpack.list ]; then
        # shellcheck disable=SC2046
        the_apt apt-get download --print-uris -qq $(cat /envforge/unpack.list) >/tmp/unpack || exit 48
        section unpack-uris
        cut -d' ' -f1-2 /tmp/unpack
        section unpack-show
        show /tmp/unpack
    fi
}
if [ -f /envforge/system.list ]; then
    if [ -f /envforge/foreign ]; then foreign_indexes; fi
    distribution
fi

# unpack PACKAGE FOLDER: the files of it and of what it depends on, unless the base has them. uv only asks Python what it is;
# installed in earnest its packages would compile themselves for as long as all the rest takes.
unpack() {
    mkdir -p /tmp/debs/partial "$2"
    apt-get install -y -qq --download-only --no-install-recommends -o Dir::Cache::archives=/tmp/debs "$1" \
        >/tmp/install.log 2>&1 || { cat /tmp/install.log >&2; exit 42; }
    for deb in /tmp/debs/*.deb; do
        [ -e "$deb" ] || continue
        dpkg-deb --fsys-tarfile "$deb" >/tmp/files.tar || exit 42
        tar -xf /tmp/files.tar -C "$2" >&2 || exit 42
        rm "$deb"
    done
}
run_python() { LD_LIBRARY_PATH=$libraries "$interpreter" "$@"; }
# python_in FOLDER: the Python unpacked there, where it lies; that of a base which has a part of it, or all, in its place.
python_in() {
    interpreter=$1/usr/bin/python3
    libraries=$(printf '%s:' "$1"/usr/lib/*-linux-gnu* "$1"/lib/*-linux-gnu*)
    libraries=${libraries%:}
    if ! run_python -c 'import json, platform, struct, sysconfig' 2>/dev/null; then
        tar -cf - -C "$1" . | tar -xf - -C / --keep-directory-symlink >&2 || exit 42
        interpreter=/usr/bin/python3
        libraries=
    fi
}
if [ ! -d "$python" ]; then
    # Others may be at it too: each makes its own and the first one stays. Those of bases that nobody uses any more go.
    find /cache -maxdepth 1 -name 'python-*' -mtime +30 -exec rm -rf {} +
    made=$(mktemp -d /cache/python-XXXXXX) || exit 42
    unpack python3 "$made/root"
    python_in "$made/root"
    # uv looks into a Python older than 3.10 with distutils, which Debian packages apart.
    run_python -c 'import sys; sys.exit(sys.version_info < (3, 10))' || unpack python3-distutils "$made/root"
    # What is unpacked has the times of its packages.
    touch "$made/root"
    mv -T "$made/root" "$python" 2>/dev/null || [ -d "$python" ] || exit 42
    rm -rf "$made"
fi
touch "$python"
python_in "$python"
section python
run_python -c 'import sys; print("%d.%d" % sys.version_info[:2])' || exit 42

# uv_compile FILE [OPTION...]: resolves the requirements of a file.
config=/envforge/uv.toml
# Only uv's warnings name the files that an index lists without upload time.
quiet=--quiet
if grep -q '^exclude-newer' "$config"; then quiet=; fi
uv_compile() {
    LD_LIBRARY_PATH=$libraries "$uv" pip compile "$@" --config-file "$config" --python "$interpreter" \
        --cache-dir /cache/uv --no-header $quiet ${platform:+--python-platform "$platform"}
}
# compile NAME FILE [OPTION...]: the same, as /tmp/pylock.NAME.toml.
compile() {
    name=$1
    shift
    uv_compile "$@" --output-file "/tmp/pylock.$name.toml" --format pylock.toml >/dev/null
}
# requirements NAME: the file of NAME's requirements: NAME.in, as a project where a package comes from one index only, which uv
# reads from projects alone.
requirements() {
    if [ ! -f /envforge/sources.toml ]; then
        echo "/envforge/$1.in"
        return
    fi
    mkdir -p "/tmp/in/$1"
    {
        printf '[project]\nname = "envforge-image"\nversion = "0"\ndependencies = [\n'
        sed '/^$/d; s/"/\\"/g; s/.*/    "&",/' "/envforge/$1.in"
        if [ "$1" = all ]; then sed 's/.*/    "&",/' /tmp/libraries; fi
        printf ']\n'
        cat /envforge/sources.toml
        sed 's/$/ = { index = "framework" }/' /tmp/libraries
    } >"/tmp/in/$1/pyproject.toml"
    echo "/tmp/in/$1/pyproject.toml"
}
# indexes FILE: lines `PACKAGE ADDRESS` of what uv says of the index of each package.
indexes() { awk '/^[A-Za-z0-9]/ { split($1, name, "=="); next } /^ *# from / { print name[1], $3 }' "$1"; }

# The framework's own index serves the framework and its companions (sources.toml), and of what these need CUDA's libraries and
# Triton, if it has them: never another package.
: >/tmp/libraries
if [ -f /envforge/framework.url ]; then
    config=/envforge/parts.toml
    uv_compile /envforge/framework.in --emit-index-annotation --no-annotate >/tmp/framework.txt || exit 43
    config=/envforge/uv.toml
    url=$(cat /envforge/framework.url)
    indexes /tmp/framework.txt | while read -r name from; do
        if [ "${from%/}" != "${url%/}" ] || grep -q "^$name = " /envforge/sources.toml; then continue; fi
        case "$name" in nvidia-* | cutensor-* | triton | pytorch-triton) echo "$name" ;; esac
    done >/tmp/libraries
fi

# The whole set decides, keeping old pins where they still fit (uv reads an existing output file as preferences).
# The smaller sets, held to the same versions, only say which layer a wheel belongs to.
if [ -f /envforge/pylock.all.toml ]; then cp /envforge/pylock.all.toml /tmp/; fi
refresh=
if [ -f /envforge/refresh ]; then refresh=--refresh; fi
# Of source distributions that the user allows (source-NAME.in) those are taken of which no wheel fits, in whatever version is
# asked for; if that does not do, all. What they need is not known before they are built, and nothing of them runs here.
# is_without_solution FILE: goes on if uv found nothing that fits; an index that fails is no reason to build anything.
is_without_solution() { grep -q 'No solution found' "$1" || { cat "$1" >&2; exit 43; }; }
allowed=
built=
for file in /envforge/source-*.in; do
    [ -e "$file" ] || continue
    name=${file#/envforge/source-}
    name=${name%.in}
    allowed="$allowed $name"
    if ! compile "source-$name" "$(requirements "source-$name")" --no-deps 2>/tmp/alone.log; then
        is_without_solution /tmp/alone.log
        built="$built $name"
    fi
done
all=$(requirements all)
options=
compile_from_source() {
    config=/tmp/uv.toml
    cp /envforge/uv.toml $config
    options=
    for name in "$@"; do
        printf '\n[[dependency-metadata]]\nname = "%s"\nrequires-dist = []\n' "$name" >>$config
        options="$options --no-binary $name"
    done
    # shellcheck disable=SC2086
    compile all "$all" $refresh $options
}
# shellcheck disable=SC2086
if [ -z "$allowed" ]; then
    compile all "$all" $refresh || exit 43
elif ! compile_from_source $built 2>/tmp/first.log; then
    is_without_solution /tmp/first.log
    compile_from_source $allowed 2>/dev/null || { cat /tmp/first.log >&2; exit 43; }
fi
awk -F'"' '/^name = / { name = $2 } /^version = / && name { print name "==" $2; name = "" }' \
    /tmp/pylock.all.toml >/tmp/constraints.txt

# has CONFIG PACKAGE: whether that index lists the package. Its page is read and no file: no version is above this one.
has() {
    printf '%s>99999999\n' "$2" | LD_LIBRARY_PATH=$libraries UV_HTTP_TIMEOUT=20 UV_HTTP_RETRIES=0 "$uv" pip compile - --no-deps \
        --config-file "$1" --python "$interpreter" --cache-dir /cache/uv --quiet >/dev/null 2>"/tmp/has.$2"
    grep -q 'No solution found' "/tmp/has.$2" || return 2
    ! grep -q 'was not found in' "/tmp/has.$2"
}
# also_in INDEX CONFIG: lines `PACKAGE INDEX` for those of /tmp/found that this index lists as well. One that does not answer the
# first question is not asked again.
also_in() {
    asked=0
    while read -r package; do
        if [ "$asked" = 0 ]; then
            code=0
            has "$2" "$package" || code=$?
            if [ "$code" = 2 ]; then return; fi
            if [ "$code" = 0 ]; then echo "$package $1"; fi
        else
            { if has "$2" "$package"; then echo "$package $1"; fi; } &
            if [ $((asked % 8)) = 0 ]; then wait; fi
        fi
        asked=$((asked + 1))
    done </tmp/found
    wait
}
# Which index each package came from, and which later ones have a package of that name too. Where a package has one index only,
# no other index is asked.
if [ -f /envforge/order ]; then
    # shellcheck disable=SC2086
    {
        uv_compile "$all" --constraints /tmp/constraints.txt --emit-index-annotation --no-annotate $options --offline 2>/dev/null ||
            uv_compile "$all" --constraints /tmp/constraints.txt --emit-index-annotation --no-annotate $options
    } >/tmp/all.txt || exit 43
    indexes /tmp/all.txt >/tmp/origins
    section origins
    cat /tmp/origins
    section doubles
    while read -r name url configuration; do
        [ "$name" != default ] || break
        while read -r package from; do
            if [ "${from%/}" = "${url%/}" ] && ! grep -q "^$package = " /envforge/sources.toml; then echo "$package"; fi
        done </tmp/origins >/tmp/found
        after=
        while read -r other url_of_other configuration; do
            if [ -n "$after" ] && [ "${url_of_other%/}" != "${url%/}" ]; then also_in "$other" "$configuration"; fi
            if [ "$other" = "$name" ]; then after=yes; fi
        done </envforge/order
    done </envforge/order
fi

# part NAME: the answers to all of its questions are known by now, so nobody is asked again; if one should lack, everybody.
config=/envforge/uv.toml
if [ -f /envforge/parts.toml ]; then config=/envforge/parts.toml; fi
part() {
    compile "$1" "/envforge/$1.in" --constraints /tmp/constraints.txt --offline 2>/dev/null ||
        compile "$1" "/envforge/$1.in" --constraints /tmp/constraints.txt
}
if [ -f /envforge/stack.in ]; then part stack & fi
part framework || exit 43
if [ -f /envforge/stack.in ]; then wait $! || exit 43; fi
for name in all stack framework; do
    if [ -f "/envforge/$name.in" ]; then
        section "$name"
        cat "/tmp/pylock.$name.toml"
    fi
done
section end
