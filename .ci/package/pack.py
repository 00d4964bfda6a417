#!/usr/bin/env python3
"""Packs one built program as a wheel, a Debian package and a tarball: the same bytes for the same program.

    pack.py BINARY OUT

Dates are SOURCE_DATE_EPOCH, or that of the newest commit. Completions and manual pages come from the program itself, the
licence texts from the crates that `cargo metadata` lists. Needs Python 3.9, cargo and no package of an index. PACK_LEVEL is
the effort of compression, 1 to 9 [default: 9].
"""

import base64
import hashlib
import io
import os
import re
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import licences  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LEVEL = int(os.environ.get("PACK_LEVEL", "9"))
SUMMARY = "Reproducible, verified GPU development images for machine-learning engineers"
SHELLS = {
    "bash": "usr/share/bash-completion/completions/envforge",
    "zsh": "usr/share/zsh/vendor-completions/_envforge",
    "fish": "usr/share/fish/vendor_completions.d/envforge.fish",
}
# e_machine of an ELF file: how Python, Debian and Rust call it.
MACHINES = {62: ("x86_64", "amd64"), 183: ("aarch64", "arm64")}


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: pack.py BINARY OUT")
    binary, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    program = Program(binary)
    for name, data in (wheel(program), deb(program), tarball(program)):
        (out / name).write_bytes(data)
        print(f"{hashlib.sha256(data).hexdigest()}  {name}")


class Program:
    """A built program, and everything that travels with it."""

    def __init__(self, binary):
        self.bytes = binary.read_bytes()
        if self.bytes[:4] != b"\x7fELF":
            sys.exit(f"`{binary}` is not a program of Linux")
        self.machine, self.debian = MACHINES[int.from_bytes(self.bytes[18:20], "little")]
        self.epoch = epoch()
        self.glibc = glibc(self.bytes)
        self.version = said(binary, "--version").split()[1]
        self.completions = {shell: said(binary, "generate", "completions", shell).encode() for shell in SHELLS}
        with tempfile.TemporaryDirectory() as folder:
            said(binary, "generate", "man", folder)
            self.manual = {page.name: page.read_bytes() for page in sorted(Path(folder).iterdir())}
        self.licence = (ROOT / "LICENSE").read_bytes()
        self.licences = licences.text().encode()
        self.changelog = (ROOT / "CHANGELOG.md").read_bytes()
        self.readme = (ROOT / "README.md").read_bytes()


