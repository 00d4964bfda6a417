#!/usr/bin/env python3
"""Counts what makes the house large: `house.py`, or `house.py --write` to keep the numbers in `.ci/house`.

Only product code counts: Rust files of src, kernels and compat without the maintainers' program, without modules and functions behind
`#[cfg(test)]`. Ends with 1 if a number is larger than the one kept: they may only fall, and who has to raise one does so in the change
that needs it. Lines are kept in thousands and files in tens, rounded up, so that not every change touches them.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / ".ci/house"
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


def product():
    """The product's files: path to text."""
    texts, tests = {}, set()
    for folder in ("src", "kernels", "compat"):
        for path in sorted((ROOT / folder).rglob("*.rs")):
            if {"maintain", "tests"} & set(path.relative_to(ROOT).parts) or path.stem.endswith("tests"):
                continue
            text, files = without_tests(path.read_text())
            texts[path] = text
            beside = path.parent if path.stem in ("mod", "lib", "main") else path.parent / path.stem
            tests |= {beside / f"{name}.rs" for name in files} | {beside / name for name in files}
    return {path: text for path, text in texts.items() if not tests & {path, *path.parents}}


def counts():
    texts = product().values()
    places = lambda pattern: sum(len(re.findall(pattern, text)) for text in texts)
    long = sum(found[0].count("\n") > 100 for text in texts for found in FUNCTION.finditer(text))
    lines = sum(text.count("\n") for text in texts)
    print(f"{lines} lines in {len(texts)} files")
    return {
        "thousands of lines": -(-lines // 1000),
        "tens of files": -(-len(texts) // 10),
        "functions over 100 lines": long,
        "places of Session::open": places(r"\bSession::open\("),
        "parsers of a spec": places(r"parse::<Spec>\(\)|: Spec =|\bspec = [\w.]*\.parse\(\)"),
        "uses of Matrix::current": places(r"\bMatrix::current\(\)"),
    }


def main():
    found = counts()
    if sys.argv[1:] == ["--write"]:
        KEPT.write_text("".join(f"{number:5} {name}\n" for name, number in found.items()))
    kept = {name: int(number) for number, name in (line.split(None, 1) for line in KEPT.read_text().splitlines())}
    grown = 0
    for name, number in found.items():
        note = "" if number == kept[name] else f"  (.ci/house has {kept[name]})"
        print(f"{number:5} {name}{note}")
        grown += number > kept[name]
    if grown:
        print("a number has grown: `.ci/house.py --write` keeps it, in the change that says why")
    return bool(grown)


if __name__ == "__main__":
    sys.exit(main())
