# A PyTorch without a GPU, for tests of torch_gpu.py: FAKE_TORCH=1.8 has only the features of that release.
# It computes nothing: a tensor is one number, and lower precision moves it a little. FAKE_WRONG names what is wrong: a backend of
# attention, `training` (the loss does not fall), `fp8`.
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
    def __init__(self, value, kind=float32):
        self.value, self.dtype = value, kind

    grad = property(lambda self: Tensor(1.0 if backend[-1] != WRONG else 2.0))

    def __mul__(self, other):
        return self

    def __pow__(self, exponent):
        return self

    def __matmul__(self, other):
        return Tensor(2.0 if WRONG == "fp8" else 1.0)

    def __float__(self):
        return float(self.value)

    def mean(self):
        Loss.steps += WRONG != "training"
        return Tensor(1.0 / (1 + Loss.steps))

    def clamp(self, low, high):
        return self

    def norm(self):
        return abs(self.value)

    def __sub__(self, other):
        return Tensor(self.value - other.value)

    def to(self, *kind, **options):
        return self

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

    def __call__(self, x):
        return Tensor(1.0 if precision[-1] == float32 else 1.001, precision[-1])

    def parameters(self):
        return []


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

    def __init__(self, graph, stream=None):
        if stream is None:
            Capture.made_on = Capture.made_on or current[-1]
            if Capture.made_on != current[-1]:
                raise RuntimeError("capture on a stream of another GPU")

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


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
        cuda.held = 0


cuda = SimpleNamespace(
    held=0,
    device_count=lambda: len(GPUS),
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
    return Tensor(1.0), Tensor(8.0)


def randint(*_, generator=None):
    return Tensor(1.0)


def ones(*shape, device=None):
    return Tensor(1.0)


optim = SimpleNamespace(SGD=SGD)
float8_e4m3fn = "float8"
backends = SimpleNamespace(cuda=SimpleNamespace(matmul=Matmul()), cudnn=SimpleNamespace(allow_tf32=True))
functional = SimpleNamespace(scaled_dot_product_attention=lambda q, k, v, is_causal: Tensor(1.0))
nn = SimpleNamespace(Sequential=Net, Linear=Net, ReLU=Net, functional=functional)
if OLD:
    del _scaled_mm, float8_e4m3fn
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


def zeros(*shape, device=None):
    return Tensor(0.0)


def empty(size, dtype=None, device=None):
    return Held(size)


def manual_seed(seed):
    pass


def isfinite(tensor):
    return True


def allclose(a, b, rtol, atol):
    return a.value == b.value


no_grad = nothing
