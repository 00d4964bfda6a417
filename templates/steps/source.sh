# Builds one wheel of the archive in /run/envforge/source (archive, environment, patches in their order) and puts it
# into /wheels. A compiler that ran out of memory is told apart from one that found a mistake: its last line says so.
set -eu
umask 022
export HOME=/root PATH="/usr/lib/ccache:/opt/env/bin:/usr/local/cuda/bin:$PATH" CUDA_HOME=/usr/local/cuda \
    CCACHE_DIR=/run/envforge/ccache UV_NO_CONFIG=1 UV_OFFLINE=1 UV_CACHE_DIR=/tmp/uv-cache UV_PYTHON_DOWNLOADS=never
. /run/envforge/source/environment
mkdir /tmp/source
if ! tar -xf /run/envforge/source/archive -C /tmp/source --strip-components=1 --no-same-owner 2>/tmp/log; then
    # Some source distributions are zip archives.
    python3 -m zipfile -e /run/envforge/source/archive /tmp/unzipped 2>/dev/null || { cat /tmp/log; exit 1; }
    mv /tmp/unzipped/*/* /tmp/source
fi
for patch in /run/envforge/source/patches/*.py; do
    if [ -e "$patch" ]; then python3 -B "$patch" /tmp/source; fi
done
cd /tmp/source
# What links against the driver finds it on the machine that runs it; here an empty library of its name stands in.
driver=/usr/local/cuda/lib64/stubs/libcuda.so
if [ ! -e "$driver" ]; then
    mkdir -p "${driver%/*}"
    gcc -shared -Wl,-soname,libcuda.so.1 -o "$driver" -x c /dev/null
fi
rm -f /tmp/failed
{
    /run/envforge/uv build --wheel --no-build-isolation --python /opt/env/bin/python --out-dir /wheels . 2>&1 ||
        echo failed >/tmp/failed
} | tee /tmp/log
if [ -e /tmp/failed ]; then
    if grep -Eq 'Killed|due to signal 9|annot allocate memory|virtual memory exhausted|std::bad_alloc|ut of memory allocating' /tmp/log; then
        echo "envforge: a compiler ran out of memory"
    fi
    exit 1
fi
cd /
rm -rf /tmp/source /tmp/uv-cache /tmp/log
