# What PyTorch must do on a GPU. Prints `id<TAB>outcome<TAB>detail` as each check ends; run by the agent.
import importlib.util
import os
import sys

import torch


def need(condition, text):
    if not condition:
        raise AssertionError(text)


def relative(found, wanted):
    return float((found.double().cpu() - wanted).norm() / wanted.norm())


def whole(*shape):
    return torch.randint(-8, 9, shape, generator=torch.Generator().manual_seed(7)).double()


def each_gpu():
    seen = set()
    for index in range(torch.cuda.device_count()):
        kind = (torch.cuda.get_device_name(index), torch.cuda.get_device_capability(index))
        if kind not in seen:
            seen.add(kind)
            yield torch.device("cuda", index)


def matmul():
    a, b = whole(192, 256), whole(256, 160)
    kinds = [torch.float64, torch.float32, torch.float16]
    for device in each_gpu():
        major = torch.cuda.get_device_capability(device)[0]
        for kind in kinds + ([torch.bfloat16] if major >= 8 else []):
            # Halves hold whole numbers up to 2048, bfloat16 up to 256: the sum is asked for as the format holds it.
            found = (a.to(device, kind) @ b.to(device, kind)).double().cpu()
            need(torch.equal(found, (a @ b).to(kind).double()), f"{kind} on {device}: wrong product")
    return "whole numbers, each element as the precision holds it"


def conv():
    x, w = whole(2, 16, 14, 12), whole(24, 8, 3, 3)
    options = dict(stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2)
    wanted = torch.nn.functional.conv2d(x, w, **options)
    old = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        for device in each_gpu():
            for form in (torch.contiguous_format, torch.channels_last):
                xs = x.to(device, torch.float32).to(memory_format=form).requires_grad_()
                ws = w.to(device, torch.float32).requires_grad_()
                found = torch.nn.functional.conv2d(xs, ws, **options)
                need(relative(found.detach(), wanted) < 1e-5, f"forward on {device}: {relative(found.detach(), wanted):.1e}")
                found.sum().backward()
                xc, wc = x.clone().requires_grad_(), w.clone().requires_grad_()
                torch.nn.functional.conv2d(xc, wc, **options).sum().backward()
                need(relative(xs.grad, xc.grad) < 1e-5, f"gradient of the images on {device}")
                need(relative(ws.grad, wc.grad) < 1e-5, f"gradient of the filters on {device}")
    finally:
        torch.backends.cudnn.allow_tf32 = old
    return "forward and both gradients within 1e-5, NCHW and NHWC"


def model(device):
    torch.manual_seed(3)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32))
    return layers.to(device)


def mixed_precision(kind):
    # Before 1.10 there is the older name only, which always uses halves.
    return torch.autocast("cuda", dtype=kind) if hasattr(torch, "autocast") else torch.cuda.amp.autocast()


def autocast():
    for device in each_gpu():
        has_bfloat16 = hasattr(torch, "autocast") and torch.cuda.get_device_capability(device)[0] >= 8
        kind = torch.bfloat16 if has_bfloat16 else torch.float16
        net = model(device)
        x = torch.rand(48, 64, generator=torch.Generator().manual_seed(5)).to(device)
        wanted = net(x).detach().double().cpu()
        with mixed_precision(kind):
            found = net(x)
        need(found.dtype == kind, f"autocast gave {found.dtype}, not {kind}")
        error = relative(found.detach(), wanted)
        need(0 < error < 2e-2, f"{kind} on {device}: relative error {error:.1e}")
        found.float().sum().backward()
        need(all(torch.isfinite(p.grad).all() for p in net.parameters()), f"{kind} on {device}: a gradient is not finite")
    return "lower precision is used and stays near fp32"


