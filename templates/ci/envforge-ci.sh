#!/usr/bin/env bash
# The steps of continuous integration with envforge, for every CI system. Inputs come through the environment alone.
#
#   envforge-ci.sh install    ENVFORGE_PACKAGE, ENVFORGE_SHA256: address or path of the tarball, and its hash; ENVFORGE_PREFIX: ~/.local
#   envforge-ci.sh check      lock --check
#   envforge-ci.sh build      build --locked; ENVFORGE_TAG: the tag; ENVFORGE_PUSH=true: push it as -unverified
#   envforge-ci.sh verify     verify on a GPU; ENVFORGE_TAG; ENVFORGE_PUSH=true: push the verified tag; report.html, report.xml
#
# ENVFORGE_PROJECT: the project's directory [default: .]
set -euo pipefail

die() {
    echo "envforge-ci: $*" >&2
    exit 2
}

# A pull request runs code of others: it gets no registry, whatever the variables say.
is_pull_request() {
    case ${GITHUB_EVENT_NAME:-} in pull_request*) return 0 ;; esac
    case ${CI_PIPELINE_SOURCE:-} in merge_request_event | external_pull_request_event) return 0 ;; esac
    return 1
}

push_option() {
    if [ "${ENVFORGE_PUSH:-false}" = true ]; then
        if is_pull_request; then
            echo "envforge-ci: a pull request does not push" >&2
        else
            push=(--push)
        fi
    fi
}

fetch() { # ADDRESS FILE
    case $1 in
    https://*) curl --proto '=https' --fail --silent --show-error --location --output "$2" "$1" ;;
    /* | ./*) cp "$1" "$2" ;;
    *) die "ENVFORGE_PACKAGE is neither an https address nor a path: $1" ;;
    esac
}

install() {
    [ -n "${ENVFORGE_PACKAGE:-}" ] || die "set ENVFORGE_PACKAGE to the address or path of the tarball"
    [ -n "${ENVFORGE_SHA256:-}" ] || die "set ENVFORGE_SHA256 to the hash of the tarball"
    local prefix=${ENVFORGE_PREFIX:-$HOME/.local}
    # Not local: the trap reads it after the function.
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    fetch "$ENVFORGE_PACKAGE" "$work/envforge.tar.gz"
    echo "$ENVFORGE_SHA256  $work/envforge.tar.gz" | sha256sum --check --quiet || die "another file than ENVFORGE_SHA256 names"
    mkdir -p "$prefix/bin" "$prefix/share/man"
    tar -xzf "$work/envforge.tar.gz" -C "$work" --strip-components=1
    cp "$work/bin/envforge" "$prefix/bin/envforge"
    cp -r "$work/man/." "$prefix/share/man/"
    if [ -n "${GITHUB_PATH:-}" ]; then echo "$prefix/bin" >>"$GITHUB_PATH"; fi
    "$prefix/bin/envforge" --version
}

tag() {
    [ -n "${ENVFORGE_TAG:-}" ] || die "set ENVFORGE_TAG to the tag of the image, such as registry.example.com/team/torch:2.8"
    case $ENVFORGE_TAG in -*) die "ENVFORGE_TAG begins with a dash: $ENVFORGE_TAG" ;; esac
}

push=()
case ${1:-} in
install) install ;;
check | build | verify)
    cd -- "${ENVFORGE_PROJECT:-.}"
    case $1 in
    check) envforge lock --check ;;
    build)
        tag
        push_option
        envforge build --locked --tag "$ENVFORGE_TAG" ${push[@]+"${push[@]}"}
        ;;
    verify)
        tag
        is_pull_request && die "a pull request does not use a GPU runner"
        push_option
        # Only an image built on this machine earns tags; the same lock gives the same image. `build` prints its tags.
        built=$(envforge build --locked --tag "$ENVFORGE_TAG")
        [ -n "$built" ] || die "build printed no tag"
        envforge verify "${built%%$'\n'*}" --html report.html --junit report.xml ${push[@]+"${push[@]}"}
        ;;
    esac
    ;;
*) die "usage: envforge-ci.sh install|check|build|verify" ;;
esac
