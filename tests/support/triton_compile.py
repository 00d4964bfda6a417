"""Compiles a sum and a product of matrices by Triton for a GPU, named by its compute capability (`12.1`). It needs no GPU."""
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def dot(x, y, z, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)
    at = row[:, None] * BLOCK + row[None, :]
    tl.store(z + at, tl.dot(tl.load(x + at), tl.load(y + at)))


KERNELS = [
    (add, {"x": "*fp32", "y": "*fp32", "z": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 128}),
    (dot, {"x": "*fp16", "y": "*fp16", "z": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 64}),
]

target = GPUTarget("cuda", int(sys.argv[1].replace(".", "")), 32)
for kernel, signature, constants in KERNELS:
    source = triton.compiler.ASTSource(fn=kernel, signature=signature, constexprs=constants)
    made = triton.compile(source, target=target)
    lines = [line for line in made.asm["ptx"].splitlines() if line.startswith((".version", ".target"))]
    print(triton.__version__, kernel.__name__, *lines, len(made.asm["cubin"]), "bytes of machine code")