def said(binary, *args):
    """What the program prints, run with nothing of the caller's."""
    folder = tempfile.gettempdir()
    environment = {"HOME": folder, "PATH": "/usr/bin:/bin", "ENVFORGE_GPU": ""}
    run = subprocess.run([binary, *args], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return run.stdout


def epoch():
    """The date of every file: SOURCE_DATE_EPOCH, or the newest commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        given = subprocess.run(
            ["git", "-C", ROOT, "log", "-1", "--format=%ct"], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
    # A zip file knows no date before 1980.
    return max(int(given), 315532800)


def glibc(data):
    """The oldest glibc that starts the program: the newest version that one of its symbols needs."""
    found = {tuple(int(part) for part in it.split(b".")) for it in re.findall(rb"GLIBC_(\d+\.\d+)(?:\.\d+)?\0", data)}
    return max(found)


def wheel(program):
    """PEP 427: the program in the scripts folder, for every Python 3."""
    major, minor = program.glibc
    tag = f"py3-none-manylinux_{major}_{minor}_{program.machine}"
    version = program.version.replace("-", "")
    info = f"envforge-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.4\nName: envforge\nVersion: {version}\nSummary: {SUMMARY}\nLicense-Expression: Apache-2.0\n"
        "License-File: LICENSE\nLicense-File: LICENSES.txt\nRequires-Python: >=3.8\n"
        "Classifier: Environment :: Console\nClassifier: Operating System :: POSIX :: Linux\n"
        "Description-Content-Type: text/markdown\n\n"
    )
    files = {
        f"envforge-{version}.data/scripts/envforge": (program.bytes, 0o755),
        f"{info}/METADATA": (metadata.encode() + program.readme, 0o644),
        f"{info}/WHEEL": (f"Wheel-Version: 1.0\nGenerator: envforge\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644),
        f"{info}/licenses/LICENSE": (program.licence, 0o644),
        f"{info}/licenses/LICENSES.txt": (program.licences, 0o644),
    }
    record = ""
    for name, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = ((record + f"{info}/RECORD,,\n").encode(), 0o644)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, time.gmtime(program.epoch)[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, data)
    return f"envforge-{version}-{tag}.whl", out.getvalue()


def deb(program):
    """A binary package as dpkg reads it: an ar archive of two tar files."""
    major, minor = program.glibc
    copyright = (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: envforge\n\n"
        "Files: *\nCopyright: the authors of envforge and of the crates in LICENSES.txt.gz\nLicense: Apache-2.0\n"
        " On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n"
    )
    files = {
        "usr/bin/envforge": (program.bytes, 0o755),
        "usr/share/doc/envforge/copyright": (copyright.encode(), 0o644),
        "usr/share/doc/envforge/LICENSES.txt.gz": (gzipped(program.licences), 0o644),
        "usr/share/doc/envforge/changelog.gz": (gzipped(program.changelog), 0o644),
    }
    files.update({SHELLS[shell]: (script, 0o644) for shell, script in program.completions.items()})
    files.update({f"usr/share/man/man1/{name}.gz": (gzipped(page), 0o644) for name, page in program.manual.items()})
    size = sum(len(data) for data, _ in files.values()) // 1024
    control = (
        f"Package: envforge\nVersion: {program.version}\nArchitecture: {program.debian}\n"
        "Maintainer: envforge <envforge@localhost>\nSection: devel\nPriority: optional\n"
        f"Installed-Size: {size}\nDepends: libc6 (>= {major}.{minor}), libgcc-s1 | libgcc1\n"
        f"Recommends: docker.io | podman\nDescription: {SUMMARY[0].lower()}{SUMMARY[1:]}\n"
        " Builds container images of PyTorch, JAX and others from a lock file, and verifies\n them on a GPU before they are tagged.\n"
    )
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {name}\n" for name, (data, _) in sorted(files.items()))
    parts = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", gzipped(tar(program, {"control": (control.encode(), 0o644), "md5sums": (sums.encode(), 0o644)}, "./"))),
        ("data.tar.gz", gzipped(tar(program, files, "./"))),
    ]
    out = b"!<arch>\n"
    for name, data in parts:
        head = f"{name:<16}{program.epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n"
        out += head.encode() + data + b"\n" * (len(data) % 2)
    return f"envforge_{program.version}_{program.debian}.deb", out


def tarball(program):
    """Everything in one folder, for `/usr/local` or a home folder."""
    top = f"envforge-{program.version}-{program.machine}-linux"
    names = {"bash": "envforge.bash", "zsh": "_envforge", "fish": "envforge.fish"}
    files = {
        "bin/envforge": (program.bytes, 0o755),
        "LICENSE": (program.licence, 0o644),
        "LICENSES.txt": (program.licences, 0o644),
        "README.md": (program.readme, 0o644),
        "CHANGELOG.md": (program.changelog, 0o644),
    }
    files.update({f"completions/{names[shell]}": (script, 0o644) for shell, script in program.completions.items()})
    files.update({f"man/man1/{name}": (page, 0o644) for name, page in program.manual.items()})
    return f"{top}.tar.gz", gzipped(tar(program, files, f"{top}/"))


def tar(program, files, top):
    """A tar file: sorted, of root, with one date."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        folders = {top}
        for name in files:
            folders.update(f"{top}{parent}/" for parent in map(str, Path(name).parents) if parent != ".")
        for folder in sorted(folders):
            entry = tarfile.TarInfo(folder.rstrip("/"))
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, program.epoch
            archive.addfile(entry)
        for name in sorted(files):
            data, mode = files[name]
            entry = tarfile.TarInfo(top + name)
            entry.size, entry.mode, entry.mtime = len(data), mode, program.epoch
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def gzipped(data):
    """Gzip without name and date. `gzip.compress` writes another operating system from Python 3.11 on."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -15)
    body = packer.compress(data) + packer.flush()
    end = zlib.crc32(data).to_bytes(4, "little") + (len(data) & 0xFFFFFFFF).to_bytes(4, "little")
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff" + body + end


if __name__ == "__main__":
    main()
