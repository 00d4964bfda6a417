# Installs the locked .deb files offline, makes the user, and leaves nothing that differs from build to build.
# With the argument `more`: installs what the user added on top, and changes nothing that lies below.
set -eu
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C.UTF-8 PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
umask 022

more=${1:-}

if [ -z "$more" ]; then
# Documentation, manuals and translations stay out; licences stay in.
cat >/etc/dpkg/dpkg.cfg.d/envforge <<'DPKG'
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/man/*
path-exclude /usr/share/info/*
path-exclude /usr/share/locale/*
path-exclude /usr/share/lintian/*
DPKG
fi

# apt checks that the set is complete and orders it; it has no lists, so it can fetch nothing else.
mkdir -p /tmp/apt-log
: >/tmp/before
apt-get install --yes --no-install-recommends --allow-downgrades ${more:+--no-remove} \
    -o Dpkg::Options::=--force-unsafe-io -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Dir::Log=/tmp/apt-log \
    /run/envforge/debs/*.deb </dev/null

if [ -z "$more" ]; then
    # Any user id works; 1000 is only the default. A base may bring a user of that id or name (Ubuntu 24.04 does).
    # What cannot be removed, useradd names.
    for user in dev "$(getent passwd 1000 | cut -d: -f1)"; do
        if [ -n "$user" ] && getent passwd "$user" >/dev/null; then userdel --remove "$user" 2>/dev/null || true; fi
    done
    for group in dev "$(getent group 1000 | cut -d: -f1)"; do
        if [ -n "$group" ] && getent group "$group" >/dev/null; then groupdel "$group" || true; fi
    done
    groupadd --gid 1000 dev
    useradd --uid 1000 --gid 1000 --create-home --shell /bin/bash --comment "" dev
    mkdir -p /workspace /opt/envforge
    # Whoever runs the image may work here when nothing is mounted.
    chmod 1777 /workspace
fi

# Debian's byte code carries file times; this one does not, and is never checked against them.
if [ -z "$more" ]; then
    find /usr/lib/python3* -name __pycache__ -prune -exec rm -rf {} +
else
    find /usr/lib/python3* -name '*.pyc' -newer /tmp/before -delete
fi
python3 /run/envforge/compile.py /usr/lib/python3*

# A host key made here would be shared by every container of this image.
rm -f /etc/ssh/ssh_host_*
# Logs, caches, backups, ids and dates.
find /var/log -type f -delete
rm -rf /tmp/apt-log /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/aux-cache /var/cache/debconf/*-old \
    /var/lib/dpkg/*-old /var/lib/dbus/machine-id /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- \
    /etc/subuid- /etc/subgid- /etc/.pwd.lock /root/.cache /var/tmp/* /tmp/*
[ ! -e /etc/machine-id ] || : >/etc/machine-id
sed -i -E 's/^([^:]*:[^:]*):[0-9]*:/\1:0:/; s/^([^:]*:[!*][^:]*):0:/\1::/' /etc/shadow
