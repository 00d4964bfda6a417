has() { # RUNTIME
    case $1 in
    pyxis) srun --help 2>/dev/null | grep -q -e --container-image ;; # a plug-in of Slurm
    *) command -v "$1" >/dev/null ;;
    esac
}

tool() {
    local tool
    for tool in ${ENVFORGE_WITH:-apptainer singularity docker podman}; do
        if has "$tool"; then echo "$tool"; return; fi
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
