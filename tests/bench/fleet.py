#!/usr/bin/env python3
"""Measures `verify --merge` of 1,000 reports, as launchers print them; with --slurm, `verify --on slurm`.

    cargo build --release && python3 tests/bench/fleet.py
    sudo python3 tests/bench/fleet.py --slurm     # needs slurmctld, slurmd, slurm-client, munge; a cluster of its own

A report has the 58 checks of a run on an H100 (tests/fixtures/gpu/H100/loop.json) and ten speeds; 5 nodes of 1,000 have a fault. They
are merged from one log and from a directory with a file for each; seconds and memory are those of the whole program, the page
is that of `--html`. Fails above 1 s, 200 MB or a page of 2 MB. Prints a
Markdown table.

--slurm: eight nodes on this machine, a `docker` that prints a report after 2 s in place of containers. The call is compared with an `srun`
of the same stand-in on the same nodes, in turn; fails if the median of five takes more than 2 s longer. ENVFORGE names another program.
"""
import base64
import gzip
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVFORGE = pathlib.Path(os.environ.get("ENVFORGE", ROOT / "target" / "release" / "envforge"))
NODES = 1_000
# Of the cluster: nodes, port of the controller (those of the nodes follow), runs.
CLUSTER, PORT, RUNS = 8, 27_100, 5
IMAGE = "box.test/team/torch@sha256:" + "a" * 64
STAND_IN = """#!/bin/bash
case $1 in run) ;; *) exit 0 ;; esac
sleep 2
line() { printf '{"id":"%s","stage":"gpu","outcome":"passed","detail":"fine","measured":{"gpu.0":"NVIDIA H200 (sm_90)"},"expected":{},"hint":null}\\n' "$1"; }
echo '{"schema":1,"agent":"envforge-agent"}'
line driver
line gemm-fp32-own
echo '{"done":true,"seconds":2}'
"""
# Nodes on one machine have one boot.
CAT = """#!/bin/bash
[ "$1" != /proc/sys/kernel/random/boot_id ] || { echo "boot-$SLURMD_NODENAME"; exit; }
exec /bin/cat "$@"
"""


def lines(number):
    run = json.load(open(ROOT / "tests/fixtures/gpu/H100/loop.json"))["runs"][0]
    checks = run["checks"]
    speeds = ["memory", "gemm-fp64", "gemm-fp32", "gemm-tf32", "gemm-fp16", "gemm-bf16", "gemm-fp8", "conv", "host-to-device", "device-to-host"]
    for at, name in enumerate(speeds):
        slow = 0.8 if number == 7 else 1.0
        value = (500 + 10 * at) * slow * (1 + (number * 37 % 20 - 10) / 2000)
        measured = {"gpu.0": "NVIDIA H100 80GB HBM3 (sm_90)", "median": f"{value:.3f}"}
        checks.append({"id": f"speed-{name}", "stage": "perf", "outcome": "passed", "detail": "fast", "measured": measured, "expected": {}, "hint": None})
    if number in (1, 2):
        next(check for check in checks if check["id"] == "gemm-large").update(outcome="failed", detail=f"{number} elements differ")
    text = [json.dumps({"schema": 1, "agent": "envforge-agent"})] + [json.dumps(check) for check in checks]
    return "\n".join(text + [json.dumps({"done": True, "seconds": 61.5})]) + "\n"


def report(number):
    node = f"node{number}"
    driver = "550.54.15" if number == 3 else "580.159.04"
    gpus = "".join(f"GPU-{node}-{gpu}, {driver}, 96.00.74, NVIDIA H100 80GB HBM3\n" for gpu in range(7 if number == 4 else 8))
    body = base64.b64encode(gzip.compress(lines(number).encode())).decode()
    encoded = base64.b64encode(gpus.encode()).decode()
    return (
        f"envforge-report 1 nonce=0123456789abcdef node={node} host={node} job=4711 boot=boot-{node} stage=end code=0 level=perf "
        f"kernel=6.1.0-28-amd64 runtime=apptainer agent={'a' * 64} began=1764300000 seconds=70 gpus={encoded} why= "
        f"sum={hashlib.sha256(body.encode()).hexdigest()[:16]} body={body} .\n"
    )


def merge(paths, folder):
    """Seconds, MB, bytes of the page, and the answer."""
    page = folder / "page.html"
    start = time.monotonic()
    command = [ENVFORGE, "verify", "--merge", *paths, "--json", "--html", page]
    child = subprocess.Popen(command, stdout=open(folder / "out.json", "w"), stderr=subprocess.PIPE)
    error = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) != 1:
        sys.exit(f"{command} failed: {error}")
    return time.monotonic() - start, usage.ru_maxrss / 1000, page.stat().st_size, json.load(open(folder / "out.json"))


