# Faiss for GPUs (packages faiss-gpu, faiss-gpu-cu12, faiss-gpu-cu11).


def facts():
    import faiss

    say("version", version("faiss-gpu", "faiss-gpu-cu12", "faiss-gpu-cu11"))

    def cuda():
        # A build for the processor has the name of the module, too, and no index for a GPU.
        if not hasattr(faiss, "GpuIndexFlatL2"):
            raise RuntimeError("this Faiss is built without CUDA")
        return runtime()

    attempt("cuda", cuda)


def kernel():
    import faiss
    import numpy as np

    need(faiss.get_num_gpus(), "Faiss sees no GPU")
    # Whole numbers: squared distances are exact in single precision, and each vector is nearest to itself.
    rows, width, wanted = 1000, 32, 5
    stored = np.array([[float((at * at + 31 * column * at + column) % 17) for column in range(width)] for at in range(rows)], dtype="float32")
    queries = stored[:20]
    index = faiss.GpuIndexFlatL2(faiss.StandardGpuResources(), width)
    index.add(stored)
    found = index.search(queries, wanted)[0].tolist()
    right = []
    for query in queries.tolist():
        distances = [sum((a - b) ** 2 for a, b in zip(query, row)) for row in stored.tolist()]
        right.append(sorted(distances)[:wanted])
    need(found == right, "distances of the nearest vectors are wrong")
    return f"a search on a GpuIndexFlatL2: {len(queries)} queries among {rows} vectors, distances exact"
