# As much of triton.language as the kernel of torch_gpu.py uses, on lists of lists: a value has rows and columns, of which one
# may be one long, as in NumPy.
float32 = "float32"
constexpr = int
program = (0, 0)


class Block:
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, key):
        numbers = self.rows[0]
        return Block([[number] for number in numbers]) if key == (slice(None), None) else Block([numbers])

    def with_other(self, other, each):
        other = other if isinstance(other, Block) else Block([[other]])
        height, width = max(len(self.rows), len(other.rows)), max(len(self.rows[0]), len(other.rows[0]))
        at = lambda block, i, j: block.rows[i if len(block.rows) > 1 else 0][j if len(block.rows[0]) > 1 else 0]
        return Block([[each(at(self, i, j), at(other, i, j)) for j in range(width)] for i in range(height)])

    def __add__(self, other):
        return self.with_other(other, lambda a, b: a + b)

    def __mul__(self, other):
        return self.with_other(other, lambda a, b: a * b)

    __radd__, __rmul__ = __add__, __mul__


class Address:
    """A list and where in it: beyond its ends is a fault."""

    def __init__(self, numbers, at=Block([[0]])):
        self.numbers, self.at = numbers, at

    def __add__(self, other):
        return Address(self.numbers, self.at + other)

    def places(self):
        for i, row in enumerate(self.at.rows):
            for j, place in enumerate(row):
                assert 0 <= place < len(self.numbers), f"address {place} of {len(self.numbers)}"
                yield i, j, place


def program_id(axis):
    return program[axis]


def arange(begin, end):
    return Block([list(range(begin, end))])


def zeros(shape, dtype):
    return Block([[0] * shape[1] for _ in range(shape[0])])


def load(address):
    for _ in address.places():
        pass
    return Block([[address.numbers[place] for place in row] for row in address.at.rows])


def store(address, block):
    for i, j, place in address.places():
        address.numbers[place] = block.rows[i][j]


def dot(a, b):
    columns = list(zip(*b.rows))
    return Block([[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a.rows])