class Cluster:
    """A munged, a slurmctld and a slurmd for each node, below a folder; ended with the block."""

    def __init__(self, folder):
        self.folder, self.daemons = folder, []

    def start(self, *command):
        process = subprocess.Popen(command, env={**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.daemons.append(process)

    def __enter__(self):
        at, host = self.folder, os.uname().nodename
        at.chmod(0o755)
        for number in range(1, CLUSTER + 1):
            (at / "spool" / f"node{number}").mkdir(parents=True)
        (at / "state").mkdir()
        (at / "munge.key").write_text("envforge" * 128)
        (at / "munge.key").chmod(0o600)
        conf = f"""ClusterName=envforge
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={PORT}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={at}/munge.socket
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd-%n.pid
SlurmdSpoolDir={at}/spool/%n
StateSaveLocation={at}/state
AccountingStorageType=accounting_storage/none
"""
        for number in range(1, CLUSTER + 1):
            conf += f"NodeName=node{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={PORT + number} CPUs=16 RealMemory=1000\n"
        (at / "slurm.conf").write_text(conf + "PartitionName=gpu Nodes=ALL Default=YES State=UP\n")
        (at / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        self.start("munged", "--force", "--foreground", f"--socket={at}/munge.socket", f"--key-file={at}/munge.key",
                   f"--pid-file={at}/munged.pid", f"--log-file={at}/munged.log", f"--seed-file={at}/munged.seed")
        self.start("slurmctld", "-D")
        for number in range(1, CLUSTER + 1):
            self.start("slurmd", "-D", "-N", f"node{number}")
        os.environ["SLURM_CONF"] = str(at / "slurm.conf")
        try:
            self.wait_idle()
        except BaseException:
            self.__exit__()
            raise
        return self

    @staticmethod
    def wait_idle():
        for _ in range(300):
            if subprocess.run(["sinfo", "-h", "-N", "-o", "%T"], capture_output=True, text=True).stdout.split().count("idle") == CLUSTER:
                return
            time.sleep(0.2)
        sys.exit("not all nodes are idle after a minute")

    def __exit__(self, *_):
        for process in reversed(self.daemons):
            process.terminate()
        for process in self.daemons:
            process.wait()


def timed(command, environment):
    start = time.monotonic()
    run = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if run.returncode:
        sys.exit(f"{command} failed: {run.stdout}{run.stderr}")
    return time.monotonic() - start, run.stdout


def slurm():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="envforge-bench-"))
    (folder / "bin").mkdir()
    for name, text in (("docker", STAND_IN), ("cat", CAT)):
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    with Cluster(folder) as cluster:
        environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder), "TMPDIR": str(folder)}
        srun = ["srun", f"--nodes={CLUSTER}", f"--ntasks={CLUSTER}", "--ntasks-per-node=1", "--exclusive", "--mem=0", "--mpi=none", "--label",
                "--chdir=/", "docker", "run"]
        verify = [ENVFORGE, "verify", IMAGE, "--on", "slurm", "--level", "static", "--json"]
        runs = []
        for _ in range(RUNS):
            alone, _ = timed(srun, environment)
            # A node is free again a moment after its job.
            cluster.wait_idle()
            ours, answer = timed(verify, environment)
            cluster.wait_idle()
            if json.loads(answer)["counts"]["ok"] != CLUSTER:
                sys.exit(f"not all nodes are ok: {answer}")
            runs.append((alone, ours))
    subprocess.run(["rm", "-r", folder], check=True)
    alone, ours = (sorted(column)[RUNS // 2] for column in zip(*runs))
    print(f"| {CLUSTER} nodes, 2 s each | s |\n|---|---|\n| srun of the stand-in | {alone:.2f} |\n| verify --on slurm | {ours:.2f} |")
    sys.exit(f"{ours - alone:.2f} s more than srun" if ours - alone > 2 else None)


def main():
    if sys.argv[1:] == ["--slurm"]:
        slurm()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="envforge-bench-"))
    reports = [report(number) for number in range(NODES)]
    (folder / "all.log").write_text("".join(reports))
    (folder / "reports").mkdir()
    for number, text in enumerate(reports):
        (folder / "reports" / f"node{number}.log").write_text(text)
    size = (folder / "all.log").stat().st_size
    print(f"{NODES} reports, {size / NODES / 1000:.1f} kB each\n\n| 1,000 reports | s | MB | page, kB | JSON, kB |\n|---|---|---|---|---|")
    wrong = []
    for name, path in (("one log", folder / "all.log"), ("a file each", folder / "reports")):
        runs = [merge([path], folder) for _ in range(3)]
        seconds, memory, page, answer = min(runs, key=lambda run: run[0])
        print(f"| {name} | {seconds:.2f} | {memory:.0f} | {page / 1000:.0f} | {(folder / 'out.json').stat().st_size / 1000:.0f} |")
        counts = answer["counts"]
        if counts != {"failed": 2, "no-report": 0, "slow": 1, "different": 2, "not-run": 0, "ok": NODES - 5}:
            wrong.append(f"{name}: {counts}")
        wrong += [f"{name}: {text}" for text, bad in ((f"{seconds:.2f} s", seconds > 1), (f"{memory:.0f} MB", memory > 200), (f"page of {page} bytes", page > 2_000_000)) if bad]
    subprocess.run(["rm", "-r", folder], check=True)
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
