"""A training loop with automatic mixed precision: float16 with a scaler on a GPU, bfloat16 on a CPU."""
import torch
from torch import nn

cuda = torch.cuda.is_available()
device, low = ("cuda", torch.float16) if cuda else ("cpu", torch.bfloat16)
if not cuda:
    print("no GPU: bfloat16 on the CPU, the GPU part was not run")
torch.manual_seed(0)
x = torch.rand(4096, 16, device=device)
y = (x * torch.linspace(-1, 1, 16, device=device)).sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 1)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler(device, enabled=cuda)
losses = []
for step in range(300):
    batch = slice(step % 16 * 256, step % 16 * 256 + 256)
    with torch.autocast(device, dtype=low):
        out = model(x[batch])
        assert out.dtype == low, out.dtype
        loss = nn.functional.mse_loss(out.float(), y[batch])
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
print("weights stay", next(model.parameters()).dtype, "and products are", low)
assert losses[-1] < losses[0] / 20, losses[:: 50]
print("loss fell at least twentyfold in 300 steps")
