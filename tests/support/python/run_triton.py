# The Triton kernel of torch_gpu.py on whole numbers, by the fake Triton: prints how many elements are wrong.
import random
import sys

import torch_gpu
import triton

m, n, k, tile = 64, 32, 96, 32
chance = random.Random(1)
a, b = ([chance.randrange(-8, 9) for _ in range(rows * columns)] for rows, columns in ((m, k), (k, n)))
c = [None] * (m * n)
triton.jit(torch_gpu.triton_product)[(m // tile, n // tile)](a, b, c, m, n, k, tile=tile)
right = [sum(a[i * k + l] * b[l * n + j] for l in range(k)) for i in range(m) for j in range(n)]
print(sum(x != y for x, y in zip(c, right)), "of", m * n)
