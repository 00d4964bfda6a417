# A Warp without a GPU: a launch runs the kernel for one thread after the other. FAKE_WRONG=product: the last one does not run.
import os

float32 = "float32"
thread = 0


class Array(list):
    def list(self):
        return list(self)


def array(values=(), dtype=None, device=None):
    return Array(values)


def zeros(count, dtype=None, device=None):
    return Array([0.0] * count)


def kernel(function):
    return function


def tid():
    return thread


def atomic_add(target, at, value):
    target[at] += value


def init():
    pass


def synchronize():
    pass


def is_cuda_available():
    return os.environ.get("FAKE_COUNT") != "0"


def launch(function, dim, inputs, device):
    global thread
    for thread in range(dim - (os.environ.get("FAKE_WRONG") == "product")):
        function(*inputs)
