# The kernels of SGLang for the tensors of torch.py, which are one number. FAKE_WRONG=product: the result is another.
import os

import torch


def rmsnorm(x, weight, epsilon):
    assert x.is_on_gpu and weight.is_on_gpu
    return torch.Tensor(1.1 if os.environ.get("FAKE_WRONG") == "product" else 1.0)
