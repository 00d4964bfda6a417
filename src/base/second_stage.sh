# Makes an installed system of unpacked files, in the order debootstrap's second stage has: what other packages'
# scripts need comes first. Runs in a throwaway container; $1 is the folder that holds NAME.deb of every package.
set -eu
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C.UTF-8 HOME=/root
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
umask 022
cd "$1"
# The container is thrown away if anything fails, so nothing needs to reach the disk early.
dpkg_do() { dpkg --force-depends --force-unsafe-io "$@" </dev/null; }

# dpkg writes and syncs a small file at every step; on a disk that others use, that is half of the time.
mkdir /dev/shm/updates
rmdir /var/lib/dpkg/updates
ln -s /dev/shm/updates /var/lib/dpkg/updates

/sbin/ldconfig
ln -sf mawk /usr/bin/awk
dpkg_do --install base-passwd.deb
dpkg_do --install base-files.deb
# Scripts of the next packages ask for a dpkg that is installed.
printf 'Package: dpkg\nVersion: %s\nMaintainer: unknown\nStatus: install ok installed\n\n' \
    "$(dpkg-deb -f dpkg.deb Version)" >>/var/lib/dpkg/status
touch /var/lib/dpkg/info/dpkg.list
dpkg_do --install dpkg.deb
dpkg_do --install libc6.deb
dpkg_do --install perl-base.deb
rm /usr/bin/awk
dpkg_do --install mawk.deb
dpkg_do --install debconf.deb
dpkg_do --unpack ./*.deb
dpkg_do --configure --pending --force-configure-any

cd /
rm -r "$1" /var/lib/dpkg/updates
mkdir /var/lib/dpkg/updates
audit=$(dpkg --audit)
if [ -n "$audit" ]; then
    printf '%s\n' "$audit" >&2
    exit 1
fi
