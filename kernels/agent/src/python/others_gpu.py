# What TensorFlow, JAX, CuPy, Numba and ONNX Runtime must do on a GPU: the same few things, small. Prints `id<TAB>outcome<TAB>detail`.
import importlib
import importlib.util
import sys

np = A = B = None  # set when there is a framework, which brings NumPy


class SkipCheck(Exception):
    pass


def need(condition, text):
    if not condition:
        raise AssertionError(text)


def whole(*shape):
    return np.random.default_rng(7).integers(-8, 9, shape).astype(np.float64)


def tensorflow():
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    need(gpus, "TensorFlow sees no GPU")
    tf.config.experimental.enable_tensor_float_32_execution(False)

    def matmul(kind):
        with tf.device("/GPU:0"):
            return tf.matmul(tf.constant(A, kind), tf.constant(B, kind)).numpy()

    def conv():
        x, w = whole(2, 12, 14, 8), whole(3, 3, 8, 16)
        with tf.device("/GPU:0"):
            found = tf.nn.conv2d(tf.constant(x, "float32"), tf.constant(w, "float32"), 1, "VALID").numpy()
        return found, conv_nhwc(x, w)

    def graph():
        call = tf.function(lambda a, b: tf.matmul(a, b), jit_compile=True)
        return call(tf.constant(A, "float32"), tf.constant(B, "float32")).numpy()

    def gradient(x, w, y):
        with tf.device("/GPU:0"), tf.GradientTape() as tape:
            weights = tf.Variable(w.astype("float32"))
            loss = tf.reduce_mean((tf.matmul(tf.constant(x, "float32"), weights) - y.astype("float32")) ** 2)
        return tape.gradient(loss, weights).numpy()

    return matmul, conv, graph, gradient


def jax():
    import jax
    import jax.numpy as jnp

    gpus = [device for device in jax.devices() if device.platform in ("gpu", "cuda")]
    need(gpus, "JAX sees no GPU")
    high = jax.lax.Precision.HIGHEST

    def matmul(kind):
        return np.asarray(jnp.matmul(jnp.asarray(A, kind), jnp.asarray(B, kind), precision=high))

    def conv():
        x, w = whole(2, 12, 14, 8), whole(3, 3, 8, 16)
        found = jax.lax.conv_general_dilated(
            jnp.asarray(x, "float32"), jnp.asarray(w, "float32"), (1, 1), "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"), precision=high,
        )
        return np.asarray(found), conv_nhwc(x, w)

    def graph():
        return np.asarray(jax.jit(lambda a, b: jnp.matmul(a, b, precision=high))(A.astype("float32"), B.astype("float32")))

    def gradient(x, w, y):
        loss = lambda weights: ((jnp.matmul(x.astype("float32"), weights, precision=high) - y.astype("float32")) ** 2).mean()
        return np.asarray(jax.grad(loss)(jnp.asarray(w, "float32")))

    return matmul, conv, graph, gradient


def cupy():
    import cupy as cp

    need(cp.cuda.runtime.getDeviceCount(), "CuPy sees no GPU")

    def matmul(kind):
        return cp.asnumpy(cp.asarray(A, kind) @ cp.asarray(B, kind))

    def conv():
        raise SkipCheck("not-offered", "CuPy has no convolution of its own")

    def graph():
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            a = cp.asarray(A, "float32")
            out = a + a
            stream.synchronize()
            stream.begin_capture()
            cp.add(a, a, out=out)
            captured = stream.end_capture()
            a[...] = cp.asarray(2 * A, "float32")
            captured.launch(stream)
            stream.synchronize()
        need(np.array_equal(cp.asnumpy(out), (4 * A).astype("float32")), "the replay is wrong")
        return None

    return matmul, conv, graph, None


def numba():
    global cuda  # Among the globals, where Numba's simulator of a GPU looks for it.
    from numba import cuda

    need(cuda.is_available(), "Numba sees no GPU")
    @cuda.jit
    def product(a, b, c):
        row, column = cuda.grid(2)
        if row < c.shape[0] and column < c.shape[1]:
            total = 0.0
            for at in range(a.shape[1]):
                total += a[row, at] * b[at, column]
            c[row, column] = total

    def matmul(kind):
        if kind == "float16":
            raise SkipCheck("not-offered", "float16 is not tried with Numba")
        c = np.zeros((A.shape[0], B.shape[1]), kind)
        product[(12, 10), (16, 16)](A.astype(kind), B.astype(kind), c)
        return c

    def conv():
        raise SkipCheck("not-offered", "Numba has no convolution of its own")

    def graph():
        raise SkipCheck("not-offered", "Numba has no graphs of its own")

    return matmul, conv, graph, None


