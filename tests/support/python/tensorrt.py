# A TensorRT without a GPU: a network is a function of its inputs, and memory of the CUDA runtime is the processor's. FAKE_WRONG=product: one
# element is another.
import ctypes
import glob
import os
from types import SimpleNamespace

import numpy

__version__ = "8.6.0"
float32 = "float32"
blocks = {}


def allocate(pointer, size):
    block = ctypes.create_string_buffer(size.value)
    pointer._obj.value = ctypes.addressof(block)
    blocks[pointer._obj.value] = block
    return 0


def copy(to, source, size, kind):
    ctypes.memmove(to, source, size.value)
    return 0


def free(pointer):
    del blocks[pointer.value]
    return 0


glob.glob = lambda pattern: ["libcudart.so.0"]
ctypes.CDLL = lambda name: SimpleNamespace(cudaMalloc=allocate, cudaMemcpy=copy, cudaFree=free)


def layer(result):
    return SimpleNamespace(get_output=lambda at: result)


class Network:
    def __init__(self):
        self.shapes = []

    def add_input(self, name, kind, shape):
        at = len(self.shapes)
        self.shapes.append(shape)
        return lambda arrays: arrays[at]

    def add_matrix_multiply(self, left, left_operation, right, right_operation):
        return layer(lambda arrays: left(arrays) @ right(arrays))

    def add_activation(self, source, kind):
        return layer(lambda arrays: numpy.maximum(source(arrays), 0))

    def mark_output(self, tensor):
        self.output = tensor

    def create_execution_context(self):
        return self

    def execute_v2(self, pointers):
        arrays = []
        for pointer, (rows, columns) in zip(pointers, self.shapes):
            values = (ctypes.c_float * (rows * columns)).from_address(pointer)
            arrays.append(numpy.array([values[row * columns : (row + 1) * columns] for row in range(rows)], dtype=float32))
        found = self.output(arrays)
        found[0, 0] += os.environ.get("FAKE_WRONG") == "product"
        values = [value for row in found.tolist() for value in row]
        ctypes.memmove(pointers[-1], (ctypes.c_float * len(values))(*values), 4 * len(values))
        return True


class Builder:
    def __init__(self, logger):
        if os.environ.get("FAKE_COUNT") == "0":
            raise TypeError("pybind11::init(): factory function returned nullptr")

    def create_network(self, flags):
        return Network()

    def create_builder_config(self):
        return None

    def build_serialized_network(self, network, config):
        return network


class Logger:
    ERROR = 1

    def __init__(self, level):
        pass


class Runtime:
    def __init__(self, logger):
        pass

    def deserialize_cuda_engine(self, plan):
        return plan


NetworkDefinitionCreationFlag = SimpleNamespace(EXPLICIT_BATCH=0)
MatrixOperation = SimpleNamespace(NONE=0)
ActivationType = SimpleNamespace(RELU=0)
