"""What this image sees: versions, each GPU, and one product of matrices whose answer is known exactly."""
import torch


def exact(device):
    # Small whole numbers: every partial sum fits float32, so the answer is the same bit for bit on every device.
    a = (torch.arange(512 * 512).reshape(512, 512) % 7 - 3).float()
    b = (torch.arange(512 * 512).reshape(512, 512) % 5 - 2).float()
    expected = a.long() @ b.long()
    return torch.equal((a.to(device) @ b.to(device)).cpu().long(), expected)


print("torch", torch.__version__.split("+")[0], "built for CUDA", torch.version.cuda)
for index in range(torch.cuda.device_count()):
    gpu = torch.cuda.get_device_properties(index)
    print(f"GPU {index}: {gpu.name}, {gpu.major}.{gpu.minor}, {gpu.total_memory >> 20} MiB, exact: {exact(index)}")
if not torch.cuda.is_available():
    print("no GPU: the GPU part was not run")
print("CPU exact:", exact("cpu"))
