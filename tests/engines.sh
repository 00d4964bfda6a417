#!/usr/bin/env bash
# On several engines, each with a cache that has nothing but downloads: builds one lock, adds a package, verifies, opens a shell,
# pushes to a registry and pulls back; compares the images and writes the table into docs/src/engines.md.
# Engines beside this machine's own: Docker of Debian 13 and of the testing suite, and Podman of Debian 12 and 13, each in a
# container; two more of Docker of Debian 13 are reached by ssh and by TLS. Then one more whose disk is too small for a build, and shells: on Podman with and without root, on Docker without root, and
# on a Docker that is restarted meanwhile. With ENVFORGE_TEST_SPEC (`pytorch-cuda:2.8-cu128`) only that spec's content, on this machine's engine and on
# Docker of Debian 13; docs/src/engines.md then stays. Needs images of Debian 12 and 13 (BASE_12 and BASE, by default the newest envforge-base of each), the
# mirrors, and Debian's openssh-server and openssl.
# Shells were seen to pass on Docker 26.1.5, Podman 5.4.2 with root (callers 0, 1000, 50000) and without (callers 1000, 50000), and
# Docker 26.1.5 without root (callers 1000, 50000), each on cgroups v1.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
chmod 755 "$work"
tmp=${TMPDIR:-/tmp} # shells mount project folders of the tests, which lie there
names=(eng-docker-13 eng-docker-testing eng-docker-containerd eng-podman-13 eng-podman-rootless eng-docker-rootless eng-podman-12 eng-docker-ssh eng-docker-tls eng-small eng-restarted)
cleanup() {
    docker rm -f "${names[@]}" >/dev/null 2>&1 || true
    docker volume rm "${names[@]}" >/dev/null 2>&1 || true
    [ -z "${sshd:-}" ] || kill "$sshd" 2>/dev/null || true
    [ -n "${KEEP_IMAGES:-}" ] || docker rmi eng-base:12 eng-base:13 eng-12:1 eng-13:1 eng-testing:1 >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap cleanup EXIT

find_base() { # CODENAME
    for image in $(docker images -q envforge-base); do
        docker run --rm --network none "$image" grep -q "$1" /etc/os-release && echo "$image" && return
    done
    echo "no image of Debian $1: set BASE or BASE_12" >&2 && return 1
}
# A tag of its own, so that the tests do not take these containers for envforge's.
docker image inspect eng-base:13 >/dev/null 2>&1 || docker tag "${BASE:-$(find_base trixie)}" eng-base:13
[ -n "${ENVFORGE_TEST_SPEC:-}" ] || docker image inspect eng-base:12 >/dev/null 2>&1 || docker tag "${BASE_12:-$(find_base bookworm)}" eng-base:12

make_image() { # TAG SCRIPT [RELEASE]
    docker image inspect "$1" >/dev/null 2>&1 && return
    docker run --name eng-setup "eng-base:${3:-13}" sh -ec "export DEBIAN_FRONTEND=noninteractive; $2" >"$work/setup.log" 2>&1 ||
        { tail -5 "$work/setup.log"; docker rm eng-setup >/dev/null; return 1; }
    docker commit eng-setup "$1" >/dev/null
    docker rm eng-setup >/dev/null
}
install='apt-get install -y -qq --no-install-recommends socat fuse-overlayfs iptables ca-certificates docker.io'
make_image eng-13:1 "apt-get update -qq; $install podman netavark aardvark-dns nftables runc uidmap slirp4netns passt rootlesskit iproute2"
[ -n "${ENVFORGE_TEST_SPEC:-}" ] || make_image eng-12:1 "apt-get update -qq
    apt-get install -y -qq --no-install-recommends socat fuse-overlayfs iptables ca-certificates \
        podman netavark aardvark-dns nftables runc" 12
# Release files of the testing suite on a mirror that stands still are expired: accepted here, by this option.
[ -n "${ENVFORGE_TEST_SPEC:-}" ] || make_image eng-testing:1 "sources=/etc/apt/sources.list.d/debian.sources
    uri=\$(sed -n 's/^URIs: //p' \$sources | head -1)
    printf 'Types: deb\nURIs: %s\nSuites: testing\nComponents: main\nSigned-By: %s\n' \$uri \\
        /usr/share/keyrings/debian-archive-keyring.gpg >\$sources
    apt-get -o Acquire::Check-Valid-Until=false update -qq; $install"

# The registry of the test is on the loopback address of this machine; each engine finds it on its own, through a socket
# that the test makes.
registry_port=${REGISTRY_PORT:-50555}
relay="socat TCP-LISTEN:$registry_port,bind=127.0.0.1,fork,reuseaddr UNIX-CONNECT:/run/eng/registry.sock &"
mkdir "$work/scripts"
cat >"$work/scripts/dockerd.sh" <<'SH'
exec dockerd -H unix:///run/eng/engine.sock --data-root /var/lib/engine
SH
# Only clients with a certificate get in.
cat >"$work/scripts/tls.sh" <<'SH'
exec dockerd -H unix:///run/eng/engine.sock -H tcp://0.0.0.0:2376 --data-root /var/lib/engine --tlsverify \
    --tlscacert /run/eng/ca.pem --tlscert /run/eng/server.pem --tlskey /run/eng/server.key
SH
# The image store of containerd, which newer Docker engines have by default.
cat >"$work/scripts/containerd.sh" <<'SH'
mkdir -p /etc/docker
echo '{"features":{"containerd-snapshotter":true}}' >/etc/docker/daemon.json
exec dockerd -H unix:///run/eng/engine.sock --data-root /var/lib/engine
SH
# crun refuses mixed cgroups; limits above the container's own are refused too.
cat >"$work/scripts/podman.sh" <<'SH'
mkdir -p /etc/containers
printf '[[registry]]\nlocation = "127.0.0.1:%s"\ninsecure = true\n' "$REGISTRY_PORT" >/etc/containers/registries.conf
printf '[storage]\ndriver = "overlay"\nrunroot = "/run/storage"\ngraphroot = "/var/lib/engine"\n' >/etc/containers/storage.conf
n=$(ulimit -Hn)
printf '[containers]\ndefault_ulimits = ["nofile=%s:%s", "nproc=1024:1024"]\n[engine]\nruntime = "runc"\n' "$n" "$n" >/etc/containers/containers.conf
exec podman system service --time 0 unix:///run/eng/engine.sock
SH
# One for each of two users. Its temporary files must not lie on the container's own root: mounts of it cannot be made read-only.
cat >"$work/scripts/rootless.sh" <<'SH'
mkdir -p /etc/containers
printf '[[registry]]\nlocation = "127.0.0.1:%s"\ninsecure = true\n' "$REGISTRY_PORT" >/etc/containers/registries.conf
printf '[storage]\ndriver = "overlay"\n[storage.options.overlay]\nmount_program = "/usr/bin/fuse-overlayfs"\n' >/etc/containers/storage.conf
n=$(ulimit -Hn)
printf '[containers]\ndefault_ulimits = ["nofile=%s:%s", "nproc=1024:1024"]\n[engine]\nruntime = "runc"\n' "$n" "$n" >/etc/containers/containers.conf
chmod 777 /run/eng
chmod 666 /dev/fuse /dev/net/tun
for id in 1000 50000; do
    useradd -u $id -d /var/lib/engine/$id -s /bin/sh u$id
    mkdir -p /run/user/$id /var/lib/engine/$id
    chown $id:$id /run/user/$id /var/lib/engine/$id
    setpriv --reuid $id --regid $id --clear-groups env USER=u$id HOME=/var/lib/engine/$id TMPDIR=/var/lib/engine/$id \
        XDG_RUNTIME_DIR=/run/user/$id podman system service --time 0 unix:///run/eng/$id.sock &
done
ln -s 50000.sock /run/eng/engine.sock
wait
SH
# The same with Docker. Its bridge is another than the outer engine's, whose address the package index of the tests has.
cat >"$work/scripts/docker-rootless.sh" <<'SH'
chmod 777 /run/eng
chmod 666 /dev/net/tun
for id in 1000 50000; do
    useradd -u $id -d /var/lib/engine/$id -s /bin/sh u$id
    mkdir -p /run/user/$id /var/lib/engine/$id
    chown $id:$id /run/user/$id /var/lib/engine/$id
    setpriv --reuid $id --regid $id --clear-groups env USER=u$id HOME=/var/lib/engine/$id TMPDIR=/var/lib/engine/$id \
        XDG_RUNTIME_DIR=/run/user/$id sh /usr/share/docker.io/contrib/dockerd-rootless.sh -H unix:///run/eng/$id.sock \
        --bip 192.168.250.1/24 &
    # The way to the registry, inside the network of its own that each has.
    (
        until [ -s /run/user/$id/docker.pid ]; do sleep 1; done
        exec nsenter -n -t "$(cat /run/user/$id/docker.pid)" \
            socat "TCP-LISTEN:$REGISTRY_PORT,bind=127.0.0.1,fork,reuseaddr" UNIX-CONNECT:/run/eng/registry.sock
    ) &
done
ln -s 50000.sock /run/eng/engine.sock
wait
SH
# A daemon that ends is started again; its containers run on meanwhile.
cat >"$work/scripts/lasting.sh" <<'SH'
while :; do
    rm -f /var/run/docker.pid
    dockerd -H unix:///run/eng/engine.sock --data-root /var/lib/engine --live-restore
    sleep 1
done
SH
start() { # NAME IMAGE SCRIPT [OPTION...]: without a relay in this machine's network, where the port is the registry's; the engine's data is on a volume, unless an option puts it elsewhere
    mkdir -p "$work/$1"
    local data=(-v "$1:/var/lib/engine")
    [ $# -eq 3 ] || data=("${@:4}")
    local relay=$relay
    [[ " ${data[*]} " != *" --network host "* ]] || relay=
    docker run -d --name "$1" --cap-add SYS_ADMIN --cap-add NET_ADMIN --cap-add SYS_PTRACE --cap-add SYS_MODULE \
        --cap-add MKNOD --cap-add NET_RAW --cap-add SETFCAP --cap-add SYS_CHROOT --cap-add SYSLOG --cap-add IPC_LOCK \
        --cgroupns host -v /sys/fs/cgroup:/sys/fs/cgroup --security-opt seccomp=unconfined \
        --security-opt systempaths=unconfined --device /dev/fuse -e "REGISTRY_PORT=$registry_port" "${data[@]}" -v "$work/$1:/run/eng" -v "$tmp:$tmp" \
        -v "$work/scripts:/scripts:ro" "$2" sh -c "${relay}exec sh /scripts/$3" >/dev/null
    for _ in $(seq 60); do
        docker -H "unix://$work/$1/engine.sock" version >/dev/null 2>&1 && return
        sleep 1
    done
    docker logs --tail 5 "$1" && return 1
}
start eng-docker-13 eng-13:1 dockerd.sh
if [ -n "${ENVFORGE_TEST_SPEC:-}" ]; then
    ENVFORGE_TEST_REGISTRY_PORT=$registry_port ENVFORGE_TEST_TABLE="$work/table.md" \
        ENVFORGE_TEST_ENGINES="Docker=${DOCKER_HOST:-unix:///var/run/docker.sock} Docker_of_Debian_13=unix://$work/eng-docker-13/engine.sock" \
        cargo test --test docker -- --ignored --exact \
        engine_table::one_lock_gives_the_same_image_on_every_engine --nocapture
    cat "$work/table.md"
    exit
fi
start eng-docker-testing eng-testing:1 dockerd.sh
start eng-docker-containerd eng-testing:1 containerd.sh
start eng-podman-13 eng-13:1 podman.sh
start eng-podman-12 eng-12:1 podman.sh
start eng-docker-ssh eng-13:1 dockerd.sh
mkdir "$work/eng-docker-tls"
(
    cd "$work/eng-docker-tls"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.pem -subj /CN=ca
    for name in server client; do
        openssl req -newkey rsa:2048 -nodes -keyout $name.key -out $name.csr -subj /CN=$name
        printf 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n' >$name.ext
        openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile $name.ext -out $name.pem
    done
    mkdir certs
    cp ca.pem certs/ && cp client.pem certs/cert.pem && cp client.key certs/key.pem
) 2>"$work/openssl.log" || true
[ -s "$work/eng-docker-tls/certs/key.pem" ] || { cat "$work/openssl.log"; exit 1; }
tls_port=${TLS_PORT:-50556}
start eng-docker-tls eng-13:1 tls.sh -v eng-docker-tls:/var/lib/engine -p "127.0.0.1:$tls_port:2376"
# An ssh server for this user alone. `ssh` takes its settings from the home of the password file, so a wrapper gives it others.
ssh_port=${SSH_PORT:-50557}
mkdir "$work/ssh"
ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/key"
printf 'ListenAddress 127.0.0.1:%s\nHostKey %s/host\nAuthorizedKeysFile %s/key.pub\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nPidFile none\nPermitRootLogin yes\nMaxStartups 100\n' \
    "$ssh_port" "$work/ssh" "$work/ssh" >"$work/ssh/config"
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
/usr/sbin/sshd -D -e -f "$work/ssh/config" 2>"$work/ssh/log" &
sshd=$!
mkdir "$work/ssh/bin"
printf '#!/bin/sh\nexec /usr/bin/ssh -F none -i %s/key -o IdentitiesOnly=yes -o UserKnownHostsFile=%s/known -o StrictHostKeyChecking=accept-new "$@"\n' \
    "$work/ssh" "$work/ssh" >"$work/ssh/bin/ssh"
chmod 755 "$work/ssh/bin/ssh"
start eng-podman-rootless eng-13:1 rootless.sh -v eng-podman-rootless:/var/lib/engine --device /dev/net/tun
# In this machine's network, so that the ports of its shells are this machine's.
start eng-docker-rootless eng-13:1 docker-rootless.sh -v eng-docker-rootless:/var/lib/engine --device /dev/net/tun --network host
start eng-restarted eng-13:1 lasting.sh
start eng-small eng-13:1 dockerd.sh --tmpfs "/var/lib/engine:exec,size=${SMALL:-700m}"
# The callers of the tests have ids of their own.
chmod 666 "$work"/eng-podman-*/*.sock "$work"/eng-docker-rootless/*.sock

status=0
own=${DOCKER_HOST:-unix:///var/run/docker.sock}
export ENVFORGE_TEST_REGISTRY_PORT=$registry_port
PATH="$work/ssh/bin:$PATH" ENVFORGE_TEST_TABLE="$work/table.md" ENVFORGE_TEST_ENGINES="Docker=$own \
Docker_of_Debian_13=unix://$work/eng-docker-13/engine.sock Docker_of_testing=unix://$work/eng-docker-testing/engine.sock \
Docker_with_containerd's_store=unix://$work/eng-docker-containerd/engine.sock Podman=unix://$work/eng-podman-13/engine.sock \
Podman_without_root=unix://$work/eng-podman-rootless/engine.sock \
Podman_of_Debian_12=unix://$work/eng-podman-12/engine.sock \
Docker_without_root=unix://$work/eng-docker-rootless/engine.sock \
Docker_over_ssh=ssh://127.0.0.1:$ssh_port$work/eng-docker-ssh/engine.sock \
Docker_over_TLS=tcp://127.0.0.1:$tls_port#$work/eng-docker-tls/certs" \
    cargo test --test docker -- --ignored --exact \
    engine_table::one_lock_gives_the_same_image_on_every_engine --nocapture || status=$?
ENVFORGE_TEST_SMALL_ENGINE="unix://$work/eng-small/engine.sock" \
    ENVFORGE_TEST_GROW="docker exec eng-small mount -o remount,size=8g /var/lib/engine" \
    cargo test --test docker -- --ignored --exact \
    engines::full_engine_disk_is_reported_and_next_build_works --nocapture || status=$?
ENVFORGE_TEST_SHELL_ENGINES="0,1000,50000=unix://$work/eng-podman-13/engine.sock \
1000=unix://$work/eng-podman-rootless/1000.sock 50000=unix://$work/eng-podman-rootless/50000.sock \
1000:0=unix://$work/eng-docker-rootless/1000.sock 50000:0=unix://$work/eng-docker-rootless/50000.sock" \
    cargo test --test docker -- --ignored --exact \
    engines::shell_files_belong_to_the_caller_on_every_engine --nocapture || status=$?
ENVFORGE_TEST_ROOTLESS_DOCKER="1000=unix://$work/eng-docker-rootless/1000.sock" \
    cargo test --test docker -- --ignored --exact \
    engines::rootless_docker_serves_a_shell_and_reports_its_limits --nocapture || status=$?
ENVFORGE_TEST_RESTARTED_ENGINE="unix://$work/eng-restarted/engine.sock" \
    ENVFORGE_TEST_KILL_DAEMON="docker exec eng-restarted sh -c 'kill -KILL \$(cat /var/run/docker.pid)'" \
    ENVFORGE_TEST_RESTART_MACHINE="docker restart -t 1 eng-restarted" \
    cargo test --test docker -- --ignored --exact \
    engines::shells_report_their_state_after_an_engine_restart --nocapture || status=$?
[ -s "$work/table.md" ] || exit "$status"
cat "$work/table.md"
sed -i -e "/<!-- engines -->/,/<!-- \/engines -->/{//!d}" -e "/<!-- engines -->/r $work/table.md" docs/src/engines.md
exit "$status"
