# A script of the agent with a real framework that has no GPU: `on_cpu.py SCRIPT jax|tensorflow|torch|onnxruntime|numba CHECK...`. The
# framework says of its processor that it is a GPU; all else is its own. Numba and Triton simulate a GPU themselves.
import contextlib
import importlib
import importlib.util
import os
import sys
from types import SimpleNamespace

# The ranks that a script starts have its arguments, not these.
script, name = os.environ.setdefault("ON_CPU", "\t".join(sys.argv[1:3])).split("\t")
os.environ.update(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3", NUMBA_ENABLE_CUDASIM="1", TRITON_INTERPRET="1")


class Torch:
    """PyTorch as the script sees it: two GPUs of capability 9.0, which are the processor. PyTorch itself stays as it is."""

    def __init__(self):
        import torch
        import torch.distributed

        start, distributed = torch.distributed.init_process_group, torch.nn.parallel.DistributedDataParallel
        torch.distributed.init_process_group = lambda kind, **options: start("gloo", **options)
        torch.nn.parallel.DistributedDataParallel = lambda net, device_ids: distributed(net)
        self.real = torch
        self.cuda = SimpleNamespace(
            device_count=lambda: 2, get_device_name=lambda *_: "a processor", get_device_capability=lambda *_: (9, 0),
            device=lambda *_: contextlib.nullcontext(), synchronize=lambda: None, set_device=lambda *_: None,
        )

    def __getattr__(self, name):
        return getattr(self.real, name)

    def device(self, kind, index):
        return self.real.device("cpu")

    def autocast(self, kind, **options):
        return self.real.autocast("cpu", **options)


framework = importlib.import_module(name)
if name == "jax":
    framework.devices = lambda *_: [SimpleNamespace(platform="gpu")]
elif name == "tensorflow":
    framework.config.set_soft_device_placement(True)
    framework.config.list_physical_devices = lambda kind: [kind]
elif name == "onnxruntime":
    session = framework.InferenceSession

    def on_processor(model, providers):
        made = session(model, providers=["CPUExecutionProvider"])
        return SimpleNamespace(get_providers=lambda: providers, run=made.run)

    framework.get_available_providers = lambda: ["CUDAExecutionProvider"]
    framework.InferenceSession = on_processor

# Under a name of its own: the ranks that it starts import this file first, and find it there.
spec = importlib.util.spec_from_file_location("agent_script", script)
agent_script = sys.modules["agent_script"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(agent_script)
if name == "torch":
    agent_script.torch = Torch()
if __name__ == "__main__":
    sys.argv = [script, *sys.argv[3 if name == "torch" else 2:]]
    agent_script.main()
