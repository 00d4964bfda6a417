#!/bin/sh
# A step of CI: runs the command that follows only if the image is proven for the cluster's GPU and driver.
set -eu
envforge evidence admit ${EVIDENCE:+"--evidence=$EVIDENCE"} "$IMAGE" --key "$KEY" \
    --gpu "${GPU:-NVIDIA H200}" --driver "${DRIVER:-580}"
exec "$@"
