#!/usr/bin/env python3
"""Makes a `device_code` row of compat/ from an image: the device code of its libraries, and the machine code of each architecture.

    envforge size IMAGE --by gpu --json | tests/bench/device_code.py pytorch 2.15.0 cu132 x86_64
"""
import json
import sys


def main():
    framework, version, cuda, machine = sys.argv[1:]
    libraries = json.load(sys.stdin)["libraries"]
    if any(library.get("unknown") for library in libraries):
        sys.exit("the code of a library is unknown: no row")
    code = {}
    for library in libraries:
        for target, size in library["code"].items():
            code[target] = code.get(target, 0) + size
    print(f'[[device_code]]\nframework = "{framework}"\nversion = "{version}"\ncuda = "{cuda}"\nmachine = "{machine}"')
    print(f"libraries = {len(libraries)}\nmegabytes = {round(sum(code.values()) / 1e6)}")
    machine_code = sorted((int(target[3:]), round(size / 1e6)) for target, size in code.items() if target.startswith("sm_"))
    parts = [f'"{target // 10}.{target % 10}" = {size}' for target, size in machine_code if size]
    print(f"machine_code = {{ {', '.join(parts)} }}")


main()
