#!/usr/bin/env python3
"""Compares two envforge programs: nothing may change but words.

    tests/same.py BEFORE AFTER [--contexts] [--may-differ FILE]... [--keep DIR]

`plan --json` and `list --json` of the cases below must be equal with the same exit code, but for sentences (`because`, `text`,
`hint`, `detail`), and so must the commands, arguments, options and values in the `--help` of every verb. With --contexts, which needs a
container engine and the distribution's mirror, what `export dockerfile` writes for the locks of three examples must be equal too, but
for labels, comments and the agent, with --images also the content digests of their images, which both programs build; a file of templates/files that is named with
--may-differ may differ, and its diff is printed. Ends with 1 if anything else differs. Needs nothing but Python 3.11.
"""

import argparse
import difflib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
SENTENCES = {"because", "text", "hint", "detail"}

# Every product; versions, refusals, targets, flavours, bases, processors.
PLANS = """
pytorch-cuda
pytorch-cuda:2.15
pytorch-cuda:2.11-cu130
pytorch-cuda:2.9
pytorch-cuda:2.8
pytorch-cuda:2.8-cu128
pytorch-cuda:2.8-cu128-devel
pytorch-cuda:2.8-cu129-py3.13
pytorch-cuda:2.8.0-cu126-py3.9
pytorch-cuda:2.8-cu118 --target any
pytorch-cuda:2.8-cu118 --target any --no-source
pytorch-cuda:2.8-cu118 --gpu sm_120
pytorch-cuda:2.7-cu118
pytorch-cuda:2.7-cu118-devel --target any
pytorch-cuda:2.4-cu121 --gpu sm_120
pytorch-cuda:2.4 --gpu sm_90 --driver 535.104.05
pytorch-cuda:2.0-cu117
pytorch-cuda:2.0 --base debian:13
pytorch-cuda:1.13
pytorch-cuda:9.9
pytorch-cuda:2.8-cu999
pytorch-cuda:2.8-py2.7
pytorch-cuda:2.8-py3.8
pytorch-cuda --gpu sm_61
pytorch-cuda --gpu sm_37 --driver 470.82.01
pytorch-cuda --gpu sm_70 --driver 580.65.06
pytorch-cuda --gpu sm_75 --driver 450.80.02
pytorch-cuda --gpu sm_90 --driver 525.60.13 --forward-compat
pytorch-cuda --gpu sm_120 --driver 570.124.06
pytorch-cuda --gpu sm_86 --gpu sm_120
pytorch-cuda:2.11-cu130 --platform linux/arm64 --target any
pytorch-cuda:2.8-cu128 --platform linux/arm64 --target any
pytorch-cuda:2.8 --base debian:11
pytorch-cuda:2.8-cu128 --base ubuntu:24.04
pytorch-cuda:2.8-cu128 --base alpine:3
tensorflow-cuda
tensorflow-cuda:2.20
tensorflow-cuda:2.15 --gpu sm_120
tensorflow-cuda:2.10-py3.10
tensorflow-cuda:2.17-devel
jax-cuda
jax-cuda:0.11.2-cu13
jax-cuda:0.11-cu12 --gpu sm_90 --driver 525.60.13
jax-cuda:0.4
cupy-cuda
cupy-cuda:13.6-cu11
cupy-cuda:14-cu13-devel
cupy-cuda:10.6-cu117-py3.10
cupy-cuda:12.2-cu12-py3.12
numba-cuda
numba-cuda:0.20
onnxruntime-cuda
onnxruntime-cuda:1.18
onnxruntime-cuda --gpu sm_52 --driver 470.82.01
vllm-cuda
vllm-cuda:0.9
vllm-cuda --gpu sm_70
cuda
cuda:12.8-devel
cuda:11.8-devel --target any
cuda:13.0 --gpu sm_61
cuda:10.2
caffe-cuda
pytorch:2.8
not!a.spec
""".split("\n")[1:-1]

LISTS = """
--all
pytorch-cuda
pytorch-cuda --all
cuda --cuda cu128
--framework jax
--python 3.13
--for-this-machine --gpu sm_61 --driver 470.82.01
--gpu sm_120 --driver 570.124.06
--platform linux/arm64
caffe-cuda
""".split("\n")[:-1]

