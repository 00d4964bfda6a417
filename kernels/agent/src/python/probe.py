# Asks the image's Python what one framework is: one import, since it takes seconds. Prints `key=value` lines, `end=` last.
# Works without a GPU: what needs one is not asked. The framework's name is the first argument; the second, if any, is the script of a
# product (products/), whose `facts` is asked.
import ctypes
import glob
import importlib
import importlib.metadata
import os
import sys
import sysconfig


def say(key, value):
    print(f"{key}={value}", flush=True)


def attempt(key, ask):
    """What cannot be told is told as such: the check that wants it fails with these words."""
    try:
        value = ask()
    except Exception as error:  # noqa: BLE001: whatever is raised is the finding
        value = repr(error)
    if value is not None:
        say(key, value)


def number(pattern, function, answers_by_pointer=False):
    """The version number a CUDA library of the image gives of itself."""
    homes = [os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "*", "lib"), "/usr/local/cuda/lib64"]
    found = [path for home in homes for path in sorted(glob.glob(os.path.join(home, pattern)))]
    if not found:
        raise FileNotFoundError(pattern)
    ask = getattr(ctypes.CDLL(found[0], mode=ctypes.RTLD_GLOBAL), function)
    if not answers_by_pointer:
        ask.restype = ctypes.c_size_t
        return ask()
    value = ctypes.c_int()
    if ask(ctypes.byref(value)):
        raise OSError(f"{function} of {found[0]} failed")
    return value.value


def minor(number):
    return f"{number // 1000}.{number % 1000 // 10}"


def runtime():
    try:
        return minor(number("libcudart.so.*", "cudaRuntimeGetVersion", True))
    except FileNotFoundError:
        raise
    except OSError as error:
        # The runtime of CUDA 11 wants a driver before it answers: its wheel knows.
        if "libcudart.so.11" not in str(error):
            raise
        try:
            wheel = version("nvidia-cuda-runtime-cu11")
        except importlib.metadata.PackageNotFoundError as missing:
            raise error from missing
        return ".".join(wheel.split(".")[:2])


def of_one_major(built):
    """The CUDA of the image, if the framework was built for that major."""
    here = runtime()
    if str(built).split(".")[0] != here.split(".")[0]:
        raise RuntimeError(f"built for CUDA {built}, and the image has {here}")
    return here


def nccl():
    value = number("libnccl.so.2", "ncclGetVersion", True)
    major, rest = (divmod(value, 10000) if value >= 10000 else divmod(value, 1000))
    return "%d.%d.%d" % (major, *divmod(rest, 100))


def libraries():
    attempt("cudnn", lambda: number("libcudnn.so.*", "cudnnGetVersion"))
    attempt("nccl", nccl)


def version(*names):
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    raise importlib.metadata.PackageNotFoundError(names[0])


def torch():
    import torch

    say("version", torch.__version__)
    of_torch(torch)
    attempt("flags", lambda: torch._C._cuda_getArchFlags() or "")


def of_torch(torch):
    say("cuda", torch.version.cuda)
    attempt("cudnn", torch.backends.cudnn.version)

    def nccl():
        value = torch.cuda.nccl.version()
        return ".".join(map(str, value)) if isinstance(value, tuple) else value

    attempt("nccl", nccl)
    try:
        say("triton", version("triton"))
    except importlib.metadata.PackageNotFoundError:
        pass


def tensorflow():
    import tensorflow as tf

    built = tf.sysconfig.get_build_info()
    say("version", version("tensorflow"))
    attempt("cuda", lambda: of_one_major(built["cuda_version"]))
    # The last of its list is machine code and PTX alike; a build for the processor has no list.
    flags = [flag.replace("compute_", "sm_") for flag in built.get("cuda_compute_capabilities", [])]
    say("flags", " ".join(flags))
    libraries()


def jax():
    import jax

    say("version", version("jax"))

    def built():
        for major in (13, 12):
            try:
                plugin = importlib.import_module(f"jax_cuda{major}_plugin._versions")
            except ModuleNotFoundError:
                continue
            return minor(plugin.cuda_runtime_build_version())
        raise ModuleNotFoundError("no CUDA plugin of JAX is in the image")

    importlib.import_module("jax.numpy")
    attempt("cuda", lambda: of_one_major(built()))
    libraries()


def cupy():
    import cupy

    say("version", cupy.__version__)
    driver = importlib.import_module("cupy_backends.cuda.api.driver")
    attempt("cuda", lambda: of_one_major(minor(driver.get_build_version())))
    # Compiled at run time: without these CuPy has no kernel.
    for name in ("nvrtc", "cublas", "cufft", "curand", "cusolver", "cusparse"):
        module = "cupy.cuda.cufft" if name == "cufft" else f"cupy_backends.cuda.libs.{name}"
        importlib.import_module(module)
    attempt("nccl", nccl)


def numba():
    from numba import cuda
    from numba import float32

    say("version", version("numba-cuda"))

    def compiles():
        def twice(values):
            at = cuda.grid(1)
            if at < values.size:
                values[at] *= 2

        ptx = cuda.compile_ptx(twice, (float32[:],), cc=(8, 0))[0]
        if ".visible .entry" not in ptx:
            raise RuntimeError("NVVM gave no kernel")
        return runtime()

    attempt("cuda", compiles)


def onnxruntime():
    import onnxruntime as ort

    say("version", version("onnxruntime-gpu"))
    info = importlib.import_module("onnxruntime.capi.build_and_package_info")

    def cuda():
        here = of_one_major(getattr(info, "cuda_version", "") or runtime())
        if "CUDAExecutionProvider" not in ort.get_available_providers():
            raise RuntimeError("it has no CUDA provider")
        # The provider is what needs CUDA; onnxruntime itself imports without.
        folder = os.path.dirname(info.__file__)
        for provider in ("shared", "cuda"):
            ctypes.CDLL(os.path.join(folder, f"libonnxruntime_providers_{provider}.so"), mode=ctypes.RTLD_GLOBAL)
        return here

    attempt("cuda", cuda)
    attempt("cudnn", lambda: number("libcudnn.so.*", "cudnnGetVersion"))


def vllm():
    import torch

    import vllm

    say("version", version("vllm"))
    importlib.import_module("vllm.sampling_params")
    of_torch(torch)


PROBES = {probe.__name__: probe for probe in (torch, tensorflow, jax, cupy, numba, onnxruntime, vllm)}

if len(sys.argv) > 2:
    exec(sys.argv[2])
    PROBES[sys.argv[1]] = facts  # noqa: F821: the script defines it

say("python", "%d.%d" % sys.version_info[:2])
PROBES[sys.argv[1]]()
say("end", "")
