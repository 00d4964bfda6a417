# Runs in a throwaway container of an image that is to be a base, without network. Prints KEY=VALUE lines, which
# src/base/look.rs reads; a key without a line means: not there.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
say() { [ -z "$2" ] || printf '%s=%s\n' "$1" "$2"; }
# What /etc/os-release leaves out must not come from the environment.
unset ID ID_LIKE VERSION_ID VERSION_CODENAME PRETTY_NAME
[ ! -r /etc/os-release ] || . /etc/os-release
say id "${ID-}"
say like "${ID_LIKE-}"
say version "${VERSION_ID-}"
say codename "${VERSION_CODENAME-}"
say pretty "${PRETTY_NAME-}"
ldd --version 2>/dev/null | while read -r first rest; do
    say glibc "${rest##* }"
    break
done
if [ -x /usr/bin/python3 ]; then
    say python "$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)"
fi
if command -v apt-get >/dev/null && command -v dpkg >/dev/null; then
    say dpkg "$(dpkg --print-architecture)"
fi
for folder in /usr/local/cuda*; do
    [ ! -d "$folder" ] || say cuda "$folder"
done
ldconfig -p 2>/dev/null | while read -r library rest; do
    case $library in libcudart.so.* | libcublas.so.* | libcudnn.so.* | libnccl.so.*) say cuda "${rest##* }" ;; esac
done
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ ! -r "$file" ] || while IFS= read -r line || [ -n "$line" ]; do
        printf 'apt:%s=%s\n' "$file" "$line"
    done <"$file"
done
echo done=yes