LOCKS = ["pytorch", "cuda-extension", "cupy-gemm"]
AGENT = "files/opt/envforge/agent"
# Where templates/files lie in a context.
FILES = "files/opt/envforge/"


class Comparison:
    def __init__(self):
        self.compared = 0
        self.differences = []

    def equal(self, what, before, after):
        self.compared += 1
        if before != after:
            lines = difflib.unified_diff(shown(before), shown(after), "before", "after", "", "", 2, "")
            self.differences.append(what + "\n" + "\n".join(f"    {line}" for line in lines))


def shown(value):
    text = value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True)
    return text.splitlines()


def without_sentences(value):
    """The value with each sentence replaced by its type: that it is there is compared, its words are not."""
    if isinstance(value, dict):
        return {
            key: f"({type(inner).__name__})" if key in SENTENCES else without_sentences(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [without_sentences(inner) for inner in value]
    return value


def environment(folder):
    """The caller's environment without what would lead the program elsewhere."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("ENVFORGE_", "XDG_"))}
    variables |= {"HOME": str(folder), "ENVFORGE_GPU": "", "ENVFORGE_DRIVER": "", "NO_COLOR": "1"}
    for name in ("ENVFORGE_INDEX", "ENVFORGE_DEBIAN_MIRROR", "ENVFORGE_DEBIAN_SECURITY_MIRROR", "ENVFORGE_CA_BUNDLE"):
        if name in os.environ:
            variables[name] = os.environ[name]
    return variables


def run(program, args, folder, cwd=None):
    return subprocess.run(
        [program, *args], cwd=cwd or folder, env=environment(folder), stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def answer(program, args, folder):
    """The exit code and what was printed as JSON; null if nothing was."""
    result = run(program, [*args, "--json"], folder)
    try:
        value = json.loads(result.stdout) if result.stdout else None
    except ValueError:
        value = {"not JSON": result.stdout}
    if "panicked" in result.stderr:
        sys.exit(f"{program} {' '.join(args)} panicked:\n{result.stderr}")
    return {"exit": result.returncode, "stdout": without_sentences(value)}


def compare_answers(before, after, folder, comparison):
    codes = {}
    for verb, cases in (("plan", PLANS), ("list", LISTS)):
        for case in cases:
            args = [verb, *case.split()]
            one, other = answer(before, args, folder), answer(after, args, folder)
            comparison.equal(f"envforge {' '.join(args)} --json", one, other)
            codes.setdefault(verb, []).append(one["exit"])
    for verb, ends in codes.items():
        kinds = ", ".join(f"{ends.count(code)} with exit code {code}" for code in sorted(set(ends)))
        print(f"{verb} --json: {len(ends)} cases, {kinds}")
        if verb == "plan" and not {0, 1, 2} <= set(ends):
            sys.exit("the cases are to contain plans, refusals and mistakes")


def help_pages(program, folder):
    """What the help of each verb names: its usage, the verbs below it, arguments, options and their values."""
    pages, open_verbs = {}, [[]]
    while open_verbs:
        verb = open_verbs.pop()
        result = run(program, [*verb, "--help"], folder)
        text = result.stdout.replace(program.name, "envforge")
        pages[" ".join(["envforge", *verb])] = [
            result.returncode,
            *re.findall(r"^Usage: .*|^ {2,6}(?:-\w|--[\w-]+|[<\[]).*|^ +- \S+?(?=:|$)|^ *\[default: .*", text, re.M),
        ]
        verbs = re.findall(r"^  ([a-z][a-z-]*)(?:  +\S|$)", re.split(r"^(?:Options|Arguments):", text, maxsplit=1, flags=re.M)[0], re.M)
        pages[" ".join(["envforge", *verb])] += sorted(verbs)
        open_verbs += [[*verb, name] for name in verbs if name != "help"]
    return pages


def compare_help(before, after, folder, comparison):
    one, other = help_pages(before, folder), help_pages(after, folder)
    for verb in sorted(one.keys() | other.keys()):
        comparison.equal(f"{verb} --help", one.get(verb), other.get(verb))
    print(f"--help: {len(one)} verbs")
    if len(one) < 30:
        sys.exit("the verbs of the first program were not found")


def digest(program, name, folder):
    """The content digest of the image of the lock that `export` left in the project, built without layers of another build."""
    result = run(program, ["build", "--locked", "--no-cache", "--target", "any", "--json"], folder, folder / "project")
    content = json.loads(result.stdout)["content"] if result.returncode == 0 else None
    return content or sys.exit(f"{program} builds no image of {name}:\n{result.stderr}")


def without_labels_and_comments(text):
    """A Dockerfile or script without comment lines, LABEL instructions and empty lines; `#!` stays."""
    lines, in_label = [], False
    for line in text.splitlines():
        if in_label or re.match(r"\s*LABEL\s", line):
            in_label = line.rstrip().endswith("\\")
        elif line.strip() and (line.startswith("#!") or not line.lstrip().startswith("#")):
            lines.append(line)
    return "\n".join(lines)


def without_schema(text):
    """A lock as a value, without the number of its form."""
    value = tomllib.loads(text)
    value.pop("schema", None)
    return json.loads(json.dumps(value, default=str))


def export(program, name, folder):
    """The context of an example's lock: the content of small files and the SHA-256 of large ones, with modes."""
    project, out = folder / "project", folder / "out"
    for path in (project, out):
        shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(ROOT / "examples" / name, project)
    result = run(program, ["export", "dockerfile", str(out), "--locked", "--target", "any"], folder, project)
    if result.returncode != 0:
        sys.exit(f"{program} cannot export {name}:\n{result.stderr}")
    context = {}
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        data = path.read_bytes()
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = None
        context[str(path.relative_to(out))] = (
            oct(path.stat().st_mode & 0o777),
            text if text is not None and len(data) < 1 << 20 else hashlib.sha256(data).hexdigest(),
        )
    shutil.rmtree(out)
    return context


def compare_context(name, before, after, may_differ, comparison):
    listing = lambda context: "\n".join(f"{mode} {path}" for path, (mode, _) in sorted(context.items()))
    comparison.equal(f"{name}: files and modes", listing(before), listing(after))
    for path in sorted(before.keys() & after.keys()):
        one, other = before[path][1], after[path][1]
        what = f"{name}: {path}"
        if path == "Dockerfile" or path.startswith("steps/"):
            one, other = without_labels_and_comments(one), without_labels_and_comments(other)
        elif path == "envforge.lock":
            one, other = without_schema(one), without_schema(other)
            # Fields that came are no change of those that were; they are printed.
            for key in sorted(other.keys() - one.keys()):
                print(f"{what}: new field `{key}`")
                other.pop(key)
        elif path == AGENT:
            if one != other:
                print(f"{what}: differs, as it may")
            continue
        elif path in may_differ and path.startswith(FILES):
            if one != other:
                diff = difflib.unified_diff(one.splitlines(), other.splitlines(), "before", "after", "", "", 2, "")
                print(f"{what}: named with --may-differ\n" + "\n".join(f"    {line}" for line in diff))
            continue
        comparison.equal(what, one, other)
    print(f"{name}: {len(before)} files of its context")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--contexts", action="store_true", help="compare exported contexts too")
    parser.add_argument("--images", action="store_true", help="build their images and compare content digests; implies --contexts")
    parser.add_argument("--may-differ", action="append", default=[], metavar="FILE", help=f"such as {FILES}venv.sh")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="a home with a cache that is kept for the next run")
    args = parser.parse_args()
    before, after = args.before.resolve(), args.after.resolve()
    comparison = Comparison()
    with tempfile.TemporaryDirectory(prefix="envforge-same-") as temporary:
        folder = args.keep.resolve() if args.keep else pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        compare_answers(before, after, folder, comparison)
        compare_help(before, after, folder, comparison)
        for name in LOCKS if args.contexts or args.images else []:
            contexts, digests = [], []
            for program in (before, after):
                contexts.append(export(program, name, folder))
                digests.append(digest(program, name, folder) if args.images else None)
            compare_context(name, *contexts, set(args.may_differ), comparison)
            if args.images:
                comparison.equal(f"{name}: content digest", *digests)
    for difference in comparison.differences:
        print(difference)
    print(f"{comparison.compared} comparisons, {len(comparison.differences)} differences")
    return bool(comparison.differences)


if __name__ == "__main__":
    sys.exit(main())
