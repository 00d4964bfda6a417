"""The steps of gpu-day.sh. Each runs the agent, says what was expected and what came, and writes OUT/STEP.json."""

import atexit
import functools
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
GOOD_SKIPS = {"one-gpu", "compute-capability", "not-in-stack", "not-in-image", "not-offered", "not-reported", "no-expectation", "no-rdma"}
OTHERS = ["tensorflow", "jax", "cupy", "numba", "onnxruntime"]
LOOPS = int(os.environ.get("LOOPS", "20"))


def agent(words, limit=None, wrapper=(), **variables):
    """Runs the agent: its lines, exit code and seconds. Without a limit of its own each group has the agent's."""
    environment = {**os.environ, **variables}
    # The libraries of the Python that runs this are those of the image, and it is the first on PATH.
    environment.setdefault("VIRTUAL_ENV", sys.prefix)
    environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environment.get("PATH", "")
    root = variables.get("ROOT", ROOT)
    command = [*wrapper, AGENT, *words, "--json", "--root", root]
    if limit:
        command += ["--limit", str(limit)]
    began = time.time()
    done = finished(command, env=environment, timeout=480)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    checks = [line for line in lines if "id" in line]
    said = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("{"))
    return {"command": " ".join(words), "code": done.returncode, "seconds": round(time.time() - began, 2), "checks": checks,
            "stderr": done.stderr[-2000:], **({"said": said[-2000:]} if said else {})}


class OutOfTime(Exception):
    """The time of `lent` is over."""


# When the call of `lent` must be over; a step alone has no such end.
END = None


def finished(command, timeout, **options):
    """Runs a command like subprocess.run; at the end of `lent` it and its children are killed, and OutOfTime is raised."""
    left = timeout if END is None else min(timeout, END - time.time())
    if left <= 0:
        raise OutOfTime
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                          start_new_session=True, **options) as process:
        try:
            out, err = process.communicate(timeout=left)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired) and END is not None and time.time() >= END:
                raise OutOfTime from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


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
        done = finished(words, timeout=120)
        return {"command": " ".join(words), "code": done.returncode, "text": (done.stdout + done.stderr)[-20000:]}
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"command": " ".join(words), "code": None, "text": str(error)}


def has(module):
    return shell(sys.executable, "-c", f"import importlib.util as u,sys; sys.exit(u.find_spec('{module}') is None)")["code"] == 0


def inventory():
    """What the machine is, by nvidia-smi and the agent: driver, GPUs, health."""
    facts = [shell("nvidia-smi", "-q"), shell("nvidia-smi", "topo", "-m"), shell("ldd", "--version"), shell("uname", "-m"),
             shell(sys.executable, "-m", "pip", "list", "--format=json")]
    for fact in facts:
        # What tells one machine from another is left out.
        fact["text"] = re.sub(r"(Serial Number|UUID|GUID|GPU PDI|Host ID)( *: ).*", r"\1\2(left out)", fact["text"])
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


# Level perf but for the minute of products; PEAKS: a file of `peak.KEY=` lines for the GPU's model, as `envforge verify` passes them.
PERF = ["perf", "--stage", "perf", "--skip", "speed-sustained"] + (["--expect", os.environ["PEAKS"]] if "PEAKS" in os.environ else [])


def perf():
    """Level perf but for the minute of products: every speed once."""
    runs = [agent(PERF)]
    return runs, all_good(*runs), []


def sustained():
    """A minute of products, with clocks and temperature; SUSTAINED is the group's limit in seconds, four times its time."""
    runs = [agent(["run", "speed-sustained"], limit=os.environ.get("SUSTAINED"))]
    return runs, all_good(*runs), []


OWN = ["run", "memory", "gemm-own", "conv-own"]


def kernels_by_ptx():
    """Our kernels by the PTX inside the agent."""
    with tempfile.TemporaryDirectory() as empty:
        made = agent(OWN, ROOT=empty, VIRTUAL_ENV="")
    target = check(made, "gemm-fp32-own").get("measured", {}).get("target", "")
    bad = [] if "made ahead" in target else [f"the PTX inside the agent was not used: {target}"]
    return [made], all_good(made) + bad, []


