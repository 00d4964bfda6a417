# As much of NumPy as others_gpu.py and the scripts of products need for products and sums of matrices of whole numbers.
import ctypes as c
import random as chance
from types import SimpleNamespace

float64 = "float64"


class Array:
    def __init__(self, rows, dtype=float64):
        self.rows, self.dtype = rows, dtype
        self.shape = (len(rows), len(rows[0])) if isinstance(rows[0], list) else (len(rows),)
        self.memory = None

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
        if isinstance(place, slice):
            return Array(self.rows[place], self.dtype)
        return self.rows[place[0]][place[1]]

    def __setitem__(self, place, value):
        if place is Ellipsis:
            self.rows = [list(row) for row in value.rows]
        else:
            self.rows[place[0]][place[1]] = value


    @property
    def nbytes(self):
        return 4 * self.shape[0] * self.shape[1]

    @property
    def ctypes(self):
        """Memory of single precision that others read and write."""
        if self.memory is None:
            self.memory = (c.c_float * (self.nbytes // 4))(*[value for row in self.rows for value in row])
        return SimpleNamespace(data_as=lambda kind: c.cast(self.memory, kind))

    def __len__(self):
        return len(self.rows)

    def ravel(self):
        return self

    def tolist(self):
        if self.memory is not None:
            rows, columns = self.shape
            return [list(self.memory[row * columns : (row + 1) * columns]) for row in range(rows)]
        return list(self.rows)


def array(values, dtype=float64):
    return Array([list(row) if isinstance(row, (list, tuple)) else row for row in values], dtype)


def asarray(values):
    return values


def maximum(array, least):
    return Array([[max(value, least) for value in row] for row in array.rows], array.dtype)


def whole(low, high, shape):
    return Array([[chance.randrange(low, high) for _ in range(shape[1])] for _ in range(shape[0])])


def zeros(shape, dtype):
    return Array([[0] * shape[1] for _ in range(shape[0])], dtype)


def array_equal(a, b):
    return a.rows == b.rows


random = SimpleNamespace(default_rng=lambda seed: SimpleNamespace(integers=whole))
