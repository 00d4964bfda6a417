"""Builds a C++ extension, with its CUDA kernel where nvcc is (the devel flavour), and compares it with torch."""
import os
import shutil

import torch
from torch.utils.cpp_extension import load

here = os.path.dirname(os.path.abspath(__file__))
nvcc = shutil.which("nvcc") is not None
if nvcc and not torch.cuda.is_available():
    # Without a GPU torch cannot ask what to compile for.
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
sources = ["squares.cpp"] + (["squares.cu"] if nvcc else [])
module = load(
    name="squares",
    sources=[os.path.join(here, name) for name in sources],
    extra_cflags=["-DWITH_CUDA"] if nvcc else [],
    with_cuda=nvcc,
)
x = torch.arange(10_000, dtype=torch.float32)
print("CPU equals torch:", torch.equal(module.squares(x), x * x))
print("kernel compiled by nvcc:", nvcc)
if torch.cuda.is_available() and nvcc:
    print("GPU equals torch:", torch.equal(module.squares(x.cuda()), x.cuda() * x.cuda()))
else:
    print("no GPU or no nvcc: the GPU part was not run")
