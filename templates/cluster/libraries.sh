#!/bin/sh
# Where `apptainer --nv` puts the libraries of the driver. What `--env` gives is set after this file.
LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/.singularity.d/libs"
export LD_LIBRARY_PATH
