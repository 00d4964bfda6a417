# An SGLang without a GPU: its kernels are in sgl_kernel.py.
__version__ = "0.5"
