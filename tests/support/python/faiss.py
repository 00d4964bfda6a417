# A Faiss without a GPU: distances of the nearest vectors, on the processor. FAKE_WRONG=product: one distance is another.
import os

import numpy


def get_num_gpus():
    return int(os.environ.get("FAKE_COUNT", "1"))


class StandardGpuResources:
    pass


class GpuIndexFlatL2:
    def __init__(self, resources, width):
        self.width, self.stored = width, []

    def add(self, vectors):
        assert vectors.shape[1] == self.width
        self.stored += vectors.tolist()

    def search(self, queries, wanted):
        distances, places = [], []
        for query in queries.tolist():
            all = sorted((sum((a - b) ** 2 for a, b in zip(query, row)), at) for at, row in enumerate(self.stored))
            distances.append([distance for distance, _ in all[:wanted]])
            places.append([at for _, at in all[:wanted]])
        distances[-1][-1] += os.environ.get("FAKE_WRONG") == "product"
        return numpy.array(distances), numpy.array(places)
