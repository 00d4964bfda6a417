"""Makes /usr/local/cuda, where compilers and build tools look for CUDA: links to the one copy that lies in /opt/env.

Argument: `runtime` (libraries and headers) or the gcc major that nvcc takes (`11`). The .deb files of the compiler, if it
does not come as a wheel, lie in /run/envforge/toolkit; they are unpacked, never installed.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

HOME = "/usr/local/cuda"
DEBS = "/run/envforge/toolkit"
SCRATCH = "/tmp/envforge-toolkit"
PROFILE = """\
TOP = $(_HERE_)/..
CICC_PATH = $(TOP)/nvvm/bin
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
LD_LIBRARY_PATH += $(TOP)/lib64:
PATH += %s$(CICC_PATH):$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
SYSTEM_INCLUDES += "-isystem" "$(TOP)/include/cccl" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib64/stubs" "-L$(TOP)/lib64"
CUDAFE_FLAGS +=
PTXAS_FLAGS +=
"""
# What glibc 2.41 declares too; it says that these throw nothing, and older toolkits do not.
CLASH = re.compile(rb"^(extern .*\b(?:sinpi|sinpif|cospi|cospif)\((?:double|float) \w+\));", re.M)


def wheels(folder):
    """The folders of that name in the CUDA wheels, in a fixed order; cuTENSOR's wheel lies beside the others'."""
    packages = "/opt/env/lib/python3*/site-packages/"
    return sorted(glob.glob(packages + "nvidia/*/" + folder)) + sorted(glob.glob(packages + "cutensor/" + folder))


def put(source, target, copy=False):
    """Links (or copies) a file; what is there already stays."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target):
        return
    if copy:
        shutil.copyfile(source, target)
        shutil.copymode(source, target)
    else:
        os.symlink(source, target)


def put_tree(source, target, copy=False):
    for folder, names, files in os.walk(source):
        names[:] = sorted(name for name in names if name != "__pycache__")
        for name in sorted(files):
            if not name.endswith((".py", ".pyc")):
                path = os.path.join(folder, name)
                put(path, os.path.join(target, os.path.relpath(path, source)), copy)


def libraries():
    for folder in wheels("lib"):
        for path in sorted(glob.glob(folder + "/lib*.so*") + glob.glob(folder + "/lib*.a")):
            name = os.path.basename(path)
            put(path, f"{HOME}/lib64/{name}")
            # What `-lcudart` looks for.
            if ".so." in name:
                put(name, f"{HOME}/lib64/{name.split('.so.')[0]}.so")
    for folder in wheels("include"):
        put_tree(folder, f"{HOME}/include")
    put("lib64", f"{HOME}/lib")
    with open("/etc/ld.so.conf.d/envforge-cuda.conf", "w") as file:
        file.write(f"{HOME}/lib64\n")


def unpack():
    debs = sorted(glob.glob(DEBS + "/*.deb"))
    for deb in debs:
        subprocess.run(["dpkg-deb", "--extract", deb, SCRATCH], check=True)
    return bool(debs)


def distribution():
    """The layout of Debian's nvidia-cuda-toolkit."""
    top = SCRATCH + "/usr/lib/nvidia-cuda-toolkit"
    put(top + "/bin/nvcc", HOME + "/bin/nvcc", copy=True)
    put_tree(top + "/bin/crt", HOME + "/bin/crt", copy=True)
    put(top + "/bin/cicc", HOME + "/nvvm/bin/cicc", copy=True)
    put_tree(top + "/libdevice", HOME + "/nvvm/libdevice", copy=True)
    put_tree(top + "/compute-sanitizer", HOME + "/compute-sanitizer", copy=True)
    for path in sorted(glob.glob(SCRATCH + "/usr/bin/*")):
        name = os.path.basename(path)
        if os.path.islink(path):
            continue
        # These look for the sanitizer's libraries beside themselves.
        if name == "compute-sanitizer" or name.startswith("TreeLauncher"):
            put(path, f"{HOME}/compute-sanitizer/{name}", copy=True)
            continue
        with open(path, "rb") as file:
            if file.read(4) == b"\x7fELF":
                put(path, f"{HOME}/bin/{name}", copy=True)
    put("../compute-sanitizer/compute-sanitizer", HOME + "/bin/compute-sanitizer")
    for program, folder in (("ncu", "nsight-compute"), ("nsys", "nsight-systems")):
        found = sorted(glob.glob(f"{SCRATCH}/usr/lib/*/{folder}/**/{program}", recursive=True))
        if found:
            # nsys wants to lie in a folder of that name.
            home = f"/opt/nvidia/{folder}/{os.path.basename(os.path.dirname(found[0]))}"
            put_tree(os.path.dirname(found[0]), home, copy=True)
            put(f"{home}/{program}", f"/usr/local/bin/{program}")