def kernels_by_nvrtc():
    """Our kernels by the Python's NVRTC and by each of NVRTC's folders, which must be what compiled them."""
    runs, bad = [agent(OWN)], []
    for folder in filter(None, os.environ.get("NVRTC", "").split(":")):
        with tempfile.TemporaryDirectory() as empty:
            # The agent looks for libraries below its root alone.
            os.makedirs(empty + os.path.dirname(folder))
            os.symlink(folder, empty + folder)
            runs.append(agent(OWN, ROOT=empty, VIRTUAL_ENV="", LD_LIBRARY_PATH=f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"))
        target = check(runs[-1], "gemm-fp32-own").get("measured", {}).get("target", "")
        if not target.startswith("sm_"):
            bad.append(f"NVRTC of {folder} was not used: {target}")
    return runs, all_good(*runs) + bad, []


def kernels():
    """Our kernels by the PTX inside the agent, then by the Python's NVRTC and by each of NVRTC's folders."""
    return both(kernels_by_ptx(), kernels_by_nvrtc())


def both(one, other):
    return tuple(first + second for first, second in zip(one, other))


@functools.cache
def shim():
    """The library that plants faults, beside this script or built once; None without a compiler."""
    built = os.path.join(HERE, "shim.so")
    if os.path.exists(built):
        return built
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    built = os.path.join(folder, "shim.so")
    done = shell("cc", "-shared", "-fPIC", "-O2", "-o", built, os.path.join(HERE, "shim.c"), "-ldl")
    return built if done["code"] == 0 else None


# Fault: words, check, outcome, text of detail or hint. Those but the first are planted by the shim.
NEGATIVES = {
    "no GPU visible": (["run", "driver"], "driver", "failed", "NO_DEVICE|0 GPUs"),
    "flip": (["run", "memory"], "memory-copies", "failed", "came back changed"),
    "nothing": (["run", "gemm-own"], "gemm-fp32-own", "failed", "wrong|instead|NaN|differ"),
    "memory": (["run", "gemm-own"], "gemm-fp32-own", "skipped", "OUT_OF_MEMORY"),
    "taken": (["run", "gemm-own"], "gemm-fp32-own", "skipped", "DEVICE_UNAVAILABLE"),
    "fault": (["run", "gemm-own"], "gemm-fp32-own", "failed", "ILLEGAL_ADDRESS"),
    "stub": (["run", "driver"], "driver", "failed", "STUB"),
}


def negative(name):
    """One fault, which must be reported with its fix."""
    words, check_name, outcome, text = NEGATIVES[name]
    if name == "no GPU visible":
        variables = {"CUDA_VISIBLE_DEVICES": "-1", **FAULTS["invisible"]}
    elif name == "stub":  # The folder of a toolkit's stub libcuda.so, as libcuda.so.1.
        if not os.environ.get("STUBS"):
            return [], [], [{"skipped": "no STUBS: the stub of libcuda is not tried"}]
        variables = {"LD_LIBRARY_PATH": os.environ["STUBS"]}
    else:
        library = shim()
        if not library:
            return [], ["the shim is not built: put shim.so beside this script, or install cc"], []
        variables = {"LD_PRELOAD": library, "SHIM": name}
    result = agent(words, **variables)
    result["fault"] = name
    line = check(result, check_name)
    said, bad = f"{line['detail']} {line.get('hint')}", []
    if line["outcome"] != outcome or not re.search(text, said):
        bad.append(f"{name}: {check_name} is {line['outcome']}: {said}")
    elif not line.get("hint") and name not in ("flip", "nothing"):
        bad.append(f"{name}: {check_name} has no hint: {said}")
    return [result], bad, []


def negatives():
    """Each fault must be reported with its fix: an image that passes with it proves nothing."""
    found = ([], [], [])
    for name in NEGATIVES:
        found = both(found, negative(name))
    return found


# What a fake driver needs to behave so: the tests set it, a real one needs none.
FAULTS = {"invisible": json.loads(os.environ.get("FAKE_INVISIBLE", "{}"))}


def sanitizer():
    """compute-sanitizer over our kernels: memcheck, racecheck, initcheck, synccheck."""
    program = shutil.which(os.environ.get("SANITIZER", "compute-sanitizer"))
    if not program:
        return [], [], [{"skipped": "compute-sanitizer is not installed"}]
    runs, bad = [], []
    if shim():
        # It must be able to look into a kernel: the first buffer of each lies elsewhere than the kernel is told.
        planted = agent(["check", "gemm-own"], wrapper=[program, "--tool", "memcheck", "--error-exitcode", "99"], LD_PRELOAD=shim(), SHIM="stray")
        runs.append({**planted, "fault": "stray", "checks": []})
        if planted["code"] != 99 or "Invalid __global__" not in planted.get("said", ""):
            bad.append(f"memcheck does not see what a kernel reads: exit code {planted['code']}: {planted.get('said')}")
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
        script = LOOPBACK + before + "exec setpriv --reuid 50000 --regid 50000 --clear-groups --bounding-set=-all --no-new-privs \"$@\""
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


# As `docker run --network none` has it: no network but the loopback interface, which is up; 0x8914 sets flags, 0x41 is up and running.
LOOPBACK = f"{sys.executable} -c 'import fcntl,socket,struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack(\"16sh14x\", b\"lo\", 0x41))'; "

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
        while child is None and parent.poll() is None and time.time() - began < 60:
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


# What a package must be able to do without a GPU, and why it cannot be tried if it cannot.
PROBES = {
    "onnxruntime": ("import onnxruntime as o, sys; sys.exit('CUDAExecutionProvider' not in o.get_available_providers())",
                    "the package for the processor"),
    # numba-cuda up to 0.30.4 with NumPy 2.5: no kernel compiles.
    "numba": ("import importlib.util as u, numpy, sys; sys.exit(bool(u.find_spec('numba_cuda')) and not hasattr(numpy, 'row_stack'))",
              "its numba-cuda does not work with its NumPy"),
}


def lacks(name):
    """Why a framework of this Python cannot be tried; None if it can."""
    if not has(name):
        return "not installed"
    script, reason = PROBES.get(name, ("", ""))
    return reason if shell(sys.executable, "-c", script)["code"] else None


def frameworks():
    """The other frameworks of this Python, each by the script that images are checked with."""
    runs, notes = [], []
    for name in OTHERS:
        why = lacks(name)
        if why:
            notes.append({"skipped": f"{name}: {why}"})
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
    runs = [agent(PERF) for _ in range(5)]
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


def one_group(name):
    runs = [agent(["run", name])]
    return runs, all_good(*runs), []


def quick():
    """Level quick as a whole."""
    runs = [agent(["quick", "--stage", "gpu"])]
    return runs, all_good(*runs), [{"quick_seconds": runs[0]["seconds"], "quick_bound": 10}]


def full():
    """Level full as a whole."""
    runs = [agent(["full", "--stage", "gpu"])]
    return runs, all_good(*runs), []


def lent_parts():
    """What fifteen minutes on a GPU are spent on, the most important first: step and part, and what runs it."""
    of_group = lambda step, name: ((step, name), lambda: one_group(name))
    first = ["gemm-cublas", "conv-cudnn", "nccl", "memory"]
    frameworks_first = [name for name in GROUPS if name.startswith("framework-")]
    later = [name for name in GROUPS if name not in first and name not in frameworks_first and not name.endswith("-own")]
    yield ("kernels", "ptx"), kernels_by_ptx
    yield ("kernels", "nvrtc"), kernels_by_nvrtc
    yield from (of_group("groups", name) for name in first)
    yield ("quick", "all"), quick
    yield from ((("negatives", name), lambda name=name: negative(name)) for name in NEGATIVES)
    yield from (of_group("groups", name) for name in frameworks_first)
    yield ("inventory", "all"), inventory
    yield from (of_group("groups", name) for name in later)
    yield from (of_group("new-groups", name) for name in NEW_GROUPS)
    yield ("loop", "full"), full
    yield ("perf", "all"), perf
    yield from (((step, "all"), STEPS[step]) for step in ("frameworks", "confined", "sanitizer", "sustained"))


def records(folder):
    """The parts that calls of `lent` finished: a line each. The last line of one that was killed may be cut."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if not re.fullmatch(r"lent-[A-Z]\.jsonl", name):
            continue
        with open(os.path.join(folder, name)) as file:
            for line in file:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                found[(record["step"], record["part"])] = record
    return found


def lent(call):
    """One call of five minutes (LENT_SECONDS): what no earlier call finished, each part kept as soon as it ends. Earlier results: DONE, or OUT."""
    global END
    if call == "list":
        for step, part in dict(lent_parts()):
            print(step, part)
        return 0
    if not re.fullmatch("[A-Z]", call):
        sys.exit("usage: gpu-day.sh lent A | lent B | lent list")
    END = time.time() + float(os.environ.get("LENT_SECONDS", "290"))
    done = records(os.environ.get("DONE", OUT))
    failed = [key for key, record in done.items() if not record["as_expected"]]
    parts = dict(lent_parts())
    # What an earlier call finished but did not find as expected is tried again at the end.
    order = [key for key in parts if key not in done] + [key for key in parts if key in failed]
    worst = 0
    path = os.path.join(OUT, f"lent-{call}.jsonl")
    with open(path, "a") as file:
        if file.tell() and not open(path).read().endswith("\n"):
            file.write("\n")  # The cut line of a call that was killed.
        for step, part in order:
            began = time.time()
            try:
                runs, bad, notes = parts[(step, part)]()
            except OutOfTime:
                print(json.dumps({"step": step, "part": part, "out_of_time": True, "left": len(order) - order.index((step, part))}), flush=True)
                return worst
            except Exception as error:  # One part that cannot run must not cost the others.
                runs, bad, notes = [], [f"{type(error).__name__}: {error}"], []
            record = {"step": step, "part": part, "as_expected": not bad, "problems": bad, "seconds": round(time.time() - began, 1), "notes": notes, "runs": runs}
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())
            print(json.dumps({key: record[key] for key in ("step", "part", "as_expected", "problems", "seconds")}), flush=True)
            worst |= bool(bad)
    return worst


def replay(folder, model):
    """Makes the fixtures of MODEL from such a folder: tests/fixtures/gpu/MODEL/STEP.json. Ends with 1 if a part was not as expected."""
    target = os.path.join(os.path.dirname(HERE), "fixtures", "gpu", model)
    os.makedirs(target, exist_ok=True)
    steps, order = {}, list(dict(lent_parts()))
    found = records(folder)
    for step, part in sorted(found, key=lambda key: order.index(key) if key in order else len(order)):
        record = found[(step, part)]
        whole = steps.setdefault(step, {"step": step, "as_expected": True, "problems": [], "seconds": 0, "notes": [], "runs": []})
        whole["as_expected"] &= record["as_expected"]
        whole["seconds"] = round(whole["seconds"] + record["seconds"], 1)
        for key in ("problems", "notes", "runs"):
            whole[key] += record[key]
    for step, whole in steps.items():
        with open(os.path.join(target, f"{step}.json"), "w") as file:
            json.dump(whole, file, indent=1)
            file.write("\n")
        print(f"{target}/{step}.json: {len(whole['runs'])} runs, {'as expected' if whole['as_expected'] else whole['problems']}")
    return int(not steps or not all(whole["as_expected"] for whole in steps.values()))


def main():
    names = sys.argv[1:]
    if not names or names == ["list"]:
        for name, step in STEPS.items():
            print(f"{name:15} {(step.__doc__ or '').splitlines()[0] if step.__doc__ else ''}".rstrip())
        return 0
    if names[0] == "replay" and len(names) == 3:
        return replay(*names[1:])
    os.makedirs(OUT, exist_ok=True)
    if names[0] == "lent" and len(names) == 2:
        return lent(names[1])
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        sys.exit(f"unknown step: {', '.join(unknown)} (see `list`)")
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
