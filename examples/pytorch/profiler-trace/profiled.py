"""A profiler trace of a few steps, for chrome://tracing or ui.perfetto.dev, and where the time went. Argument: a file."""
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function

path = sys.argv[1] if len(sys.argv) > 1 else "trace.json"
cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).to(device)
x = torch.rand(256, 512, device=device)
activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if cuda else [])
with profile(activities=activities) as profiler:
    for step in range(5):
        with record_function(f"step {step}"):
            model(x).sum().backward()
profiler.export_chrome_trace(path)
with open(path) as file:
    events = json.load(file)["traceEvents"]
names = {event.get("name") for event in events}
print("steps in the trace:", sum(f"step {step}" in names for step in range(5)))
print("products in the trace:", "aten::addmm" in names)
if cuda:
    kernels = sum(event.get("cat") == "kernel" for event in events)
    print("GPU kernels in the trace:", kernels)
    assert kernels
else:
    print("no GPU: no kernels in the trace, the GPU part was not run")
