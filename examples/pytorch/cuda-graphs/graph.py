"""Captures a training step as a CUDA graph and replays it: one launch instead of dozens."""
import time

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(20)]).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.rand(32, 64, device=device), torch.rand(32, 64, device=device)


def step():
    optimizer.zero_grad(set_to_none=False)
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


first = step().item()
for _ in range(20):
    last = step().item()
print("eager: the loss falls:", last < first)
if device == "cpu":
    print("no GPU: CUDA graphs need one, the GPU part was not run")
    raise SystemExit
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()


def seconds(run):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(200):
        run()
    torch.cuda.synchronize()
    return time.perf_counter() - start


before = loss.item()
eager, replayed = seconds(step), seconds(graph.replay)
print("replayed: the loss falls:", loss.item() < before)
print(f"eager {eager / 200 * 1e6:.0f} us, replayed {replayed / 200 * 1e6:.0f} us per step")
