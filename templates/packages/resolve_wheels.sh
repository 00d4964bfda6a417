# Runs in a throwaway container of envforge's own image: uv chooses the wheels of a stack. Nothing of the base is here: what the
# image's Python is, the program `python` states.
# Prints answers as lines of JSON (answer.sh); src/packages/resolve_wheels.rs reads them.
# Inputs in /envforge: env (proxies), *.in (all, stack, framework; source-NAME of what may be built), python (the path of the
# program), uv.sha256, uv if /cache may not have it, uv.toml, parts.toml, sources.toml, order, only-*.toml (more than the default
# index), framework.url (the framework's own index), refresh (what the indexes said before does not count).
# /cache lasts where only indexes of the settings are asked.
# The exit code says which step failed.
set -u
export LC_ALL=C.UTF-8
. /envforge/env
. /envforge/answer.sh
. /envforge/uv_program.sh

# uv_compile FILE [OPTION...]: resolves the requirements of a file.
config=/envforge/uv.toml
# Only uv's warnings name the files that an index lists without upload time.
quiet=--quiet
if grep -q '^exclude-newer' "$config"; then quiet=; fi
uv_compile() { uv pip compile "$@" --config-file "$config" --python "$python" --cache-dir /cache/uv --no-header $quiet; }
# compile NAME FILE [OPTION...]: the same, as /tmp/pylock.NAME.toml.
compile() {
    output=/tmp/pylock.$1.toml
    shift
    uv_compile "$@" --output-file "$output" --format pylock.toml >/dev/null
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
# asked for; if that does not do, all. A wheel of a pre-release that is not asked for is none that fits. What they need is not
# known before they are built, and nothing of them runs here.
# is_without_solution FILE: goes on if uv found nothing that fits; an index that fails is no reason to build anything.
is_without_solution() { grep -q 'No solution found' "$1" || { cat "$1" >&2; exit 43; }; }
allowed=
built=
for file in /envforge/source-*.in; do
    [ -e "$file" ] || continue
    name=${file#/envforge/source-}
    name=${name%.in}
    allowed="$allowed $name"
    if ! compile "source-$name" "$(requirements "source-$name")" --no-deps --prerelease explicit 2>/tmp/alone.log; then
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

. /envforge/wheel_origins.sh

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
        answer "$name" "/tmp/pylock.$name.toml"
    fi
done
: >/tmp/nothing
answer end /tmp/nothing
