# An ONNX Runtime without a GPU. FAKE_ONNXRUNTIME=1.17 does not know the option `use_tf32` and, as that release does,
# falls back to the CPU provider. FAKE_WRONG=matmul: a product is another.
import os


def get_available_providers():
    return ["CUDAExecutionProvider", "CPUExecutionProvider"]


class InferenceSession:
    def __init__(self, model, providers):
        name, options = providers[0] if isinstance(providers[0], tuple) else (providers[0], {})
        unknown = os.environ.get("FAKE_ONNXRUNTIME") == "1.17" and "use_tf32" in options
        self.providers = ["CPUExecutionProvider"] if unknown else [name, "CPUExecutionProvider"]

    def get_providers(self):
        return self.providers

    def run(self, outputs, inputs):
        product = inputs["a"] @ inputs["b"]
        product.rows[0][0] += os.environ.get("FAKE_WRONG") == "matmul"
        return [product]
