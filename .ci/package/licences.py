#!/usr/bin/env python3
"""The licence texts of the crates that are compiled into the program, as one text on standard output.

Reads `cargo metadata` and each crate's own files. A crate without a licence file is listed with the texts that others have
for the same licence; a licence that no crate has a text of is an error.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What a crate calls its licence files.
NAMES = re.compile(r"^(licen[cs]e|copying|notice|unlicense|copyright)", re.IGNORECASE)
# How a text begins that stands for a licence: for crates that have none of their own.
STANDARD = {
    "MIT": "Permission is hereby granted, free of charge",
    "Apache-2.0": "Version 2.0, January 2004",
    "ISC": "Permission to use, copy, modify, and/or distribute this software for any",
    "BSD-3-Clause": "Neither the name of",
    "Zlib": "This software is provided 'as-is'",
    "MPL-2.0": "Mozilla Public License Version 2.0",
    "Unicode-3.0": "UNICODE LICENSE V3",
}


def text():
    """The whole text."""
    crates = used(metadata())
    own = {crate["id"]: files(crate) for crate in crates}
    texts = sorted({body for found in own.values() for body in found.values()})
    groups = {}
    lacking = []
    for crate in crates:
        found = own[crate["id"]]
        name = f"{crate['name']} {crate['version']} ({crate.get('license') or 'see the text'})"
        if not found:
            lacking.append((name, standard(crate, texts)))
        for body in found.values():
            groups.setdefault(body, []).append(name)
    out = "Licences of the crates that are part of envforge.\n\n"
    out += "".join(f"{crate['name']} {crate['version']}: {crate.get('license') or 'see the text'}\n" for crate in crates)
    for name, body in lacking:
        groups.setdefault(body, []).append(name)
    for body, names in sorted(groups.items(), key=lambda it: it[1][0]):
        out += "\n" + "=" * 100 + "\n" + "\n".join(names) + "\n" + "=" * 100 + "\n\n" + body + "\n"
    return out


def metadata():
    """What cargo says of the workspace, as locked, for this platform."""
    host = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout
    host = re.search(r"^host: (.+)$", host, re.MULTILINE).group(1)
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host]
    run = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout)


def used(metadata):
    """The crates that the program is linked from: normal dependencies of envforge, and theirs."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(id for id, package in packages.items() if package["name"] == "envforge" and package["source"] is None)
    seen, open_ = set(), [root]
    while open_:
        for dependency in nodes[open_.pop()]["deps"]:
            normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if normal and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                open_.append(dependency["pkg"])
    found = [packages[id] for id in seen if packages[id]["source"] is not None]
    return sorted(found, key=lambda crate: (crate["name"], crate["version"]))


def files(crate):
    """The crate's licence files, by name: those in its folder, and those in a folder `licenses`."""
    folder = Path(crate["manifest_path"]).parent
    places = [folder, *(it for it in sorted(folder.iterdir()) if it.is_dir() and NAMES.match(it.name))]
    found = {}
    for place in places:
        for file in sorted(place.iterdir()):
            named = NAMES.match(file.name) or place != folder
            if file.is_file() and named and file.suffix not in {".rs", ".toml", ".py", ".html"}:
                found[str(file.relative_to(folder))] = file.read_text(errors="replace").strip()
    given = crate.get("license_file")
    if given and (folder / given).is_file():
        found[given] = (folder / given).read_text(errors="replace").strip()
    return found


def standard(crate, texts):
    """A text for a crate that has none: that of the first of its licences for which another crate has one."""
    for licence in re.findall(r"[A-Za-z0-9.-]+", crate.get("license") or ""):
        if licence in STANDARD:
            begins = STANDARD[licence]
            found = [body for body in texts if begins in " ".join(body.split())]
            if found:
                return min(found, key=len)
    sys.exit(f"no licence text for {crate['name']} {crate['version']} ({crate.get('license')})")


if __name__ == "__main__":
    sys.stdout.write(text())
