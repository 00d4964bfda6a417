#!/usr/bin/env python3
"""Counts what makes the house large: `house.py`, or `house.py --write` to keep the numbers in `.ci/house`.

Only product code counts: Rust files of src, kernels and compat without the maintainers' program, without modules and functions behind
`#[cfg(test)]`. Ends with 1 if a number is larger than the one kept: they may only fall, and who has to raise one does so in the change
that needs it. Lines are kept in thousands and files in tens, rounded up, so that not every change touches them. The second column is
what they were at a commit, where the clone has it.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / ".ci/house"
FOLDERS = ["src", "kernels", "compat"]
BEFORE = "6517b34"
TEST = re.compile(r"^( *)#\[cfg\(test\)\]\n(?:\1(?:#\[|//).*\n)*\1(?:pub(?:\([a-z]+\))? )?(mod|fn|use|impl|struct|const|type)\b(.*)\n", re.M)
# A function with its indentation; rustfmt closes it at the same one.
FUNCTION = re.compile(r"^( *)(?:pub(?:\([a-z]+\))? )?(?:(?:async|const|unsafe|extern \"C\") )*fn \w+.*?^\1\}\n", re.M | re.S)


def without_tests(text):
    """The text without items behind `#[cfg(test)]`, and the names of test modules that are files."""
    files = []
    while found := TEST.search(text):
        indent, kind, rest = found.groups()
        end = found.end()
        if kind == "mod" and rest.endswith(";"):
            files.append(rest[1:-1])
        elif not rest.endswith((";", "}")):
            # Up to the line that closes it.
            close = re.compile(rf"^{indent}[}})\]]+;?\n", re.M).search(text, end)
            end = close.end() if close else len(text)
        text = text[: found.start()] + text[end:]
    return text, files


def product(root):
    """The product's files: path to text."""
    texts, tests = {}, set()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.rs")):
            if {"maintain", "tests"} & set(path.relative_to(root).parts) or path.stem.endswith("tests"):
                continue
            text, files = without_tests(path.read_text())
            texts[path] = text
            beside = path.parent if path.stem in ("mod", "lib", "main") else path.parent / path.stem
            tests |= {beside / f"{name}.rs" for name in files} | {beside / name for name in files}
    return {path: text for path, text in texts.items() if not tests & {path, *path.parents}}


def counts(root):
    texts = product(root).values()
    places = lambda pattern: sum(len(re.findall(pattern, text)) for text in texts)
    long = sum(found[0].count("\n") > 100 for text in texts for found in FUNCTION.finditer(text))
    lines = sum(text.count("\n") for text in texts)
    return {
        "lines": lines,
        "files": len(texts),
        "thousands of lines": -(-lines // 1000),
        "tens of files": -(-len(texts) // 10),
        "functions over 100 lines": long,
        "places of Session::open": places(r"\bSession::open\("),
        "parsers of a spec": places(r"parse::<(?:Requested)?Spec>\(\)|: (?:Requested)?Spec =|\bspec = [\w.]*\.parse\(\)|parsed: text\.parse\(\)"),
    }


def counts_of(commit):
    """The same at a commit; none if the clone is shallow and lacks it."""
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit, *FOLDERS], capture_output=True)
    if archive.returncode:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        return counts(pathlib.Path(folder))


def main():
    found, before = counts(ROOT), counts_of(BEFORE)
    print(f"   now  {BEFORE}")
    for name in ("lines", "files"):
        print(f"{found.pop(name):6}  {before.get(name, '-'):>7}  {name}")
    if sys.argv[1:] == ["--write"]:
        KEPT.write_text("".join(f"{number:5} {name}\n" for name, number in found.items()))
    kept = {name: int(number) for number, name in (line.split(None, 1) for line in KEPT.read_text().splitlines())}
    grown = 0
    for name, number in found.items():
        note = "" if number == kept[name] else f"  (.ci/house has {kept[name]})"
        print(f"{number:6}  {before.get(name, '-'):>7}  {name}{note}")
        grown += number > kept[name]
    if grown:
        print("a number has grown: `.ci/house.py --write` keeps it, in the change that says why")
    return bool(grown)


if __name__ == "__main__":
    sys.exit(main())
