#!/usr/bin/env python3
"""Makes the PTX of this folder with NVRTC 11.8, whose PTX every driver since 520 reads.

    python3 -m pip install --no-deps --target /tmp/nvrtc nvidia-cuda-nvrtc-cu11==11.8.89
    kernels/ptx/make.py /tmp/nvrtc/nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2

A test makes it again and compares: `cargo test --test kernels ptx -- --include-ignored`.
"""

import ctypes
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
# The lowest architecture of 11.8, and those from which on the tensor cores know another format.
LOWEST = [35]
ARCHITECTURES = {"gemm_wmma": [70, 80]}


def compiled(library, source, architecture):
    program = ctypes.c_void_p()
    name = source.stem.encode()
    library.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), name, 0, None, None)
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_%d" % architecture)
    status = library.nvrtcCompileProgram(program, 1, options)
    size = ctypes.c_size_t()
    if status:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        sys.exit(f"{source.name}: NVRTC says {status}\n{log.value.decode()}")
    library.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, text)
    return text.value


def main():
    library = ctypes.CDLL(str(pathlib.Path(sys.argv[1]).resolve()))
    for source in sorted((FOLDER.parent / "cuda").glob("*.cu")):
        for architecture in ARCHITECTURES.get(source.stem, LOWEST):
            path = FOLDER / f"{source.stem}.compute_{architecture}.ptx"
            path.write_bytes(compiled(library, source, architecture))


main()
