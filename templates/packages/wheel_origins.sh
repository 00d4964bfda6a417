# Sourced by resolve_wheels.sh once the whole set is known: which index each package came from, and which later ones have a package
# of that name too.
# has CONFIG PACKAGE: whether that index lists the package. Its page is read and no file: no version is above this one.
has() {
    printf '%s>99999999\n' "$2" | UV_HTTP_TIMEOUT=20 UV_HTTP_RETRIES=0 uv pip compile - --no-deps \
        --config-file "$1" --python "$python" --cache-dir /cache/uv --quiet >/dev/null 2>"/tmp/has.$2"
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
# Where a package has one index only, no other index is asked.
if [ -f /envforge/order ]; then
    # shellcheck disable=SC2086
    {
        uv_compile "$all" --constraints /tmp/constraints.txt --emit-index-annotation --no-annotate $options --offline 2>/dev/null ||
            uv_compile "$all" --constraints /tmp/constraints.txt --emit-index-annotation --no-annotate $options
    } >/tmp/all.txt || exit 43
    indexes /tmp/all.txt >/tmp/origins
    answer origins /tmp/origins
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
    done </envforge/order >/tmp/doubles
    answer doubles /tmp/doubles
fi
