# A Triton without a GPU: a launch with the one-number tensors of the fake PyTorch leaves 1 in the third. With lists (run_triton.py)
# the kernel is executed, one program after the other, on the numbers of `triton.language`.
import os

from . import language

__version__ = "3.0"


def jit(kernel):
    class Launch:
        def __getitem__(self, grid):
            def run(a, b, c, *sizes, **constants):
                if hasattr(c, "value"):
                    c.value = 2.0 if os.environ.get("FAKE_WRONG") == "triton" else 1.0
                    return
                for x in range(grid[0]):
                    for y in range(grid[1]):
                        language.program = (x, y)
                        kernel(language.Address(a), language.Address(b), language.Address(c), *sizes, **constants)

            return run

    return Launch()
