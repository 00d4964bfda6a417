#!/usr/bin/env bash
# Runs a command against a Docker daemon of its own that has the overlay2 storage driver, as most of them have:
#
#     tests/bench/overlay2.sh python3 tests/bench/measure.py pytorch-cuda:2.8-cu128
#
# Needs root and dockerd. The daemon beside this machine's own has its own bridge, folders and pid; all of it is removed at the end.
# STORAGE_DRIVER names another driver, for example vfs. ENGINE=2, up to 9, is another daemon next to the first, with nothing in common.
set -euo pipefail
number=${ENGINE:-1}
bridge=envforge-bench$number subnet=172.31.8$number
work=/tmp/envforge-overlay2-$number
# One of each number at a time: a second one waits until bridge and rules of the first are gone.
exec 9>"$work.lock"
flock 9
root=${OVERLAY2_ROOT:-/var/lib/envforge-bench-$number}
# An engine inside a container of this one has a bridge with a larger MTU.
clamp="-p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu"
rules=("POSTROUTING -t nat -s $subnet.0/24 ! -o $bridge -j MASQUERADE" "FORWARD -i $bridge -j ACCEPT" "FORWARD -o $bridge -j ACCEPT"
    "FORWARD -t mangle -i $bridge $clamp" "FORWARD -t mangle -o $bridge $clamp")
cleanup() {
    pid=$(cat "$work/pid" 2>/dev/null || true)
    # Not a process that has the number of a daemon that is gone.
    runs() { [ -n "$pid" ] && grep -qs "$work/" "/proc/$pid/cmdline"; }
    if runs; then
        kill "$pid"
        for _ in $(seq 300); do runs || break; sleep 0.2; done
        # It waits for containers that do not end.
        ! runs || { echo "dockerd $number does not end within a minute: killed"; kill -KILL "$pid"; pkill -KILL -f "^[^ ]*containerd[^ ]* .*$work/" || true; sleep 1; }
    fi
    for rule in "${rules[@]}"; do iptables -w -D $rule 2>/dev/null || true; done
    ip link del "$bridge" 2>/dev/null || true
    # Networks of containers, and layers of those that a killed command left.
    awk -v work="$work/" -v root="$root/" 'index($2, work) == 1 || index($2 "/", root) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount
    rm -rf "$work"
    [ -n "${OVERLAY2_ROOT:-}" ] || rm -rf "$root"
}
# What a killed one left.
cleanup
trap cleanup EXIT
# Other users reach the socket, as with any engine.
mkdir -m 711 "$work"

ip link add "$bridge" mtu 1400 type bridge
ip addr add "$subnet.1/24" dev "$bridge"
ip link set "$bridge" up
for rule in "${rules[@]}"; do iptables -w -I $rule; done
echo '{}' >"$work/daemon.json"
# Never --bridge none: it takes the bridge of the daemon beside it away.
setsid dockerd --config-file "$work/daemon.json" --host "unix://$work/docker.sock" --data-root "$root" --exec-root "$work/exec" \
    --pidfile "$work/pid" --bridge "$bridge" --mtu 1400 --iptables=false --ip-masq=false --storage-driver "${STORAGE_DRIVER:-overlay2}" \
    >"$work/log" 2>&1 9>&- &
daemon=$!
export DOCKER_HOST=unix://$work/docker.sock
# A busy machine starts it slowly; one that cannot start ends by itself.
for _ in $(seq 600); do
    timeout 60 docker info >/dev/null 2>&1 && break
    kill -0 "$daemon" 2>/dev/null || break
    sleep 0.5
done
timeout 60 docker info >/dev/null 2>&1 || { tail -5 "$work/log"; exit 1; }
"$@" 9>&-
