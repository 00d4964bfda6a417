# Sourced by the scripts that run uv. uv, by its hash: it is sent once and then lies in /cache. Those that nobody used in a month
# go. The program that stands for the image's Python is `$python`.
uv_sha256=$(cat /envforge/uv.sha256)
uv_program=/cache/uv-$uv_sha256
mkdir -p /cache
if [ -f /envforge/uv ]; then
    find /cache -maxdepth 1 -type f -name 'uv-*' -mtime +30 -delete
    sent=$(mktemp /cache/uv-XXXXXX) && cp /envforge/uv "$sent" && chmod 755 "$sent" && mv "$sent" "$uv_program" || exit 51
fi
echo "$uv_sha256  $uv_program" | sha256sum -c --status 2>/dev/null && touch "$uv_program" || exit 51
mkdir -p /tmp/bin && ln -sf "$uv_program" /tmp/bin/uv || exit 51
PATH=/tmp/bin:$PATH
python=$(cat /envforge/python)