def field(number, value):
    """One field of a protobuf message: a whole number, or bytes."""
    def whole(value):
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes(out) + bytes([value])

    if isinstance(value, int):
        return whole(number << 3) + whole(value)
    value = value.encode() if isinstance(value, str) else value
    return whole(number << 3 | 2) + whole(len(value)) + value


def product_model(rows, inner, columns, kind):
    """An ONNX model of one MatMul, written by hand: the package that makes models is not in the image."""
    element = {"float32": 1, "float16": 10, "float64": 11}[kind]

    def tensor(name, *shape):
        sizes = b"".join(field(1, field(1, size)) for size in shape)
        return field(1, name) + field(2, field(1, field(1, element) + field(2, sizes)))

    node = field(1, "a") + field(1, "b") + field(2, "c") + field(4, "MatMul")
    graph = field(1, node) + field(2, "product") + field(11, tensor("a", rows, inner))
    graph += field(11, tensor("b", inner, columns)) + field(12, tensor("c", rows, columns))
    return field(1, 7) + field(7, graph) + field(8, field(2, 13))


def onnxruntime():
    import onnxruntime as ort

    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    need("CUDAExecutionProvider" in ort.get_available_providers(), "ONNX Runtime has no CUDA provider")

    def matmul(kind):
        model = product_model(A.shape[0], A.shape[1], B.shape[1], kind)
        # Without `use_tf32`, which 1.17 answers with the CPU provider: whole numbers are exact in TF32.
        session = ort.InferenceSession(model, providers=["CUDAExecutionProvider"])
        need(session.get_providers()[0] == "CUDAExecutionProvider", "the CUDA provider did not start")
        return session.run(None, {"a": A.astype(kind), "b": B.astype(kind)})[0]

    def conv():
        raise SkipCheck("not-offered", "a convolution is not tried with ONNX Runtime")

    def graph():
        raise SkipCheck("not-offered", "graphs are not tried with ONNX Runtime")

    return matmul, conv, graph, None


def conv_nhwc(x, w):
    rows, columns = x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1
    y = np.zeros((x.shape[0], rows, columns, w.shape[3]))
    for r in range(w.shape[0]):
        for s in range(w.shape[1]):
            y += x[:, r : r + rows, s : s + columns, :] @ w[r, s]
    return y


FRAMEWORKS = {"tensorflow": tensorflow, "jax": jax, "cupy": cupy, "numba": numba, "onnxruntime": onnxruntime}


def main():
    present = [name for name in FRAMEWORKS if importlib.util.find_spec(name)]
    wanted = sys.argv[1] if sys.argv[1] != "-" else (present or ["-"])[0]
    if wanted not in present:
        print("none", flush=True)
        return
    global np, A, B
    np = importlib.import_module("numpy")
    A, B = whole(192, 160), whole(160, 144)
    matmul, conv, graph, gradient = FRAMEWORKS[wanted]()

    def products():
        for kind in ("float64", "float32", "float16"):
            try:
                found = matmul(kind)
            except SkipCheck:
                continue
            if found.dtype == np.float64 or kind != "float64":
                need(np.array_equal(found.astype("float64"), (A @ B).astype(kind).astype("float64")), f"{kind}: wrong product")
        return "whole numbers, each element as the precision holds it"

    def convolution():
        found, right = conv()
        error = float(np.linalg.norm(found - right) / np.linalg.norm(right))
        need(error < 1e-5, f"relative error {error:.1e}")
        return f"within {error:.1e}"

    def graphs():
        found = graph()
        need(found is None or np.array_equal(found, (A @ B).astype("float32")), "the compiled product is wrong")
        return "compiled or captured, and right"

    def training():
        if gradient is None:
            raise SkipCheck("not-offered", f"{wanted} has no gradients")
        x, w, y = whole(96, 48), whole(48, 24), whole(96, 24)
        found, right = gradient(x, w, y), 2 * x.T @ (x @ w - y) / y.size
        error = float(np.linalg.norm(found - right) / np.linalg.norm(right))
        need(error < 1e-5, f"gradient: relative error {error:.1e}")
        return f"gradient within {error:.1e}"

    checks = {"framework-matmul": products, "framework-conv": convolution, "framework-graph": graphs, "framework-training": training}
    for name in sys.argv[2:]:
        try:
            if name not in checks:
                raise SkipCheck("not-offered", f"{wanted} does not have this")
            outcome, detail = "passed", checks[name]()
        except SkipCheck as skip:
            outcome, detail = f"skipped:{skip.args[0]}", skip.args[1]
        except Exception as error:  # noqa: BLE001: whatever the framework raises is the finding
            outcome, detail = "failed", f"{type(error).__name__}: {error}"
        print(f"{name}\t{outcome}\t{' '.join(detail.split())}", flush=True)


if __name__ == "__main__":
    main()
