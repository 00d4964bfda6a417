# What `envforge verify --on` runs on each node, with bash. Before these lines stand its values (nonce, image, digest of the agent, level,
# seconds); after them, the agent in base64. Standard input stays open as long as the caller lives. Its end ends this, but
# not with watched=no, where no caller waits.
#
# Prints one line when a stage begins and one line for the report. Every value is a word; texts are in base64.
umask 077 # On a node of several users nobody else reads an image or starts a program of it.
exec 3<&0
LC_ALL=C
export LC_ALL
work= tool= container= child= watch= code= stage=start
began=$(date +%s)

fail() { echo "error: $*" >&2; exit 1; }

#RUNTIME#

word() { printf %s "$1" | tr -cd 'A-Za-z0-9._:,/+@-' | head -c 200; }
text() { base64 | tr -d '\n'; } # in base64, on one line

# Where this runs.
place() {
    printf 'nonce=%s node=%s host=%s job=%s boot=%s' "$nonce" "$(word "${SLURMD_NODENAME:-}")" "$(word "$(uname -n)")" \
        "$(word "${SLURM_JOB_ID:-}")" "$(word "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)")"
}

stage() { # NAME
    stage=$1
    printf 'envforge-node 1 %s stage=%s .\n' "$(place)" "$1"
}

gpus() {
    timeout -k 2 20 nvidia-smi --query-gpu=uuid,driver_version,vbios_version,name --format=csv,noheader 2>/dev/null | head -c 16384
}

# The one line of the report: how far it came, its code, what the agent and the tool printed.
report() { # [WHY]
    local body why=$1 gpus=
    body=$(head -c 10485760 "$work/lines" 2>/dev/null | gzip -9n | text)
    [ -n "$why" ] || why=$(tail -c 4096 "$work/errors" 2>/dev/null)
    [ ! -f "$work/gpus" ] || gpus=$(text <"$work/gpus")
    printf 'envforge-report 1 %s stage=%s code=%s level=%s kernel=%s runtime=%s agent=%s began=%s seconds=%s gpus=%s why=%s sum=%s body=%s .\n' \
        "$(place)" "$stage" "$code" "$level" "$(word "$(uname -r)")" "$(word "${tool##*/}")" "$agent" "$began" "$(($(date +%s) - began))" \
        "$gpus" "$(printf %s "$why" | text)" "$(printf %s "$body" | sha256sum | head -c 16)" "$body"
}

bounded() { # SECONDS COMMAND...: in the background, so that a signal is handled at once
    timeout -k 5 "$@" 3<&- &
    child=$!
    wait "$child"
    code=$?
    child=
    return "$code"
}

clean() {
    # A second signal, from Slurm or from the end of the input, leaves no container behind; children ignore it, too.
    trap '' TERM INT HUP
    [ -z "$watch" ] || kill "$watch" 2>/dev/null
    [ -z "$child" ] || kill "$child" 2>/dev/null
    # Ending the client does not end its container.
    [ -z "$container" ] || timeout -k 2 20 "$tool" rm -f -v "$container" >/dev/null 2>&1
    # What code of the image left there, too.
    [ -z "$work" ] || { chmod -R u+rwX "$work" 2>/dev/null; rm -rf "$work"; }
}

pull() {
    case ${tool##*/} in
    apptainer | singularity) bounded "$pull_seconds" "$tool" pull --force "$work/image.sif" "docker://$image" ;;
    *) bounded 60 "$tool" image inspect "$image" || bounded "$pull_seconds" "$tool" pull "$image" ;;
    esac >/dev/null 2>"$work/errors"
}

