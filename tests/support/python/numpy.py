# As much of NumPy as others_gpu.py needs for products and sums of matrices of whole numbers.
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

    def __add__(self, other):
        return type(self)([[a + b for a, b in zip(*rows)] for rows in zip(self.rows, other.rows)], self.dtype)

    def __rmul__(self, factor):
        return type(self)([[factor * value for value in row] for row in self.rows], self.dtype)

    def __getitem__(self, place):
        return self.rows[place[0]][place[1]]

    def __setitem__(self, place, value):
        if place is Ellipsis:
            self.rows = [list(row) for row in value.rows]
        else:
            self.rows[place[0]][place[1]] = value


def whole(low, high, shape):
    return Array([[chance.randrange(low, high) for _ in range(shape[1])] for _ in range(shape[0])])


def zeros(shape, dtype):
    return Array([[0] * shape[1] for _ in range(shape[0])], dtype)


def array_equal(a, b):
    return a.rows == b.rows


random = SimpleNamespace(default_rng=lambda seed: SimpleNamespace(integers=whole))
