"""torch.compile: the same numbers, kernels of its own (Triton on a GPU, C++ on a CPU; the image brings a compiler)."""
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
if device == "cpu":
    print("no GPU: compiled to C++ for the CPU, the GPU part was not run")


def gelu_of_product(a, b):
    return torch.nn.functional.gelu(a @ b) * a.sin().sum(1, keepdim=True)


torch.manual_seed(0)
a, b = torch.rand(256, 256, device=device), torch.rand(256, 256, device=device)
compiled = torch.compile(gelu_of_product, fullgraph=True)
torch.testing.assert_close(compiled(a, b), gelu_of_product(a, b), rtol=1e-4, atol=1e-4)
print("compiled equals eager")
counts = torch._dynamo.utils.counters["stats"]
print("graphs compiled:", counts["unique_graphs"])
