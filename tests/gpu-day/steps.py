"""The steps of gpu-day.sh. Each runs the agent, says what was expected and what came, and writes OUT/STEP.json."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

AGENT = os.path.abspath(os.environ["AGENT"])
OUT = os.environ["OUT"]
ROOT = os.environ.get("ROOT", "/")
HERE = os.path.dirname(os.path.abspath(__file__))
GROUPS = "driver health memory gemm-own gemm-cublas gemm-large conv-own conv-cudnn nccl framework-gpu framework-full framework-train framework-ddp".split()
# Those that came later and have run on no GPU.
NEW_GROUPS = "math-libraries nccl-more nccl-processes memory-all memory-mapped memory-ipc framework-generate product".split()
# A skip for one of these reasons is as expected: the machine or the Python lacks something.
GOOD_SKIPS = {"one-gpu", "compute-capability", "not-in-stack", "not-in-image", "not-offered", "not-reported", "no-expectation"}
OTHERS = ["tensorflow", "jax", "cupy", "numba", "onnxruntime"]
LOOPS = int(os.environ.get("LOOPS", "20"))


def agent(words, limit=None, wrapper=(), **variables):
    """Runs the agent: its lines, exit code and seconds. Without a limit of its own each group has the agent's."""
    environment = {**os.environ, **variables}
    # The libraries of the Python that runs this are those of the image.
    environment.setdefault("VIRTUAL_ENV", sys.prefix)
    root = variables.get("ROOT", ROOT)
    command = [*wrapper, AGENT, *words, "--json", "--root", root]
    if limit:
        command += ["--limit", str(limit)]
    began = time.time()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=480)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    checks = [line for line in lines if "id" in line]
    return {"command": " ".join(words), "code": done.returncode, "seconds": round(time.time() - began, 2), "checks": checks,
            "stderr": done.stderr[-2000:]}


def check(result, name):
    return next((line for line in result["checks"] if line["id"] == name), {"outcome": "absent", "detail": "no line"})


def problems_of(result):
    """What is neither passed nor skipped for a reason named beforehand."""
    bad = [f"{line['id']}: {line['outcome']}: {line['detail']}" for line in result["checks"]
           if line["outcome"] not in ("passed", "skipped") or line.get("skip", "one-gpu") not in GOOD_SKIPS]
    if not result["checks"]:
        bad.append(f"{result['command']}: the agent printed nothing: {result['stderr'][-300:]}")
    return bad


def all_good(*results):
    return [problem for result in results for problem in problems_of(result)]


def shell(*words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=120)
        return {"command": " ".join(words), "code": done.returncode, "text": (done.stdout + done.stderr)[-20000:]}
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"command": " ".join(words), "code": None, "text": str(error)}


def has(module):
    return shell(sys.executable, "-c", f"import importlib.util as u,sys; sys.exit(u.find_spec('{module}') is None)")["code"] == 0


def inventory():
    """What the machine is, by nvidia-smi and the agent: driver, GPUs, health."""
    facts = [shell("nvidia-smi", "-q"), shell("nvidia-smi", "topo", "-m"), shell("ldd", "--version"), shell("uname", "-a"),
             shell(sys.executable, "-m", "pip", "list", "--format=json")]
    runs = [agent(["run", "driver", "health"])]
    return runs, all_good(*runs), facts


def groups():
    """Each group of checks on a GPU, alone."""
    runs = [agent(["run", group]) for group in GROUPS]
    return runs, all_good(*runs), []


def new_groups():
    """The checks that came last: libraries of mathematics, further collectives, all of the memory, vLLM."""
    runs = [agent(["run", group]) for group in NEW_GROUPS]
    return runs, all_good(*runs), []


def perf():
    """Level perf but for the minute of products: every speed once."""
    runs = [agent(["perf", "--stage", "perf", "--skip", "speed-sustained"])]
    return runs, all_good(*runs), []


def sustained():
    """A minute of products, with clocks and temperature; SUSTAINED is the group's limit in seconds, four times its time."""
    runs = [agent(["run", "speed-sustained"], limit=os.environ.get("SUSTAINED"))]
    return runs, all_good(*runs), []


