"""Lets `TORCH_CUDA_ARCH_LIST` decide for which GPUs an extension is compiled: argument, the folder of its source.

The setup.py of causal-conv1d and mamba-ssm appends `-gencode` and `arch=compute_..,code=sm_..` to `cc_flag` one by one. Where
flags name targets, torch leaves its list out, so every GPU is compiled for, whatever was asked. Each such line becomes `pass`.
A file without such lines is an error and stays as it is; one that is patched already stays too.
"""
import os
import re
import sys

MARK = "pass  # envforge: TORCH_CUDA_ARCH_LIST"
FLAG = re.compile(r"""^(?P<indent>[ \t]+)cc_flag\.append\((["'])(-gencode|arch=compute_\w+,code=\w+)\2\)$""", re.M)


def main():
    path = os.path.join(sys.argv[1], "setup.py")
    with open(path) as file:
        text = file.read()
    if MARK in text:
        return
    new, count = FLAG.subn(lambda line: line["indent"] + MARK, text)
    # They come in pairs.
    if count == 0 or count % 2 or re.search(r"arch=compute_", new):
        sys.exit(f"{path} names its GPU targets in another way than causal-conv1d 1.7.0: this patch is not for it")
    with open(path, "w") as file:
        file.write(new)


main()
