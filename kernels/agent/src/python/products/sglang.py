# SGLang: its kernels are those of the package sgl-kernel, from 0.4 on sglang-kernel, which is the module sgl_kernel. The import of both wants a
# driver: without a GPU the versions and the library of the kernels are read.


def facts():
    import torch

    say("version", version("sglang"))
    version("sglang-kernel", "sgl-kernel")
    of_torch(torch)


def kernel():
    import sgl_kernel
    import sglang
    import torch

    need(torch.cuda.is_available(), "PyTorch sees no GPU")
    torch.manual_seed(7)
    x = torch.randn(64, 512, dtype=torch.float16)
    weight = torch.randn(512, dtype=torch.float16)
    found = sgl_kernel.rmsnorm(x.cuda(), weight.cuda(), 1e-6).cpu().double()
    wide = x.double()
    right = wide / (wide.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * weight.double()
    error = float((found - right).norm() / right.norm())
    need(error < 2e-3, f"rmsnorm: relative error {error:.1e}")
    return f"rmsnorm of SGLang {sglang.__version__} in half precision, within {error:.1e}"
