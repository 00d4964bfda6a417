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
#[cfg_attr(not(feature = "docker-more"), ignore = "needs docker: cargo test --features docker-more")]
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
}
