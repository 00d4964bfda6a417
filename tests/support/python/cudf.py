# A cuDF without a GPU: sums of groups, on the processor. FAKE_WRONG=product: the last sum is another.
import os

if os.environ.get("FAKE_COUNT") == "0":
    raise RuntimeError("no CUDA-capable device is detected")


class Column(list):
    def to_arrow(self):
        return self

    def to_pylist(self):
        return list(self)


class DataFrame:
    def __init__(self, columns):
        self.columns = columns

    def groupby(self, key):
        self.key = key
        return self

    def sum(self):
        (name,) = [name for name in self.columns if name != self.key]
        sums = {}
        for key, value in zip(self.columns[self.key], self.columns[name]):
            sums[key] = sums.get(key, 0) + value
        sums[key] += os.environ.get("FAKE_WRONG") == "product"
        return Sums(name, sums)


class Sums:
    def __init__(self, name, sums):
        self.name, self.sums = name, sums

    def sort_index(self):
        return Sums(self.name, dict(sorted(self.sums.items())))

    def __getitem__(self, name):
        assert name == self.name
        return Column(self.sums.values())
