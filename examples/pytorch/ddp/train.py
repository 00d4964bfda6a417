"""Data-parallel training: torchrun --nproc-per-node=2 ddp/train.py. NCCL with a GPU for each process, else Gloo on the CPU."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

rank, world, local = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
cuda = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
dist.init_process_group("nccl" if cuda else "gloo")
device = torch.device("cuda", local) if cuda else torch.device("cpu")
if cuda:
    torch.cuda.set_device(device)
elif rank == 0:
    print("not a GPU for each process: Gloo on the CPU, the GPU part was not run")
torch.manual_seed(0)
data = torch.rand(1024, 8)
target = data.sum(1, keepdim=True)
model = DistributedDataParallel(nn.Linear(8, 1).to(device), device_ids=[local] if cuda else None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
mine = slice(rank, None, world)
for _ in range(200):
    loss = nn.functional.mse_loss(model(data[mine].to(device)), target[mine].to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# Every process saw other rows; the gradients were averaged, so all hold the same weights.
weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
all_weights = [torch.empty_like(weights) for _ in range(world)]
dist.all_gather(all_weights, weights)
if rank == 0:
    print(f"{world} processes, equal weights: {all(torch.equal(weights, other) for other in all_weights)}")
    print("loss below 0.02:", loss.item() < 0.02)
dist.destroy_process_group()
