#!/usr/bin/env python3
"""Measures `verify --merge` of 1,000 reports, as launchers print them.

    cargo build --release && python3 tests/bench/fleet.py

A report has the 58 checks of a run on an H100 (tests/fixtures/gpu/H100/loop.json) and ten speeds; 5 nodes of 1,000 have a fault. They
are merged from one log and from a directory with a file for each; seconds and memory are those of the whole program, the page
is that of `--html`. Fails above 1 s, 200 MB or a page of 2 MB. Prints a
Markdown table.
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
ENVFORGE = ROOT / "target" / "release" / "envforge"
NODES = 1_000


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


def main():
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
