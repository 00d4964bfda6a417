"""Shows that the fake libcuda is as strict as a real driver: each line is a mistake that a program could make, and what came of it.

usage: strict_driver.py libcuda.so.1"""
import ctypes
import sys

cuda = ctypes.CDLL(sys.argv[1])
SIZE = 1 << 16


def pointer(kind=ctypes.c_uint64):
    return kind(0)


def allocated(size=SIZE):
    address = pointer()
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    return address


def context(device):
    handle = pointer(ctypes.c_void_p)
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), device) == 0
    return handle


def download(address, size=SIZE):
    data = (ctypes.c_ubyte * size)()
    return cuda.cuMemcpyDtoH_v2(data, address, ctypes.c_size_t(size)), bytes(data)


def fill(address, byte, size=SIZE):
    return cuda.cuMemsetD8_v2(address, ctypes.c_ubyte(byte), ctypes.c_size_t(size))


def kernel(name):
    module, function = pointer(ctypes.c_void_p), pointer(ctypes.c_void_p)
    assert cuda.cuModuleLoadData(ctypes.byref(module), b"fake") == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, name) == 0
    return function


def launch(function, grid, block, *values, stream=None):
    parameters = (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in values])
    return cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, parameters, None)


def invert(function, address, words, grid, stream=None):
    return launch(function, grid, 256, address, ctypes.c_uint64(words), stream=stream)


assert cuda.cuInit(0) == 0
say = lambda name, value: print(f"{name}: {value}")
say("memory without a context", cuda.cuMemAlloc_v2(ctypes.byref(pointer()), ctypes.c_size_t(SIZE)))
one, two = context(0), context(1)
assert cuda.cuCtxSetCurrent(one) == 0
memory = allocated()
say("fresh memory is zero", not any(download(memory)[1]))
say("more memory than is free", cuda.cuMemAlloc_v2(ctypes.byref(pointer()), ctypes.c_size_t(1 << 40)))
say("beyond the end", fill(memory, 0, SIZE + 1))
assert fill(memory, 0) == 0
flip = kernel(b"pattern_invert")

# One block covers all words: the kernel steps by the grid.
assert invert(flip, memory, SIZE // 8, 1) == 0
say("a copy waits for the default stream", set(download(memory)[1]) == {255})
stream = pointer(ctypes.c_void_p)
assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
assert invert(flip, memory, SIZE // 8, 1, stream) == 0
say("a copy waits for another stream", set(download(memory)[1]) == {0})
assert cuda.cuCtxSynchronize() == 0
say("synchronized", set(download(memory)[1]) == {0})
# Nothing orders the default stream and another one: the fill is done last.
assert fill(memory, 7) == 0 and invert(flip, memory, SIZE // 8, 1, stream) == 0
assert cuda.cuCtxSynchronize() == 0
say("a fill and a stream in order", set(download(memory)[1]) == {248})
say("too many threads", launch(kernel(b"sum_u32"), 1, 512, memory, memory, ctypes.c_uint64(1)))
say("too large a block", launch(flip, 1, 2048, memory, ctypes.c_uint64(1)))

assert cuda.cuCtxSetCurrent(two) == 0
say("memory of another context", fill(memory, 0))
say("a kernel of another context", invert(flip, memory, 8, 1))
say("a stream of another context", launch(kernel(b"pattern_invert"), 1, 256, allocated(), ctypes.c_uint64(8), stream=stream))
say("a kernel on memory of another context", launch(kernel(b"pattern_invert"), 1, 256, memory, ctypes.c_uint64(8)))
say("waiting for it", cuda.cuCtxSynchronize())
say("waiting again", cuda.cuCtxSynchronize())
