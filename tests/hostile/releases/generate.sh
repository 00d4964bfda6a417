#!/bin/bash
# Makes the signed indexes of this folder again, with keys that are thrown away: bash tests/hostile/releases/generate.sh
# Needs gpg 2.2 and xz. A case without a key of its own is signed by `key.gpg` of this folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
# The last time is the one of the command, for the agent too.
g() { gpg --no-permission-warning --homedir "$home" --batch --quiet --yes --pinentry-mode loopback --passphrase '' --faked-system-time "$when!" "$@"; }

# key NAME EXPIRY: a new key, made at $when.
key() { g --quick-generate-key "$1 <$1@example.invalid>" rsa2048 sign "$2"; }
fingerprint() { g --with-colons --list-keys "$1" | awk -F: '$1 == "fpr" { print $10; exit }'; }
export_key() { g --export --export-options no-export-attributes "$1" >"$here/$2"; }

printf 'Package: demo\nVersion: 1\nArchitecture: amd64\nFilename: pool/demo_1_amd64.deb\nSize: 7\nSHA256: %s\n' \
    "$(printf demo | sha256sum | cut -c1-64)" >"$home/Packages"
xz -9 --check=crc32 --stdout "$home/Packages" >"$here/Packages.xz"

# release DATE [UNPACKED-SIZE [FILE]]: the text of an index that promises Packages.xz.
release() {
    file=${3:-$here/Packages.xz}
    printf 'Origin: Debian\nSuite: oldstable\nCodename: bookworm\nDate: %s\nValid-Until: Fri, 27 Nov 2026 00:12:41 UTC\n' "$1"
    printf 'SHA256:\n %s %s main/binary-amd64/Packages.xz\n' "$(sha256sum "$file" | cut -c1-64)" "$(stat -c %s "$file")"
    printf ' %s %s main/binary-amd64/Packages\n' "$(sha256sum "$home/Packages" | cut -c1-64)" \
        "${2:-$(stat -c %s "$home/Packages")}"
}
# sign CASE KEY [OPTION...]: signs the text on stdin.
sign() {
    mkdir -p "$here/$1"
    out=$here/$1/InRelease who=$2
    shift 2
    g --local-user "$who" --clear-sign "$@" --output "$out"
}
TODAY='Fri, 20 Nov 2026 00:12:41 UTC'

when=20261101T000000
key good never
export_key good key.gpg
when=20261120T003000
release "$TODAY" | sign harmless good --digest-algo SHA256
release "$TODAY" | sign older-than-seen good
release "$TODAY" | sign older-again good
release "$TODAY" | sign older-accepted good
release "$TODAY" | sign older-on-another-mirror good
release 'Thu, 19 Nov 2026 18:12:41 UTC' | sign older-by-hours good
release 'Tue, 24 Nov 2026 00:12:41 UTC' | sign from-the-future good
for hash in SHA1 MD5 RIPEMD160; do
    release "$TODAY" | sign "signed-with-$(echo $hash | tr '[:upper:]' '[:lower:]')" good --digest-algo $hash \
        --allow-weak-digest-algos --openpgp
done
release "$TODAY" | sign signature-expired good --default-sig-expire 1d
release "$TODAY" 20 | sign packages-larger-than-listed good
{ release "$TODAY"; yes ' x' | head -n 30000 || true; } | sign lines-without-end good
when=20261124T120000
release "$TODAY" | sign signature-from-the-future good

# A key that ends before its signature is looked at.
when=20261101T000000
key ended 20d
when=20261120T003000
release "$TODAY" | sign key-expired ended
export_key ended key-expired/key.gpg

# A key that had no end at first: both self-signatures are there, and the newer one counts.
when=20261101T000000
key shortened never
when=20261120T003000
release "$TODAY" | sign key-shortened shortened
g --export shortened >"$home/before.gpg"
when=20261120T004000
g --quick-set-expire "$(fingerprint shortened)" 1d
g --export shortened >"$home/after.gpg"
mkdir -m 700 "$home/other"
for part in after before; do gpg --homedir "$home/other" --batch --quiet --import "$home/$part.gpg"; done
gpg --homedir "$home/other" --batch --export shortened >"$here/key-shortened/key.gpg"

# A revoked key; the signature is older than the revocation.
when=20261101T000000
key revoked never
when=20261120T003000
release "$TODAY" | sign key-revoked revoked
when=20261120T010000
sed 's/^:---/---/' "$home/openpgp-revocs.d/$(fingerprint revoked).rev" | g --import
export_key revoked key-revoked/key.gpg

# Subkeys: one that signs, one that has ended, one that was revoked.
subkey() {
    when=20261101T000000
    g --quick-generate-key "$1 <$1@example.invalid>" rsa2048 cert never
    g --quick-add-key "$(fingerprint "$1")" rsa2048 sign "$2"
    when=20261120T003000
    release "$TODAY" | sign "$1" "$1"
}
subkey signed-by-subkey never
subkey subkey-expired 20d
subkey subkey-revoked never
when=20261120T010000
printf 'key 1\nrevkey\ny\n0\n\ny\nsave\n' |
    g --no-batch --no-tty --command-fd 0 --edit-key "$(fingerprint subkey-revoked)" >/dev/null
for name in signed-by-subkey subkey-expired subkey-revoked; do export_key $name $name/key.gpg; done