def vendor():
    """The layout of the vendor's packages: /usr/local/cuda-12.8, profilers below /opt/nvidia."""
    for top in sorted(glob.glob(SCRATCH + "/usr/local/cuda-*")):
        put_tree(top + "/bin", HOME + "/bin", copy=True)
        put_tree(top + "/nvvm", HOME + "/nvvm", copy=True)
        for target in sorted(glob.glob(top + "/targets/*")):
            put_tree(target + "/include", HOME + "/include", copy=True)
            # Static libraries and the stubs of the driver's; the shared ones are the wheels'.
            for path in sorted(glob.glob(target + "/lib/*.a")):
                put(path, HOME + "/lib64/" + os.path.basename(path), copy=True)
            put_tree(target + "/lib/stubs", HOME + "/lib64/stubs", copy=True)
    if os.path.isdir(SCRATCH + "/opt/nvidia"):
        put_tree(SCRATCH + "/opt/nvidia", "/opt/nvidia", copy=True)
    for program in ("ncu", "nsys"):
        found = sorted(glob.glob(f"/opt/nvidia/nsight-*/*/**/{program}", recursive=True))
        found = [path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)]
        if found:
            put(found[0], f"/usr/local/bin/{program}")


def from_wheels():
    for folder in ("bin", "nvvm"):
        for source in wheels(folder):
            put_tree(source, f"{HOME}/{folder}")


def host_compiler(major):
    """nvcc looks for gcc and g++ here first, whatever version the image calls gcc."""
    for program in ("gcc", "g++"):
        put(f"/usr/bin/{program}-{major}", f"{HOME}/host/{program}")
    profile = HOME + "/bin/nvcc.profile"
    if os.path.lexists(profile):
        os.remove(profile)
    with open(profile, "w") as file:
        file.write(PROFILE % "$(TOP)/host:")


def agree_with_glibc():
    path = HOME + "/include/crt/math_functions.h"
    for declarations in glob.glob("/usr/include/*/bits/mathcalls.h"):
        with open(declarations) as file:
            if "sinpi" not in file.read():
                return
    with open(path, "rb") as file:
        text = file.read()
    changed = CLASH.sub(rb"\1 noexcept (true);", text)
    if changed != text:
        os.remove(path)
        with open(path, "wb") as file:
            file.write(changed)


def link_shared_by_default():
    """Where no static runtime is to be had, the names nvcc links by default lead to the shared one."""
    static = HOME + "/lib64/libcudart_static.a"
    if not os.path.lexists(static):
        with open(static, "w") as file:
            file.write("INPUT(-lcudart)\n")
    device = HOME + "/lib64/libcudadevrt.a"
    if not os.path.lexists(device):
        # An archive without code: kernels that launch kernels do not link here.
        os.makedirs(SCRATCH, exist_ok=True)
        subprocess.run(["gcc", "-c", "-x", "c", "-o", "none.o", "/dev/null"], cwd=SCRATCH, check=True)
        subprocess.run(["ar", "rcD", device, "none.o"], cwd=SCRATCH, check=True)


def main():
    flavour = sys.argv[1]
    if flavour != "runtime":
        if not unpack():
            from_wheels()
        elif os.path.isdir(SCRATCH + "/usr/lib/nvidia-cuda-toolkit"):
            distribution()
        else:
            vendor()
    libraries()
    if flavour != "runtime":
        host_compiler(flavour)
        agree_with_glibc()
        link_shared_by_default()
        for program in ("nvcc", "ptxas", "cudafe++"):
            if not os.path.exists(f"{HOME}/bin/{program}"):
                sys.exit(f"{HOME}/bin/{program} is missing: the packages hold no such file")
    shutil.rmtree(SCRATCH, ignore_errors=True)
    subprocess.run(["/sbin/ldconfig", "-X"], check=True)
    if os.path.exists("/var/cache/ldconfig/aux-cache"):
        os.remove("/var/cache/ldconfig/aux-cache")


main()
