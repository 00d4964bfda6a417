#!/bin/sh
# Which PyTorch runs on every machine of a mixed fleet? Asks for one image that fits all GPUs and the oldest driver.
set -eu
envforge plan pytorch-cuda --driver 550.54.15 \
    --gpu "Tesla V100-SXM2-32GB" --gpu "NVIDIA A100-SXM4-80GB" --gpu "NVIDIA H100 80GB HBM3"
