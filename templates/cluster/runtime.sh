tool() {
    local tool
    for tool in ${ENVFORGE_WITH:-apptainer singularity docker podman}; do
        if command -v "$tool" >/dev/null; then echo "$tool"; return; fi
    done
    fail "$(hostname) has none of: ${ENVFORGE_WITH:-apptainer singularity docker podman}"
}

# The GPUs of the task, as options of the tool.
gpu_options() { # TOOL
    local gpu
    [ -n "$GPUS" ] || return 0
    case $1 in
    apptainer | singularity) options+=(--nv) ;;
    docker) options+=(--ulimit memlock=-1 --gpus "\"device=$GPUS\"") ;;
    podman) for gpu in ${GPUS//,/ }; do options+=(--device "nvidia.com/gpu=$gpu"); done ;;
    esac
}
