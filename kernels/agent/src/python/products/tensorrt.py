# TensorRT (package tensorrt). A network is built and run with memory of the CUDA runtime, by ctypes: no other package is needed.


def facts():
    import tensorrt

    say("version", version("tensorrt"))

    def cuda():
        # The library itself was loaded by the import; the version of its header is in it.
        if tensorrt.__version__.split(".")[:2] != version("tensorrt").split(".")[:2]:
            raise RuntimeError(f"the library is {tensorrt.__version__}")
        return runtime()

    attempt("cuda", cuda)
    attempt("cudnn", lambda: number("libcudnn.so.*", "cudnnGetVersion"))


def kernel():
    import ctypes
    import glob
    import os
    import sysconfig

    import numpy as np
    import tensorrt as trt

    home = os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "*", "lib", "libcudart.so.*")
    cuda = ctypes.CDLL(sorted(glob.glob(home))[0])

    def done(status):
        need(status == 0, f"the CUDA runtime says {status}")

    def memory(size):
        pointer = ctypes.c_void_p()
        done(cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)))
        return pointer

    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    rows, inner, columns = 24, 32, 16
    a = np.array([[float((7 * r + c) % 13 - 6) for c in range(inner)] for r in range(rows)], dtype="float32")
    b = np.array([[float((5 * r + 3 * c) % 11 - 5) for c in range(columns)] for r in range(inner)], dtype="float32")
    left = network.add_input("a", trt.float32, a.shape)
    right = network.add_input("b", trt.float32, b.shape)
    product = network.add_matrix_multiply(left, trt.MatrixOperation.NONE, right, trt.MatrixOperation.NONE)
    relu = network.add_activation(product.get_output(0), trt.ActivationType.RELU)
    network.mark_output(relu.get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    need(plan is not None, "TensorRT cannot build the network")
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    context = engine.create_execution_context()
    out = np.zeros((rows, columns), dtype="float32")
    pointers = [memory(array.nbytes) for array in (a, b, out)]
    for pointer, array in zip(pointers, (a, b)):
        done(cuda.cudaMemcpy(pointer, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes), 1))
    need(context.execute_v2([pointer.value for pointer in pointers]), "TensorRT cannot run the network")
    done(cuda.cudaMemcpy(out.ctypes.data_as(ctypes.c_void_p), pointers[2], ctypes.c_size_t(out.nbytes), 2))
    for pointer in pointers:
        done(cuda.cudaFree(pointer))
    # Whole numbers: exact in TF32, too.
    need(out.tolist() == np.maximum(a @ b, 0).tolist(), "the network's result is wrong")
    return f"a network of a product and ReLU built and run by TensorRT {trt.__version__}, exact"
