# others_gpu.py with a real framework that has no GPU: `on_cpu.py SCRIPT jax|tensorflow CHECK...`. The framework says of its
# processor that it is a GPU; all else is its own.
import importlib
import os
import runpy
import sys
from types import SimpleNamespace

script, name = sys.argv[1:3]
os.environ.update(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
framework = importlib.import_module(name)
if name == "jax":
    framework.devices = lambda *_: [SimpleNamespace(platform="gpu")]
else:
    framework.config.set_soft_device_placement(True)
    framework.config.list_physical_devices = lambda kind: [kind]
sys.argv = [script, *sys.argv[2:]]
runpy.run_path(script, run_name="__main__")
