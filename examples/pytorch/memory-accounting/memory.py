"""What a training step keeps: weights, gradients, optimizer, activations. Counted from the tensors, and on a GPU compared
with what the allocator says."""
import torch
from torch import nn

cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
KIB = 1024


def size(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
kept = {}


def keep(tensor):
    kept[tensor.data_ptr()] = tensor
    return tensor


weights = {parameter.data_ptr() for parameter in model.parameters()}
x = torch.rand(128, 512, device=device)
with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
    loss = model(x).square().mean()
activations = size(tensor for pointer, tensor in kept.items() if pointer not in weights)
kept.clear()
loss.backward()
optimizer.step()
states = [value for state in optimizer.state.values() for value in state.values() if value.numel() > 1]
parts = {
    "weights": size(model.parameters()),
    "gradients": size(parameter.grad for parameter in model.parameters()),
    "optimizer": size(states),
    "activations": activations,
}
for name, count in parts.items():
    print(f"{name:<12}{count / KIB:>8.0f} KiB")
if cuda:
    held = torch.cuda.memory_allocated()
    least = parts["weights"] + parts["gradients"] + parts["optimizer"]
    print(f"allocator   {held / KIB:>8.0f} KiB now, {torch.cuda.max_memory_allocated() / KIB:.0f} KiB at most")
    assert held >= least, (held, least)
else:
    print("no GPU: the allocator was not asked, the GPU part was not run")
