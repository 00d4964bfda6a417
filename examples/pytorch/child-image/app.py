"""What the child image runs: the framework of the image below it."""
import torch

print("torch", torch.__version__.split("+")[0], "built for CUDA", torch.version.cuda)
print("GPU" if torch.cuda.is_available() else "no GPU: the GPU part was not run")
