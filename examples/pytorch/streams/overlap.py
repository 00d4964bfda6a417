"""Copies and products on two streams at once: pinned memory, events, and the same answer as one after the other."""
import time

import torch

cuda = torch.cuda.is_available()
torch.manual_seed(0)
blocks = [torch.randint(-3, 4, (1024, 1024)).float() for _ in range(8)]
weight = torch.randint(-2, 3, (1024, 1024)).float()
expected = [block @ weight for block in blocks]
print("CPU: products of 8 blocks, whole numbers:", all(torch.equal(out, out.round()) for out in expected))
if not cuda:
    print("no GPU: streams need one, the GPU part was not run")
    raise SystemExit
pinned = [block.pin_memory() for block in blocks]
weight = weight.cuda()


def one_after_the_other():
    return [block.cuda() @ weight for block in blocks]


def overlapped():
    copies, out = torch.cuda.Stream(), []
    for block in pinned:
        with torch.cuda.stream(copies):
            there = block.to("cuda", non_blocking=True)
            ready = copies.record_event()
        torch.cuda.current_stream().wait_event(ready)
        there.record_stream(torch.cuda.current_stream())
        out.append(there @ weight)
    return out


for run in (one_after_the_other, overlapped):
    run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    out = run()
    torch.cuda.synchronize()
    took = time.perf_counter() - start
    print(f"{run.__name__}: {took * 1e3:.1f} ms, exact: {all(map(torch.equal, [o.cpu() for o in out], expected))}")
