# Installs the wheels of one layer into /opt/env. Arguments: requirement files below /run/envforge, each with hashes; without
# any it only makes /opt/env.
set -eu
umask 022
export HOME=/root PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 UV_CACHE_DIR=/run/envforge/uv-cache UV_LINK_MODE=copy UV_NO_CONFIG=1 UV_NO_PROGRESS=1 \
    UV_PYTHON_DOWNLOADS=never UV_NO_INSTALLER_METADATA=1 UV_HTTP_TIMEOUT=180
# Secrets are files that exist during this step only.
if [ -f /run/secrets/ca ]; then export SSL_CERT_FILE=/run/secrets/ca; fi
if [ -f /run/secrets/netrc ]; then export NETRC=/run/secrets/netrc; fi
if [ -f /run/secrets/index ]; then . /run/secrets/index; fi

if [ -d /opt/env ]; then
    : >/tmp/since
    new="--since /tmp/since /opt/env/lib/python3*/site-packages"
else
    /run/envforge/uv venv --quiet --no-project --python /usr/bin/python3 /opt/env
    new=/opt/env/lib
fi
# Without network the wheels lie beside the requirement files.
offline=
if [ -d /run/envforge/vendor ]; then
    offline="--offline --no-index --find-links /run/envforge/vendor"
    ENVFORGE_FRAMEWORK_INDEX=${ENVFORGE_FRAMEWORK_INDEX:-none}
fi
# An address may hold a `?` or `*`.
set -f
default=${UV_DEFAULT_INDEX:-}
unset UV_DEFAULT_INDEX
for file in "$@"; do
    # The framework's own indexes serve exactly these. Everything else comes from the default one or further ones, whichever has
    # the file: the hashes, which are required below, say which one it must be. Which index a package comes from was chosen when
    # it was locked.
    case "$file" in
    *.framework.txt)
        index=
        further=${ENVFORGE_FRAMEWORK_INDEX:?the build secret index must export ENVFORGE_FRAMEWORK_INDEX}
        ;;
    *)
        index=$default
        further=${ENVFORGE_INDEXES:-}
        ;;
    esac
    # What somebody built is in no index: it lies beside its requirement file.
    from=$offline
    case "$file" in
    *.local.txt) from=${offline:-"--offline --no-index --find-links /run/envforge/wheels/local"} ;;
    esac
    if [ -n "$from" ]; then index= further=; fi
    # Pages of links have `flat+` before their address; uv takes them apart from the indexes.
    indexes=
    pages=
    for address in $further; do
        case "$address" in
        flat+*) pages=$pages${pages:+,}${address#flat+} ;;
        *) indexes="$indexes${indexes:+ }$address" ;;
        esac
    done
    # The first of the framework's own takes the place of the default one; with pages alone there is none.
    case "$file" in
    *.framework.txt)
        if [ -n "$indexes" ]; then
            index=${indexes%% *}
        elif [ -n "$pages" ]; then
            from=--no-index
        fi
        ;;
    esac
    # shellcheck disable=SC2086
    env ${index:+UV_DEFAULT_INDEX="$index"} ${indexes:+UV_INDEX="$indexes" UV_INDEX_STRATEGY=unsafe-best-match} ${pages:+UV_FIND_LINKS="$pages"} \
        /run/envforge/uv pip install --python /opt/env/bin/python --no-deps --only-binary :all: --require-hashes $from --requirements "/run/envforge/$file"
done
set +f
# Compiled once, here: without byte code Jupyter takes twice as long to start, and /opt/env is read-only later.
# Without site: a `.pth` file of a package would run.
# shellcheck disable=SC2086
/usr/bin/python3 -S -s /run/envforge/compile.py $new
rm -rf /opt/env/.lock /root/.cache /root/.local /tmp/* /var/tmp/*