def kernels():
    """Our kernels by the PTX inside the agent, then by the Python's NVRTC and by each of NVRTC's folders."""
    words = ["run", "memory", "gemm-own", "conv-own"]
    own = agent(words)
    with tempfile.TemporaryDirectory() as empty:
        made = agent(words, ROOT=empty, VIRTUAL_ENV="")
        runs = [own, made]
        for folder in os.environ.get("NVRTC", "").split(":"):
            if folder:
                runs.append(agent(words, ROOT=empty, VIRTUAL_ENV="", LD_LIBRARY_PATH=f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"))
    bad = all_good(*runs)
    target = check(made, "gemm-fp32-own").get("measured", {}).get("target", "")
    if "made ahead" not in target:
        bad.append(f"the PTX inside the agent was not used: {target}")
    return runs, bad, []


def shim():
    built = os.path.join(HERE, "shim.so")
    if os.path.exists(built):
        return built, None
    folder = tempfile.mkdtemp()
    built = os.path.join(folder, "shim.so")
    done = shell("cc", "-shared", "-fPIC", "-O2", "-o", built, os.path.join(HERE, "shim.c"), "-ldl")
    return (built, folder) if done["code"] == 0 else (None, folder)


def negatives():
    """Each fault must be reported with its fix: an image that passes with it proves nothing."""
    library, folder = shim()
    runs, bad = [], []

    def expect(name, words, check_name, outcomes, text, **variables):
        result = agent(words, **variables)
        result["fault"] = name
        line = check(result, check_name)
        runs.append(result)
        said = f"{line['detail']} {line.get('hint')}"
        if line["outcome"] not in outcomes or not re.search(text, said):
            bad.append(f"{name}: {check_name} is {line['outcome']}: {said}")
        elif not line.get("hint") and name not in ("flip", "nothing"):
            bad.append(f"{name}: {check_name} has no hint: {said}")

    expect("no GPU visible", ["run", "driver"], "driver", ["failed"], "NO_DEVICE|0 GPUs", CUDA_VISIBLE_DEVICES="-1", **FAULTS["invisible"])
    if library:
        one = {"LD_PRELOAD": library}
        expect("flip", ["run", "memory"], "memory-copies", ["failed"], "came back changed", SHIM="flip", **one)
        expect("nothing", ["run", "gemm-own"], "gemm-fp32-own", ["failed"], "wrong|instead|NaN|differ", SHIM="nothing", **one)
        expect("memory", ["run", "gemm-own"], "gemm-fp32-own", ["skipped"], "OUT_OF_MEMORY", SHIM="memory", **one)
        expect("taken", ["run", "gemm-own"], "gemm-fp32-own", ["skipped"], "DEVICE_UNAVAILABLE", SHIM="taken", **one)
        expect("fault", ["run", "gemm-own"], "gemm-fp32-own", ["failed"], "ILLEGAL_ADDRESS", SHIM="fault", **one)
    else:
        bad.append("the shim is not built: put shim.so beside this script, or install cc")
    stubs = os.environ.get("STUBS")  # The folder of a toolkit's stub libcuda.so, as libcuda.so.1.
    if stubs:
        expect("stub", ["run", "driver"], "driver", ["failed"], "STUB", LD_LIBRARY_PATH=stubs)
    if folder:
        shutil.rmtree(folder)
    return runs, bad, [] if stubs else [{"skipped": "no STUBS: the stub of libcuda is not tried"}]


# What a fake driver needs to behave so: the tests set it, a real one needs none.
FAULTS = {"invisible": json.loads(os.environ.get("FAKE_INVISIBLE", "{}"))}


def sanitizer():
    """compute-sanitizer over our kernels: memcheck, racecheck, initcheck, synccheck."""
    program = shutil.which(os.environ.get("SANITIZER", "compute-sanitizer"))
    if not program:
        return [], [], [{"skipped": "compute-sanitizer is not installed"}]
    runs, bad = [], []
    for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
        for group in ("memory", "gemm-own", "conv-own"):
            # `check` runs in the same process, which the tool watches.
            result = agent(["check", group], wrapper=[program, "--tool", tool, "--error-exitcode", "99"])
            runs.append(result)
            if result["code"] == 99:
                bad.append(f"{tool} on {group}: {result['stderr'][-300:]}")
            bad += problems_of(result)
    return runs, bad, []


def confined():
    """As another user without capabilities or a network, with a small /dev/shm and a read-only root; beside a program that holds the memory; stopped."""
    runs, bad, notes = [], [], []
    for name, before in CONFINED.items():
        script = before + "exec setpriv --reuid 50000 --regid 50000 --clear-groups --bounding-set=-all --no-new-privs \"$@\""
        wrapper = ["unshare", "--net", "--mount", "sh", "-c", script, "sh"]
        if os.geteuid() != 0 or shell(*wrapper, "true")["code"] != 0:
            notes.append({"skipped": f"{name}: no root, or the machine does not allow it"})
            continue
        result = agent(["run", "driver", "memory", "gemm-own", "gemm-cublas", "conv-cudnn", "nccl"], wrapper=wrapper)
        result["confined"] = name
        runs.append(result)
        bad += problems_of(result)
    if has("torch"):
        hog = ("import sys,torch\nfree,_=torch.cuda.mem_get_info()\nheld=torch.empty(max(free-(1<<30),1),dtype=torch.uint8,device='cuda')\n"
               "print('held',flush=True)\nsys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", hog], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            if holder.stdout.readline().strip() == "held":
                result = agent(["quick", "--stage", "gpu"])
                runs.append(result)
                failed = [f"{line['id']}: {line['detail']}" for line in result["checks"] if line["outcome"] == "failed"]
                bad += [f"beside a program that holds the memory: {text}" for text in failed]
            else:
                notes.append({"skipped": "torch cannot hold the GPU's memory"})
            holder.stdin.close()
    else:
        notes.append({"skipped": "no torch: nobody holds the GPU's memory"})
    result = stopped()
    runs.append(result)
    line = check(result, "memory-copies")
    if line["outcome"] != "errored" or "did not finish within" not in line["detail"]:
        bad.append(f"a stopped child: {line}")
    return runs, bad, notes


# What is done as root before the agent starts as another user. A root that takes a file is not read-only: that ends it.
SMALL = "mount -t tmpfs -o size=64k none /dev/shm 2>/dev/null; "
CONFINED = {
    "small /dev/shm": SMALL,
    "read-only root": SMALL + "mount -t tmpfs -o mode=1777 none /mnt && mount -o remount,bind,ro / || exit 97; "
                              "touch /envforge-writable 2>/dev/null && exit 98; export TMPDIR=/mnt; ",
}


def children(pid):
    """The processes that any thread of that process started."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += [int(child) for child in file.read().split()]
        except OSError:
            pass  # A thread that has just ended.
    return found


def is_check(pid):
    """Whether the process is a check; before its exec it is the agent's own copy, which must not be stopped."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[1:2] == [b"check"]
    except OSError:
        return False


def stopped():
    """The agent with a child that is stopped: its limit must end it."""
    command = [AGENT, "run", "memory", "--json", "--root", ROOT, "--limit", "5"]
    environment = {**os.environ, "VIRTUAL_ENV": os.environ.get("VIRTUAL_ENV", sys.prefix)}
    began = time.time()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        child = None
        while child is None and parent.poll() is None and time.time() - began < 5:
            child = next((pid for pid in children(parent.pid) if is_check(pid)), None)
            time.sleep(0.002)
        if child:
            os.kill(child, signal.SIGSTOP)
        try:
            text, errors = parent.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            for process in (child, parent.pid):
                if process:
                    os.kill(process, signal.SIGKILL)
            text, errors = parent.communicate()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {"command": "run memory, stopped", "code": parent.returncode, "seconds": round(time.time() - began, 2),
            "checks": [line for line in lines if "id" in line], "stderr": errors[-2000:]}


def frameworks():
    """The other frameworks of this Python, each by the script that images are checked with."""
    runs, notes = [], []
    for name in OTHERS:
        if not has(name):
            notes.append({"skipped": f"{name} is not installed"})
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as expect:
            expect.write(f"framework={name}\n")
            expect.flush()
            runs.append(agent(["run", "framework-gpu", "framework-train", "--expect", expect.name]))
    return runs, all_good(*runs), notes


TORCH_SPEED = """
import json, time, torch
found = {}
for kind in (torch.float16, torch.bfloat16, torch.float32):
    a, b = (torch.randn(8192, 8192, device="cuda").to(kind) for _ in range(2))
    rates = []
    for _ in range(12):
        torch.cuda.synchronize(); began = time.perf_counter()
        for _ in range(10): a @ b
        torch.cuda.synchronize(); rates.append(10 * 2 * 8192**3 / (time.perf_counter() - began) / 1e12)
    found[str(kind)] = sorted(rates[3:])[4]
print(json.dumps(found))
"""


def perf_five():
    """How far five runs differ, and what torch measures for the same products."""
    runs = [agent(["perf", "--stage", "perf", "--skip", "speed-sustained"]) for _ in range(5)]
    medians = {}
    for result in runs:
        for line in result["checks"]:
            if "median" in line.get("measured", {}):
                medians.setdefault(line["id"], []).append(float(line["measured"]["median"]))
    beside = shell(sys.executable, "-c", TORCH_SPEED) if has("torch") else {"skipped": "no torch"}
    return runs, all_good(*runs), [{"medians": medians}, {"torch": beside}]


def nccl_two_ranks():
    """From NCCL 2.30 two ranks share a GPU if asked; an older one skips what needs two."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    runs = [agent(["run", "nccl"], CUDA_VISIBLE_DEVICES=first)]
    return runs, all_good(*runs), [{"detail": check(runs[0], "nccl-broadcast")["detail"]}]


def loop():
    """Level full again and again within eight minutes: no outcome may change. And the seconds of level quick."""
    quick = agent(["quick", "--stage", "gpu"])
    seen, runs, began = {}, [quick], time.time()
    for _ in range(LOOPS):
        if time.time() - began > 400:
            break
        result = agent(["full", "--stage", "gpu"])
        runs.append(result)
        for line in result["checks"]:
            seen.setdefault(line["id"], set()).add(line["outcome"])
    bad = all_good(*runs) + [f"{name} was {', '.join(sorted(outcomes))}" for name, outcomes in seen.items() if len(outcomes) > 1]
    return runs[:2], bad, [{"rounds": len(runs) - 1, "quick_seconds": quick["seconds"], "quick_bound": 10}]


STEPS = {
    "inventory": inventory, "groups": groups, "new-groups": new_groups, "perf": perf, "sustained": sustained, "kernels": kernels,
    "negatives": negatives, "sanitizer": sanitizer, "confined": confined, "frameworks": frameworks, "perf-five": perf_five,
    "nccl-two-ranks": nccl_two_ranks, "loop": loop,
}


def main():
    names = sys.argv[1:]
    if not names or names == ["list"]:
        for name, step in STEPS.items():
            print(f"{name:15} {(step.__doc__ or '').splitlines()[0] if step.__doc__ else ''}".rstrip())
        return 0
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        sys.exit(f"unknown step: {', '.join(unknown)} (see `list`)")
    os.makedirs(OUT, exist_ok=True)
    worst = 0
    for name in names:
        began = time.time()
        runs, bad, notes = STEPS[name]()
        report = {"step": name, "as_expected": not bad, "problems": bad, "seconds": round(time.time() - began, 1), "notes": notes, "runs": runs}
        with open(os.path.join(OUT, f"{name}.json"), "w") as file:
            json.dump(report, file, indent=1)
        print(json.dumps({key: report[key] for key in ("step", "as_expected", "problems", "seconds")}), flush=True)
        worst |= bool(bad)
    return worst


if __name__ == "__main__":
    sys.exit(main())
