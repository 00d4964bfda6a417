#!/usr/bin/env python3
"""How long `compat abi` takes for real wheels: with the tables of the locked wheels cached, and with the wheels alone.

    cargo build --release && python3 tests/bench/abi.py target/release/envforge CACHE LOCK SPEC WHEEL...

WHEEL: NAME==VERSION of the package index, or a file. CACHE: the cache directory; what LOCK names is downloaded there first (4 GB for
examples/pytorch/envforge.lock), which is not measured. No engine is used and nothing of a wheel runs. Prints medians and the load.
"""
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 2
BOUNDS = {"tables cached": 5, "wheels cached, no tables": 20}


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    program, cache, lock, spec, *wheels = sys.argv[1:]
    with tempfile.TemporaryDirectory() as state:
        environment = {**os.environ, "ENVFORGE_CACHE_DIR": str(pathlib.Path(cache).resolve()), "ENVFORGE_STATE_DIR": state}

        def checked(wheel):
            """Seconds by the clock and of the processor, and the report."""
            start, used = time.monotonic(), processor_seconds()
            command = [program, "compat", "abi", wheel, "--spec", spec, "--lockfile", lock, "--json", "--quiet"]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            seconds = time.monotonic() - start, processor_seconds() - used
            if done.returncode not in (0, 1) or not done.stdout:
                sys.exit(f"{' '.join(command)}: {done.stderr}")
            return seconds, json.loads(done.stdout)

        for wheel in wheels:
            _, report = checked(wheel)
            times = {name: [] for name in BOUNDS}
            for _ in range(RUNS):
                for tables in pathlib.Path(cache, "records").glob("*/layers/symbols-1"):
                    shutil.rmtree(tables)
                times["wheels cached, no tables"].append(checked(wheel)[0])
                times["tables cached"].append(checked(wheel)[0])
            verdict = "fits" if report["fits"] else "does not fit"
            print(f"{report['wheel']} {verdict} {report['name']}, {len(report['libraries'])} libraries")
            for name, runs in times.items():
                clock, processor = (statistics.median(run[at] for run in runs) for at in (0, 1))
                print(f"  {name}: {clock:.1f} s, of the processor {processor:.1f} s (bound {BOUNDS[name]} s)")
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


main()
