#!/bin/sh
# Slurm's TaskProlog: refuses every task on this node unless the image named in /etc/envforge/admit is proven for its GPUs and driver. It does
# not know which image a task starts. It runs as the user of the job, before each task; not with pyxis (`srun --container-image`), which runs it
# inside the container. A refusal ends the task and leaves the node idle. The image is in a file that root alone writes, as this one: nothing here comes from
# the job's variables.
ADMIT=/etc/envforge/admit
KEY=/etc/envforge/keys/gpu-lab.pub
EVIDENCE=                        # a file of `envforge evidence IMAGE --save FILE`, for nodes that reach no registry
ENVFORGE=/usr/local/bin/envforge
PATH=/usr/bin:/bin
[ -f "$ADMIT" ] || exit 0        # Nothing is asked of this node.
read -r image <"$ADMIT" || exit 2
# Its own time limit: a registry that hangs holds up a job for half a minute, not for ever.
said=$(env -i PATH="$PATH" HOME=/nonexistent timeout -k 5 30 "$ENVFORGE" evidence admit ${EVIDENCE:+"--evidence=$EVIDENCE"} "$image" \
    --here --key "$KEY" 2>&1)
code=$?
[ "$code" = 0 ] && exit 0
# Slurm shows what begins with `print` to the user, a line each.
echo "$said" | sed "s/^/print $(uname -n): /"
exit "$code"
