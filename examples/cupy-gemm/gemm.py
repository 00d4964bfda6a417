"""A product of matrices by CuPy against NumPy's: whole numbers, so equal bit for bit."""
import cupy
import numpy

n = 512
a = (numpy.arange(n * n).reshape(n, n) % 7 - 3).astype(numpy.float32)
b = (numpy.arange(n * n).reshape(n, n) % 5 - 2).astype(numpy.float32)
expected = a @ b
print("NumPy: whole numbers:", numpy.array_equal(expected, a.astype(numpy.int64) @ b.astype(numpy.int64)))
try:
    gpus = cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError:
    gpus = 0
if gpus:
    product = cupy.asarray(a) @ cupy.asarray(b)
    print("CuPy equals NumPy:", numpy.array_equal(cupy.asnumpy(product), expected))
else:
    print("no GPU: CuPy needs one, the GPU part was not run")
