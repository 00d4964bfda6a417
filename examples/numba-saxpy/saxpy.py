"""y = a x + y as a CUDA kernel in Python. Without a GPU, Numba's simulator runs the same kernel: NUMBA_ENABLE_CUDASIM=1."""
import numpy
from numba import config, cuda


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


n = 1000
x, y = numpy.arange(n, dtype=numpy.float32), numpy.ones(n, dtype=numpy.float32)
expected = 2 * x + y
if config.ENABLE_CUDASIM:
    print("simulated: the GPU part was not run")
elif not cuda.is_available():
    raise SystemExit("no GPU: NUMBA_ENABLE_CUDASIM=1 runs the kernel in a simulator")
on_device = cuda.to_device(y)
saxpy[(n + 127) // 128, 128](numpy.float32(2), cuda.to_device(x), on_device)
print("equals NumPy:", numpy.array_equal(on_device.copy_to_host(), expected))
