//! The toolkit with its compiler, built for real: nvcc of the distribution, libraries and headers as wheels.

use crate::engine::docker;
use crate::scene::Scene;

const IMAGE: &str = "cuda:11.8.0-py3.11-devel-unverified";

/// Removes the image when the test ends, however it ends.
struct Removed;

impl Drop for Removed {
    fn drop(&mut self) {
        let images = [IMAGE, "cuda:11.8-devel-unverified"];
        drop(std::process::Command::new("docker").arg("rmi").args(images).output());
    }
}

#[test]
#[ignore = "nightly: needs docker and downloads gigabytes of NVIDIA's packages"]
fn nvcc_of_the_distribution_compiles_and_links_in_its_image() {
    let scene = Scene::new();
    let _removed = Removed;
    let run = scene.succeed(&["build", "cuda:11.8-devel", "--target", "any"]);
    assert_eq!(run.stdout, format!("{IMAGE}\ncuda:11.8-devel-unverified\n"));
    for line in ["nvcc-version", "11.8", "compiles for 3.5, 9.0; a program links and runs", "one-cuda"] {
        assert!(run.stderr.contains(line), "`{line}` is missing in {}", run.stderr);
    }
    let lock = scene.lock();
    assert!(lock.contains("name = \"nvidia-cuda-toolkit\"") && !lock.contains("name = \"nvidia-cuda-dev\""));
    // Any user, no network, a program that calls a library of the wheels.
    let program = "#include <cublas_v2.h>\n#include <cstdio>\nint main() { int v = 0; cublasGetProperty(MAJOR_VERSION, &v); std::printf(\"%d\", v); }";
    let script = format!("cd /tmp && echo '{program}' >x.cu && nvcc x.cu -lcublas -o x && ./x");
    let said = docker(&["run", "--rm", "--network", "none", "--user", "50000", IMAGE, "sh", "-c", &script]);
    assert_eq!(said, "11");
    patched_for_cuda_11();
}

/// The look-up of driver functions as PyTorch 2.8 has it: refused by the headers of CUDA 11.8 as it is, accepted with our
/// patch, which leaves a file of another shape alone.
fn patched_for_cuda_11() {
    let patch = include_str!("../../templates/patches/pytorch-2.8-cuda11-driver-entry-point.py");
    let source = include_str!("../fixtures/source/small/c10/cuda/driver_api.cpp");
    let script = format!(
        "mkdir -p /tmp/t/c10/cuda && cd /tmp/t && cat >patch.py <<'PATCH'\n{patch}PATCH\n         cat >c10/cuda/driver_api.cpp <<'SOURCE'\n{source}SOURCE\n         compiles() {{ /usr/local/cuda/host/g++ -std=c++17 -Wall -Werror -fsyntax-only -I/usr/local/cuda/include c10/cuda/driver_api.cpp; }}\n         compiles 2>&1 | grep -o 'cudaDriverEntryPointQueryResult. was not declared' | head -1\n         python3 patch.py . && compiles && echo compiles && cp c10/cuda/driver_api.cpp once\n         python3 patch.py . && cmp once c10/cuda/driver_api.cpp && echo once\n         echo 'int other;' >c10/cuda/driver_api.cpp\n         python3 patch.py . 2>/dev/null || cat c10/cuda/driver_api.cpp"
    );
    let said = docker(&["run", "--rm", "--network", "none", "--user", "50000", IMAGE, "sh", "-c", &script]);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    assert!(lines[0].contains("was not declared"), "{said}");
    assert_eq!(lines[1..], ["compiles", "once", "int other;"], "{said}");
}
