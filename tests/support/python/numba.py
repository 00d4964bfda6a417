# A Numba without a GPU: a launch runs the kernel for one thread after the other. FAKE_WRONG=matmul: the last one does not run.
import itertools
import os
from types import SimpleNamespace

thread = (0, 0)


def jit(kernel):
    class Launch:
        def __getitem__(self, shape):
            blocks, threads = shape
            every = [range(count * size) for count, size in zip(blocks, threads)]

            def run(a, b, c):
                global thread
                last = (c.shape[0] - 1, c.shape[1] - 1)
                for thread in itertools.product(*every):
                    if thread != last or os.environ.get("FAKE_WRONG") != "matmul":
                        kernel(a, b, c)

            return run

    return Launch()


cuda = SimpleNamespace(is_available=lambda: True, jit=jit, grid=lambda dimensions: thread)
