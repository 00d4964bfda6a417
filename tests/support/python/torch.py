# A PyTorch without a GPU, for tests of torch_gpu.py: FAKE_TORCH=1.8 has only the features of that release.
# It computes nothing: a tensor is one number, and lower precision moves it a little. FAKE_WRONG names what is wrong, one of the faults
# of tests/fixtures/gpu/script-mutations.txt.
import contextlib
import os
import sys
from types import SimpleNamespace

OLD = os.environ.get("FAKE_TORCH") == "1.8"
uint8, float16, bfloat16, float32, float64 = "uint8", "float16", "bfloat16", "float32", "float64"
precision = [float32]
GPUS = [("A", (9, 0)), ("B", (8, 6))][: int(os.environ.get("FAKE_COUNT", "1"))]


class Matmul:
    """As in PyTorch: an unknown flag raises AssertionError."""

    known = {"allow_tf32"} if OLD else {"allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"}

    def __setattr__(self, name, value):
        if name not in self.known:
            raise AssertionError("Unknown attribute " + name)


class Tensor:
    # How far the rows were moved; shapes are not kept.
    rolled, shape = 0, ()

    def __init__(self, value, kind=float32, is_on_gpu=False):
        self.value, self.dtype, self.is_on_gpu = value, kind, is_on_gpu

    grad = property(lambda self: Tensor(1.0 if backend[-1] != WRONG else 2.0))

    def __mul__(self, other):
        return self

    def __pow__(self, exponent):
        return self

    def pow(self, exponent):
        return Tensor(self.value**exponent)

    def sqrt(self):
        return Tensor(self.value**0.5)

    def __add__(self, other):
        return Tensor(self.value + other)

    def __truediv__(self, other):
        return Tensor(self.value / other.value)

    def cuda(self):
        return Tensor(self.value, self.dtype, True)

    def __matmul__(self, other):
        return Tensor(2.0 if WRONG == "matmul" and self.is_on_gpu else 1.0)

    def __float__(self):
        return float(self.value)

    def mean(self, *axis, **options):
        if axis:
            return Tensor(self.value)
        Loss.steps += WRONG != "training"
        return Tensor(1.0 / (1 + Loss.steps))

    def clamp(self, low, high):
        return self

    def norm(self):
        return abs(self.value)

    def __sub__(self, other):
        return Tensor(self.value - getattr(other, "value", 0))

    def roll(self, count, axis):
        moved = Tensor(self.value)
        moved.rolled = count
        return moved

    def to(self, *kind, **options):
        is_on_gpu = any(str(word).startswith("cuda") for word in kind)
        return Tensor(self.value, self.dtype, True) if is_on_gpu else self

    def chunk(self, count):
        return [self] * count

    detach = double = float = cpu = sum = copy_ = to
    clone = requires_grad_ = t = contiguous = to

    def backward(self):
        pass


class Loss:
    steps = 0


class Net:
    def __init__(self, *layers):
        pass

    def to(self, device):
        return self

    double = lambda self: self

    def __call__(self, x):
        lower = 2.0 if WRONG == "autocast" else 1.001
        value = 1.0 if precision[-1] == float32 else lower
        return Tensor(3.0 if Capture.is_on and WRONG == "graph" else value, precision[-1])

    def parameters(self):
        return [Tensor(1.0)]


@contextlib.contextmanager
def lowered(kind):
    precision.append(kind)
    yield
    precision.pop()


@contextlib.contextmanager
def nothing(*_):
    yield


class Stream:
    def wait_stream(self, other):
        pass


class Graph:
    def replay(self):
        pass


class Capture:
    """As in PyTorch: without a stream, every capture uses one that was made on the first GPU."""

    made_on = None
    is_on = False

    def __init__(self, graph, stream=None):
        if stream is None:
            Capture.made_on = Capture.made_on or current[-1]
            if Capture.made_on != current[-1]:
                raise RuntimeError("capture on a stream of another GPU")

    def __enter__(self):
        Capture.is_on = True

    def __exit__(self, *_):
        Capture.is_on = False


current = ["cuda:0"]


@contextlib.contextmanager
def on(gpu):
    current.append(gpu)
    yield
    current.pop()


class Held:
    def __init__(self, size):
        cuda.held = size

    def __del__(self):
        cuda.held = 0 if WRONG != "memory" else cuda.held


