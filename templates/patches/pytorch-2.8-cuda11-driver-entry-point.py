"""Lets PyTorch 2.8 compile with CUDA 11: argument, the folder of its source.

CUDA 11 knows `cudaGetDriverEntryPoint` with three arguments only, and the look-up in c10/cuda/driver_api.cpp uses the
four of CUDA 12 (pytorch/pytorch PR 156097). With CUDA 11 that function now asks with three; with any other it is what
it was. Driver functions are then looked up as of CUDA 11, which suits the headers that declare their types.
A file of another shape is an error and stays as it is; one that is patched already stays too.
"""
import os
import re
import sys

FILE = "c10/cuda/driver_api.cpp"
MARK = "// envforge: CUDA 11"
FUNCTION = re.compile(
    r"^void\* get_symbol\(const char\* (?P<name>\w+), int (?P<version>\w+)\) \{\n(?P<body>.*?)^\}\n", re.M | re.S
)
PATCHED = """\
void* get_symbol(const char* {name}, int {version}) {{
#if CUDART_VERSION < 12000 {mark}
  (void){version};
  void* found = nullptr;
  if (cudaGetDriverEntryPoint({name}, &found, cudaEnableDefault) != cudaSuccess) {{
    (void)cudaGetLastError();
    found = nullptr;
  }}
  return found;
#else
{body}#endif
}}
"""


def main():
    path = os.path.join(sys.argv[1], FILE)
    with open(path) as file:
        text = file.read()
    if MARK in text:
        return
    found = list(FUNCTION.finditer(text))
    if len(found) != 1 or "cudaDriverEntryPointQueryResult" not in found[0]["body"]:
        sys.exit(f"{path} does not hold the look-up that PyTorch 2.8 has: this patch is for that release")
    one = found[0]
    new = PATCHED.format(name=one["name"], version=one["version"], body=one["body"], mark=MARK)
    with open(path, "w") as file:
        file.write(text[: one.start()] + new + text[one.end() :])


main()
