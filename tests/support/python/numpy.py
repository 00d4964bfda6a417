# As much of NumPy as others_gpu.py needs for a matrix product of whole numbers.
import random as chance
from types import SimpleNamespace

float64 = "float64"


class Array:
    def __init__(self, rows, dtype=float64):
        self.rows, self.dtype = rows, dtype
        self.shape = (len(rows), len(rows[0]))

    def astype(self, dtype):
        return Array(self.rows, dtype)

    def __matmul__(self, other):
        columns = list(zip(*other.rows))
        return Array([[sum(a * b for a, b in zip(row, column)) for column in columns] for row in self.rows], self.dtype)


def whole(low, high, shape):
    return Array([[chance.randrange(low, high) for _ in range(shape[1])] for _ in range(shape[0])])


def array_equal(a, b):
    return a.rows == b.rows


random = SimpleNamespace(default_rng=lambda seed: SimpleNamespace(integers=whole))