# The agent in the image: no network, no capabilities, a read-only root; nothing of the node but its GPUs.
check() {
    local memory line variables options=() settings=(NCCL_SOCKET_IFNAME=lo XDG_CACHE_HOME=/tmp/.cache CUDA_CACHE_PATH=/tmp/.nv
        TRITON_CACHE_DIR=/tmp/.triton TORCHINDUCTOR_CACHE_DIR=/tmp/.inductor)
    memory=$(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
    gpu_options "${tool##*/}"
    for line in "${settings[@]}"; do options+=(--env "$line"); done
    case ${tool##*/} in
    apptainer | singularity)
        # What a site or the caller sets for their own containers would open this one.
        for line in $(compgen -e); do
            case $line in APPTAINER* | SINGULARITY*) unset "$line" ;; esac
        done
        for line in LD_PRELOAD LD_AUDIT GLIBC_TUNABLES; do options+=(--env "$line="); done
        mkdir "$work/scratch"
        bounded "$check_seconds" "$tool" exec "${options[@]}" --containall --cleanenv --net --network none --workdir "$work/scratch" \
            --pwd / --bind "$work/carried:/envforge:ro" "$work/image.sif" /envforge/agent "${words[@]}"
        ;;
    *)
        # The agent starts without what the image sets for the dynamic linker, and hands it to the checks.
        if ! variables=$(timeout 60 "$tool" image inspect -f '{{range .Config.Env}}{{println .}}{{end}}' "$image" 2>"$work/errors"); then
            code=125
            return 1
        fi
        while IFS= read -r line; do
            case $line in
            LD_*=* | GLIBC_TUNABLES=*) options+=(--env "${line%%=*}=" --env "ENVFORGE_CHILD_$line") ;;
            esac
        done <<<"$variables"
        [ "$tool" = podman ] || options+=(--memory "$((memory / 8 * 7))k")
        container=envforge-verify-$nonce-$(word "${SLURM_PROCID:-0}")
        bounded "$check_seconds" "$tool" run --rm --name "$container" "${options[@]}" --env HOME=/tmp --network none --read-only \
            --log-driver none --no-healthcheck \
            --cap-drop ALL --security-opt no-new-privileges --pids-limit 16384 --shm-size "$((memory / 4))k" \
            --tmpfs "/tmp:rw,exec,nosuid,nodev,mode=1777,size=$((memory / 4))k" --volume "$work/carried:/envforge:ro" \
            --entrypoint /envforge/agent "$image" "${words[@]}"
        ;;
    esac >"$work/lines" 2>"$work/errors"
}

main() {
    local carried
    trap clean EXIT
    trap 'trap "" TERM INT HUP; exit 143' TERM INT HUP
    stage start
    if ! work=$(mktemp -d "${TMPDIR:-/tmp}/envforge-verify.XXXXXX" 2>&1); then
        carried=$work work= code=1
        report "$carried"
        exit 1
    fi
    carried=$work/carried
    mkdir "$carried"
    sed -n '/^\.$/q;p' <&3 | base64 -d >"$carried/agent" 2>"$work/errors"
    printf %s "$expect" | base64 -d >"$carried/expect.txt"
    # The image's user reads these; the folder above stays the caller's.
    chmod 755 "$carried" "$carried/agent"
    chmod 644 "$carried/expect.txt"
    if [ "$(sha256sum <"$carried/agent" | head -c 64)" != "$agent" ]; then
        echo "the agent did not arrive whole in $work" >>"$work/errors"
        code=1
        report
        exit 1
    fi
    # The caller is gone when its end of the pipe is closed.
    if [ "$watched" = yes ]; then
        (while read -r -u 3 _; do :; done; kill -TERM $$) >/dev/null 2>&1 &
        watch=$!
        disown
    fi
    gpus >"$work/gpus"
    GPUS=${SLURM_STEP_GPUS:-${SLURM_JOB_GPUS:-}}
    [ -n "$GPUS" ] || [ ! -s "$work/gpus" ] || GPUS=all
    stage=runtime
    # A container that root starts with these has root's capabilities.
    [ "$(id -u)" != 0 ] || ENVFORGE_WITH=$(printf '%s\n' ${ENVFORGE_WITH:-docker podman} | grep -vE '(^|/)(apptainer|singularity)$' | tr '\n' ' ')
    if [ "$(id -u)" = 0 ] && [ -z "${ENVFORGE_WITH// /}" ]; then
        code=127 tool=
        echo "root's containers of apptainer have root's capabilities: ask as an ordinary user" >>"$work/errors"
    elif tool=$(tool 2>"$work/errors"); then
        stage pull
        if pull; then
            stage check
            check
            [ ! -s "$work/lines" ] || stage=end
        fi
    else
        code=127 tool=
    fi
    report
    exit 0
}
