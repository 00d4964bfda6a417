"""Lets torch choose the C++ standard of an extension: argument, the folder of its source.

The setup.py of mamba-ssm 2.3.2 and flash-attn 2.8.3 asks for C++17, which the headers of newer releases of torch do not compile
with. Without that flag torch adds the standard that it was built with itself (`torch/utils/cpp_extension.py`).
A file without the flag is an error, unless it is patched already; it stays as it is.
"""
import os
import re
import sys

MARK = "# envforge: the C++ standard of torch\n"
FLAG = re.compile(r'"-std=c\+\+17"(, ?|(?=\]))')


def main():
    path = os.path.join(sys.argv[1], "setup.py")
    with open(path) as file:
        text = file.read()
    if text.startswith(MARK):
        return
    new, count = FLAG.subn("", text)
    if count == 0 or "-std=c++" in new:
        sys.exit(f"{path} names its C++ standard in another way than flash-attn 2.8.3: this patch is not for it")
    with open(path, "w") as file:
        file.write(MARK + new)


main()