cuda = SimpleNamespace(
    held=0,
    device_count=lambda: len(GPUS),
    is_available=lambda: bool(GPUS),
    get_device_name=lambda gpu: GPUS[int(str(gpu)[-1])][0],
    get_device_capability=lambda gpu: GPUS[int(str(gpu)[-1])][1],
    device=on,
    empty_cache=lambda: None,
    memory_allocated=lambda: cuda.held,
    max_memory_allocated=lambda: cuda.held,
    synchronize=lambda: None,
    Stream=Stream,
    current_stream=Stream,
    stream=nothing,
    set_device=lambda gpu: None,
    amp=SimpleNamespace(autocast=lambda: lowered(float16)),
)
WRONG = os.environ.get("FAKE_WRONG")
backend = ["MATH"]


@contextlib.contextmanager
def sdpa_kernel(name):
    if name == "CUDNN_ATTENTION":
        raise RuntimeError("No available kernel. Aborting execution.")
    backend.append(name)
    yield
    # The gradients of this call are read after it.


class SGD:
    def __init__(self, parameters, lr):
        pass

    def zero_grad(self):
        pass

    step = zero_grad


def _scaled_mm(left, right, scale_a, scale_b, out_dtype):
    return Tensor(2.0 if WRONG == "fp8" else 1.0), Tensor(8.0)


def randint(*_, generator=None):
    return Tensor(1.0)


def ones(*shape, device=None):
    return Tensor(1.0)


eye = ones


def full(shape, value, device=None, dtype=None):
    return Tensor(value)


def equal(a, b):
    return a.value == b.value


class Compiled(Net):
    def __call__(self, x):
        return Tensor(2.0 if WRONG == "compile" else 1.0)


def compile(net, backend):
    return Compiled()


class Distributed(Net):
    def __init__(self, net, device_ids):
        backend.append("ddp")


def conv2d(x, w, **options):
    return Tensor(2.0 if WRONG == "conv" and x.is_on_gpu else 1.0)


class Processes:
    """Ranks that run one after the other in this process."""

    class SimpleQueue(list):
        put = list.append
        get = list.pop

    def spawn(self, rank, args, nprocs, join):
        for at in range(nprocs):
            rank(at, *args)
            backend[1:] = []

    get_context = lambda self, kind: self


optim = SimpleNamespace(SGD=SGD)
float8_e4m3fn = "float8"
backends = SimpleNamespace(cuda=SimpleNamespace(matmul=Matmul()), cudnn=SimpleNamespace(allow_tf32=True))
contiguous_format, channels_last = "NCHW", "NHWC"
functional = SimpleNamespace(scaled_dot_product_attention=lambda q, k, v, is_causal: Tensor(1.0), conv2d=conv2d)
parallel = SimpleNamespace(DistributedDataParallel=Distributed)
nn = SimpleNamespace(Sequential=Net, Linear=Net, ReLU=Net, functional=functional, parallel=parallel)
nothing_done = lambda *_, **options: None
distributed = sys.modules["torch.distributed"] = SimpleNamespace(init_process_group=nothing_done, destroy_process_group=nothing_done)
multiprocessing = sys.modules["torch.multiprocessing"] = Processes()
if OLD:
    del _scaled_mm, float8_e4m3fn, compile
else:
    names = {name: name for name in ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION")}
    sys.modules["torch.nn.attention"] = SimpleNamespace(SDPBackend=SimpleNamespace(**names), sdpa_kernel=sdpa_kernel)
if not OLD:
    cuda.mem_get_info = lambda: (1, 2)
    cuda.CUDAGraph, cuda.graph = Graph, Capture

    def autocast(device, dtype):
        return lowered(dtype)


def device(kind, index):
    return f"{kind}:{index}"


def Generator():
    return SimpleNamespace(manual_seed=lambda seed: None)


def rand(*shape, generator=None):
    return Tensor(1.0)


def randn(*shape, dtype=None):
    return Tensor(1.0)


def zeros(*shape, device=None):
    return Tensor(0.0)


def empty(size, dtype=None, device=None):
    return Held(size)


def manual_seed(seed):
    # A new model: no backend was chosen for it.
    backend[1:] = []


def isfinite(tensor):
    return SimpleNamespace(all=lambda: True)


def allclose(a, b, rtol, atol):
    return a.value == b.value


no_grad = nothing
