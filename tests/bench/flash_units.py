#!/usr/bin/env python3
"""Compiles three units of flash-attn in a devel image, for one GPU target, and computes the whole build from them.

    tests/bench/flash_units.py IMAGE flash_attn-2.8.3.post2.tar.gz [sm_80]

A forward, a backward and a split unit, one after the other, without network; prints the seconds and the memory of the largest
process of each. The whole has 24 units of each kind. Prints a Markdown table for docs/src/benchmarks.md.
"""
import json
import subprocess
import sys

UNITS = ["flash_fwd_hdim128_bf16_causal", "flash_bwd_hdim128_bf16_causal", "flash_fwd_split_hdim128_bf16_causal"]
EACH = 24
INSIDE = """
import json, pathlib, resource, subprocess, sys, sysconfig, tarfile, time
import torch
from torch.utils.cpp_extension import include_paths
tarfile.open("/source.tar.gz").extractall("/tmp/source")
(root,) = pathlib.Path("/tmp/source").iterdir()
includes = [root / "csrc/flash_attn", root / "csrc/flash_attn/src", root / "csrc/cutlass/include", *include_paths(), sysconfig.get_path("include")]
flags = ["-O3", "-std=c++20", "--expt-relaxed-constexpr", "--expt-extended-lambda", "--use_fast_math",
    "-Xcompiler", "-fPIC", "-DTORCH_EXTENSION_NAME=flash_attn_2_cuda", *(f"-U__CUDA_NO_{name}__" for name in
    ("HALF_OPERATORS", "HALF_CONVERSIONS", "HALF2_OPERATORS", "BFLOAT16_CONVERSIONS"))]
target = sys.argv[1].removeprefix("sm_")
for unit in sys.argv[2:]:
    start = time.monotonic()
    subprocess.run(["nvcc", *flags, "-gencode", f"arch=compute_{target},code=sm_{target}", *(f"-I{path}" for path in includes), "-c",
        root / f"csrc/flash_attn/src/{unit}_sm80.cu", "-o", "/tmp/unit.o"], check=True)
    # Of the largest process so far.
    print(json.dumps([unit, time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024]), flush=True)
"""


def main():
    image, archive, *target = sys.argv[1:]
    command = ["docker", "run", "--rm", "-i", "--network", "none", "-v", f"{archive}:/source.tar.gz:ro", image]
    command += ["python", "-", *(target or ["sm_80"]), *UNITS]
    output = subprocess.run(command, input=INSIDE, stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("[")]
    print("| unit | seconds | memory |\n|---|---|---|")
    for unit, seconds, memory in rows:
        print(f"| {unit} | {seconds:.0f} s | {memory / 1e9:.1f} GB |")
    whole = EACH * sum(seconds for _, seconds, _ in rows)
    print(f"| {EACH} of each, one at a time (computed) | {whole / 60:.0f} min |  |")


main()
