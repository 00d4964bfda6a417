# A cuML without a GPU: a linear regression by its normal equations. FAKE_WRONG=product: the line is moved.
import os
import sys
from types import SimpleNamespace

import numpy

if os.environ.get("FAKE_COUNT") == "0":
    raise RuntimeError("no CUDA-capable device is detected")


def solved(matrix):
    """Gauss: the last column of each row is its right side."""
    size = len(matrix)
    for at in range(size):
        pivot = max(range(at, size), key=lambda row: abs(matrix[row][at]))
        matrix[at], matrix[pivot] = matrix[pivot], matrix[at]
        for row in range(size):
            if row != at:
                factor = matrix[row][at] / matrix[at][at]
                matrix[row] = [a - factor * b for a, b in zip(matrix[row], matrix[at])]
    return [matrix[at][size] / matrix[at][at] for at in range(size)]


class LinearRegression:
    def fit(self, points, answers):
        rows = [[*point, 1.0] for point in points.tolist()]
        right = answers.tolist()
        size = range(len(rows[0]))
        equations = [
            [sum(row[a] * row[b] for row in rows) for b in size] + [sum(row[a] * y for row, y in zip(rows, right))]
            for a in size
        ]
        *slopes, intercept = solved(equations)
        self.coef_ = numpy.array(slopes)
        self.intercept_ = intercept + (os.environ.get("FAKE_WRONG") == "product")
        return self


linear_model = sys.modules["cuml.linear_model"] = SimpleNamespace(LinearRegression=LinearRegression)