def graph():
    if not hasattr(torch.cuda, "graph"):
        raise SkipCheck("not-offered", "this PyTorch has no torch.cuda.graph")
    for device in each_gpu():
        with torch.cuda.device(device):
            net = model(device)
            x = torch.zeros(48, 64, device=device)
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream), torch.no_grad():
                for _ in range(2):
                    net(x)
            torch.cuda.current_stream().wait_stream(stream)
            captured = torch.cuda.CUDAGraph()
            # The default stream of captures belongs to the first GPU that captured.
            with torch.no_grad(), torch.cuda.graph(captured, stream=stream):
                out = net(x)
            for seed in (1, 2):
                x.copy_(torch.rand(48, 64, generator=torch.Generator().manual_seed(seed)).to(device))
                captured.replay()
                torch.cuda.synchronize()
                with torch.no_grad():
                    need(torch.allclose(out, net(x), rtol=1e-5, atol=1e-6), f"replay {seed} on {device} differs")
    return "replayed twice with new inputs"


def memory():
    for device in each_gpu():
        with torch.cuda.device(device):
            torch.cuda.empty_cache()
            before = torch.cuda.memory_allocated()
            held = torch.empty(64 << 20, dtype=torch.uint8, device=device)
            need(torch.cuda.memory_allocated() - before >= 64 << 20, "an allocation is not counted")
            need(torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated(), "the peak is below the present")
            del held
            need(torch.cuda.memory_allocated() == before, "memory given back is still counted")
            if hasattr(torch.cuda, "mem_get_info"):
                free, total = torch.cuda.mem_get_info()
                need(0 < free <= total, f"free {free} of {total}")
    return "allocations and their release are counted"


def compile_():
    if not hasattr(torch, "compile"):
        raise SkipCheck("not-offered", "this PyTorch has no torch.compile")
    if importlib.util.find_spec("triton") is None:
        raise SkipCheck("not-in-image", "Triton is not in the image")
    done = []
    for device in each_gpu():
        if torch.cuda.get_device_capability(device) < (7, 0):
            continue
        net = model(device)
        x = torch.rand(48, 64, generator=torch.Generator().manual_seed(5)).to(device)
        wanted = net(x).detach()
        found = torch.compile(net, backend="inductor")(x)
        found.sum().backward()
        need(torch.allclose(found.detach(), wanted, rtol=1e-3, atol=1e-4), f"compiled on {device} differs")
        done.append(device)
    if not done:
        raise SkipCheck("compute-capability", "Triton requires compute capability 7.0")
    return "compiled forward and backward agree with eager"


