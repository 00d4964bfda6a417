# A CuPy without a GPU, on the arrays of the fake NumPy. What is captured is done when it is launched, and not before. FAKE_WRONG:
# `matmul`, a product is another; `graph`, a launch does nothing.
import contextlib
import os
from types import SimpleNamespace

import numpy

WRONG = os.environ.get("FAKE_WRONG")
captured = []


class Array(numpy.Array):
    def __matmul__(self, other):
        product = super().__matmul__(other)
        product.rows[0][0] += WRONG == "matmul"
        return product


def asarray(array, kind):
    return Array([list(row) for row in array.rows], kind)


def asnumpy(array):
    return numpy.Array(array.rows, array.dtype)


def add(a, b, out):
    def work():
        out[...] = a + b

    captured[-1].append(work) if captured else work()


class Stream(contextlib.nullcontext):
    def __init__(self, non_blocking):
        super().__init__()

    def synchronize(self):
        pass

    def begin_capture(self):
        captured.append([])

    def end_capture(self):
        works = captured.pop()
        return SimpleNamespace(launch=lambda stream: [work() for work in works if WRONG != "graph"])


cuda = SimpleNamespace(Stream=Stream, runtime=SimpleNamespace(getDeviceCount=lambda: 1))