ATTENTION = ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION")
# What PyTorch says of a backend that has no kernel for these inputs, or is not in the wheel.
NOT_OFFERED = ("No available kernel", "No viable backend", "No execution plans support the graph", "No valid execution plans built")
# What PyTorch and cuBLAS say of fp8 that this release or GPU does not multiply.
NO_FP8 = ("_scaled_mm is only supported on", "CUBLAS_STATUS_NOT_SUPPORTED")
# What PyTorch says if others hold the memory.
NO_MEMORY = ("CUDA out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


def attended(inputs, weights, backend, sdpa_kernel):
    # Output and gradients, by one backend.
    q, k, v = (tensor.detach().clone().requires_grad_() for tensor in inputs)
    with sdpa_kernel(backend):
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    (found.float() * weights).sum().backward()
    return [tensor.detach().double().cpu() for tensor in (found, q.grad, k.grad, v.grad)]


def attention():
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        raise SkipCheck("not-offered", "this PyTorch has no torch.nn.attention")
    done, refused = [], []
    for device in each_gpu():
        kind = torch.bfloat16 if torch.cuda.get_device_capability(device)[0] >= 8 else torch.float16
        seed = torch.Generator().manual_seed(11)
        # Around zero: of numbers that are all positive, the gradient of q is a small difference, far beyond the bound in bfloat16.
        inputs = [(torch.rand(2, 4, 128, 64, generator=seed) - 0.5).to(device, kind) for _ in range(3)]
        weights = torch.rand(2, 4, 128, 64, generator=seed).to(device)
        wanted = attended([tensor.float() for tensor in inputs], weights, SDPBackend.MATH, sdpa_kernel)
        for name in ATTENTION:
            if not hasattr(SDPBackend, name):
                continue
            try:
                found = attended(inputs, weights, getattr(SDPBackend, name), sdpa_kernel)
            except RuntimeError as error:
                if not any(text in str(error) for text in NOT_OFFERED):
                    raise
                refused.append(name)
                continue
            for what, one, other in zip(("output", "gradient of q", "gradient of k", "gradient of v"), found, wanted):
                error = relative(one, other)
                need(error < 2e-2, f"{name} on {device}: {what}: relative error {error:.1e}")
            done.append(name)
    if not done:
        raise SkipCheck("not-offered", f"no kernel of attention but the plain one: {', '.join(refused)}")
    return f"{', '.join(sorted(set(done)))} agree with the plain one" + (f"; not offered: {', '.join(sorted(set(refused)))}" if refused else "")


def training():
    done = []
    for device in each_gpu():
        if torch.cuda.get_device_capability(device)[0] < 8:
            continue
        net = model(device)
        steps = torch.optim.SGD(net.parameters(), lr=0.1)
        seed = torch.Generator().manual_seed(13)
        x, y = torch.rand(256, 64, generator=seed).to(device), torch.rand(256, 32, generator=seed).to(device)
        losses = []
        for _ in range(30):
            steps.zero_grad()
            with mixed_precision(torch.bfloat16):
                loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            steps.step()
            losses.append(float(loss.detach()))
        need(all(value == value and value < 1e6 for value in losses), f"the loss is not finite on {device}: {losses[-1]}")
        need(losses[-1] < 0.8 * losses[0], f"the loss does not fall on {device}: {losses[0]:.3f} to {losses[-1]:.3f}")
        done.append(f"{losses[0]:.3f} to {losses[-1]:.3f}")
    if not done:
        raise SkipCheck("compute-capability", "bfloat16 requires compute capability 8.0")
    return f"30 steps in bfloat16 lower the loss from {', '.join(done)}"


def fp8():
    if not hasattr(torch, "_scaled_mm") or not hasattr(torch, "float8_e4m3fn"):
        raise SkipCheck("not-offered", "this PyTorch has no torch._scaled_mm")
    done = []
    for device in each_gpu():
        if torch.cuda.get_device_capability(device) < (8, 9):
            continue
        a, b = whole(64, 128).clamp(-4, 4), whole(128, 48).clamp(-4, 4)
        one = torch.ones((), device=device)
        # The right side must lie by columns.
        left, right = a.to(device, torch.float8_e4m3fn), b.t().contiguous().to(device, torch.float8_e4m3fn).t()
        try:
            found = torch._scaled_mm(left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        except RuntimeError as error:
            if any(text in str(error) for text in NO_FP8):
                raise SkipCheck("not-offered", f"no fp8 on {device}: {error}")
            raise
        # Up to 2.4 it also gives the largest value.
        found = found[0] if isinstance(found, tuple) else found
        error = relative(found, a @ b)
        need(error < 1e-2, f"relative error {error:.1e} on {device}")
        done.append(f"{error:.1e}")
    if not done:
        raise SkipCheck("compute-capability", "fp8 requires compute capability 8.9")
    return f"within {', '.join(done)}"


try:
    import triton
    import triton.language as tl

    constexpr = tl.constexpr  # The interpreter of Triton does not know it by a text.
except ImportError:  # SkipCheck says so.
    triton = constexpr = None


def triton_product(a_at, b_at, c_at, m, n, k, tile: constexpr):
    # One program makes one tile of c = a times b, all row by row; sizes are multiples of the tile.
    rows = tl.program_id(0) * tile + tl.arange(0, tile)
    columns = tl.program_id(1) * tile + tl.arange(0, tile)
    inner = tl.arange(0, tile)
    total = tl.zeros((tile, tile), dtype=tl.float32)
    for start in range(0, k, tile):
        a = tl.load(a_at + rows[:, None] * k + (start + inner)[None, :])
        b = tl.load(b_at + (start + inner)[:, None] * n + columns[None, :])
        total += tl.dot(a, b)
    tl.store(c_at + rows[:, None] * n + columns[None, :], total)


def triton_kernel():
    if triton is None:
        raise SkipCheck("not-in-image", "Triton is not in the image")
    kernel, done = triton.jit(triton_product), []
    m, n, k, tile = 128, 96, 160, 32
    a, b = whole(m, k), whole(k, n)
    for device in each_gpu():
        if torch.cuda.get_device_capability(device) < (7, 0):
            continue
        with torch.cuda.device(device):
            left, right = a.to(device, torch.float16), b.to(device, torch.float16)
            c = torch.full((m, n), float("nan"), device=device, dtype=torch.float32)
            kernel[(m // tile, n // tile)](left, right, c, m, n, k, tile=tile)
            torch.cuda.synchronize()
            need(torch.equal(c.double().cpu(), a @ b), f"wrong product on {device}")
        done.append(device)
    if not done:
        raise SkipCheck("compute-capability", "Triton requires compute capability 7.0")
    return f"{m}x{n}x{k} of whole numbers exact, Triton {triton.__version__}"


def ddp_rank(rank, size, store, wanted, queue):
    import torch.distributed as dist

    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=size)
    device = torch.device("cuda", rank)
    net = torch.nn.parallel.DistributedDataParallel(model(device), device_ids=[rank])
    x = torch.rand(8 * size, 64, generator=torch.Generator().manual_seed(5)).chunk(size)[rank].to(device)
    net(x).mean().backward()
    worst = max(relative(p.grad, w) for p, w in zip(net.parameters(), wanted))
    queue.put((rank, worst))
    dist.destroy_process_group()


def ddp():
    import tempfile

    import torch.multiprocessing as mp

    size = torch.cuda.device_count()
    net = model("cpu").double()
    x = torch.rand(8 * size, 64, generator=torch.Generator().manual_seed(5)).double()
    net(x).mean().backward()
    wanted = [p.grad for p in net.parameters()]
    context = mp.get_context("spawn")
    queue = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(ddp_rank, args=(size, os.path.join(folder, "store"), wanted, queue), nprocs=size, join=True)
    answers = [queue.get() for _ in range(size)]
    need(sorted(rank for rank, _ in answers) == list(range(size)), f"only {answers} answered")
    worst = max(error for _, error in answers)
    need(worst < 1e-4, f"gradients differ from one process's by {worst:.1e}")
    if size == 1:
        raise SkipCheck("one-gpu", "one GPU; the step ran with one rank")
    return f"one step on {size} GPUs, gradients as of one process"


class SkipCheck(Exception):
    pass


CHECKS = {
    "framework-matmul": matmul,
    "framework-conv": conv,
    "framework-autocast": autocast,
    "framework-graph": graph,
    "framework-memory": memory,
    "framework-compile": compile_,
    "framework-attention": attention,
    "framework-training": training,
    "framework-fp8": fp8,
    "framework-triton": triton_kernel,
    "framework-ddp": ddp,
}


def main():
    labels = [f"{torch.cuda.get_device_name(d)} (sm_%d%d)" % torch.cuda.get_device_capability(d) for d in each_gpu()]
    if not labels:
        raise SystemExit("torch.cuda sees no GPU")
    # Whole numbers are exact only if halves are summed in fp32.
    for flag in ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        try:
            setattr(torch.backends.cuda.matmul, flag, False)
        except (AssertionError, AttributeError):
            pass  # This release has no such flag.
    print("gpu\t" + "\t".join(labels), flush=True)
    for name in sys.argv[1:]:
        try:
            outcome, detail = "passed", CHECKS[name]()
        except SkipCheck as skip:
            outcome, detail = f"skipped:{skip.args[0]}", skip.args[1]
        except Exception as error:  # noqa: BLE001: whatever the framework raises is the finding
            busy = any(text in str(error) for text in NO_MEMORY)
            outcome, detail = "skipped:host-busy" if busy else "failed", f"{type(error).__name__}: {error}"
        print(f"{name}\t{outcome}\t{' '.join(detail.split())}", flush=True)


if __name__ == "__main__":
    main()
